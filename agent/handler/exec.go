package handler

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"repute"
	"repute/agent/capability"
)

// Bounds of a program where Exec names no other.
const (
	defaultMemory = 512 << 20 // bytes of address space
	defaultCPU    = 10 * time.Second
	defaultWall   = 10 * time.Second
)

// Bounds of all programs.
const (
	// maxTasks bounds the processes and threads of one run together. RLIMIT_NPROC would count all
	// processes of the user, those of other programs too.
	maxTasks = 256
	// maxFile bounds each file that a program writes, in bytes.
	maxFile = 256 << 20
	// maxLog bounds what of a program's standard error is logged, in bytes.
	maxLog = 16 << 10
	// waitDelay is how long output is awaited after the last process of a run has ended.
	waitDelay = 500 * time.Millisecond
)

// Exec runs a program for each call: the call as JSON on standard input
// (capability.Call.MarshalJSON), the answer as JSON on standard output, exit status 0. The kernel
// bounds memory, CPU time and files of each process.
//
// The call ends when the program does. Every process that the program started is killed then, also
// one that left its session or replaced its environment, because the run traces them all (ptrace);
// they are killed by the kernel when this process is. Therefore set-user-ID bits have no effect for
// them, they cannot trace each other, and signals cannot stop them. A program that is written to
// escape can still start a process that is not traced (CLONE_UNTRACED): run programs that you do not
// trust in a container, behind HTTP. Exec works on Linux.
type Exec struct {
	Path string // absolute; no shell interprets it
	Args []string
	Dir  string // working directory, / when empty
	// Env is the whole environment, as NAME=value; nothing is inherited.
	Env       []string
	Memory    uint64        // 512 MiB when 0
	CPU       time.Duration // 10 s when 0; rounded up to seconds
	Wall      time.Duration // 10 s when 0
	MaxAnswer int           // 10 MiB when 0
	// Text says that the program writes a text, which is returned as a JSON string.
	Text bool
	Log  *slog.Logger
}

// errTooLong ends a program that wrote more than it may.
var errTooLong = errors.New("too much output")

// program is one run of a program.
type program struct {
	path           string
	args, env      []string
	dir            string
	stdin          []byte
	stdout, stderr io.Writer // not used any more when run has returned
	limits         limits
}

// limits are bounds of each process of a run.
type limits struct {
	memory uint64 // bytes of address space
	cpu    uint64 // seconds
}

// outcome is how the first process of a run ended.
type outcome struct {
	ok      bool   // with exit status 0
	overCPU bool   // it used up its CPU time
	crowded bool   // the run had more than maxTasks processes and threads
	text    string // for the log
}

// Run implements agent.Handler.
func (e *Exec) Run(ctx context.Context, call capability.Call) (json.RawMessage, error) {
	input, err := json.Marshal(call)
	if err != nil {
		return nil, fmt.Errorf("%w: the call is no JSON", ErrFailed)
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(e.Wall, defaultWall))
	defer cancel()
	stderr := &head{}
	stdout := &answer{most: cmp.Or(e.MaxAnswer, defaultMaxAnswer), full: cancel}
	p := &program{path: e.Path, args: append([]string{e.Path}, e.Args...), env: append([]string{}, e.Env...),
		dir: cmp.Or(e.Dir, "/"), stdin: input, stdout: stdout, stderr: stderr, limits: e.limits()}
	end, err := p.run(ctx)
	if err != nil {
		logger(e.Log).ErrorContext(ctx, "program not started", "path", e.Path, "error", err)
		return nil, handlerError(ctx, fmt.Errorf("%w: the handler's program cannot be started", repute.ErrUnavailable))
	}
	out, failure := result(ctx, stdout, &end, e.Text)
	e.logEnd(ctx, call, failure, &end, stderr.buf.String())
	return out, failure
}

// logEnd logs how a program ended, when it failed or wrote to standard error.
func (e *Exec) logEnd(ctx context.Context, call capability.Call, failure error, end *outcome, stderr string) {
	level := slog.LevelDebug
	switch {
	case failure != nil:
		level = slog.LevelWarn
	case stderr == "":
		return
	}
	logger(e.Log).Log(ctx, level, "program ended", "path", e.Path, "capability", call.Capability,
		"requestId", call.RequestID, "status", end.text, "stderr", stderr)
}

// limits are the bounds that the kernel enforces.
func (e *Exec) limits() limits {
	cpu := cmp.Or(e.CPU, defaultCPU)
	return limits{memory: cmp.Or(e.Memory, defaultMemory), cpu: uint64((cpu + time.Second - 1) / time.Second)}
}

// result judges how a program ended.
func result(ctx context.Context, out *answer, end *outcome, text bool) (json.RawMessage, error) {
	switch {
	case out.long:
		return nil, fmt.Errorf("%w: its answer has more than %d bytes", ErrFailed, out.most)
	case end.crowded:
		return nil, fmt.Errorf("%w: it started more than %d processes and threads", ErrFailed, maxTasks)
	case end.ok && text:
		return json.Marshal(strings.ToValidUTF8(out.buf.String(), "\uFFFD"))
	case end.ok:
		return checked(out.buf.Bytes())
	case ctx.Err() != nil:
		return nil, handlerError(ctx, ctx.Err())
	case end.overCPU:
		return nil, fmt.Errorf("%w: it used up its CPU time", ErrTimeout)
	}
	return nil, fmt.Errorf("%w: its program ended with an error", ErrFailed)
}

// answer keeps standard output up to a bound; beyond it, it ends the program.
type answer struct {
	buf  bytes.Buffer
	most int // bytes
	long bool
	full context.CancelFunc
}

// Write implements io.Writer.
func (a *answer) Write(p []byte) (int, error) {
	if a.buf.Len()+len(p) > a.most {
		a.long = true
		a.full()
		return 0, errTooLong
	}
	return a.buf.Write(p)
}

// head keeps the beginning of standard error, at most maxLog bytes, and discards the rest.
type head struct{ buf bytes.Buffer }

// Write implements io.Writer. It never fails, so that a program is not ended for what it logs.
func (h *head) Write(p []byte) (int, error) {
	h.buf.Write(p[:min(len(p), maxLog-h.buf.Len())])
	return len(p), nil
}
