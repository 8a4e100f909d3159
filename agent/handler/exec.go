package handler

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"sync"
	"time"

	"repute"
	"repute/agent/capability"
)

// Bounds of a program where Exec names no other.
const (
	DefaultMemory = 512 << 20 // bytes of address space
	DefaultCPU    = 10 * time.Second
	DefaultWall   = 10 * time.Second
)

const (
	// maxLog bounds what of a program's standard error is logged, in bytes.
	maxLog = 16 << 10
	// waitDelay is how long output is awaited from what a program leaves behind.
	waitDelay = 500 * time.Millisecond
	// mark names the variable that a run's processes are recognized by.
	mark = "REPUTE_RUN"
)

// Exec runs a program for each call: the call as JSON on standard input
// (capability.Call.MarshalJSON), the answer as JSON on standard output, exit status 0. The kernel
// bounds memory and CPU time of each process. Whatever the program started is killed when the call
// ends; only a process that replaces its environment and leaves the session escapes. Exec works on
// Linux.
type Exec struct {
	Path string // absolute; no shell interprets it
	Args []string
	Dir  string // working directory, / when empty
	// Env is the whole environment, as NAME=value; nothing is inherited. REPUTE_RUN is added.
	Env       []string
	Memory    uint64        // DefaultMemory when 0
	CPU       time.Duration // DefaultCPU when 0; rounded up to seconds
	Wall      time.Duration // DefaultWall when 0
	MaxAnswer int           // DefaultMaxAnswer when 0
	Log       *slog.Logger
}

// errTooLong ends a program that wrote more than it may.
var errTooLong = errors.New("too much output")

// Run implements Handler.
func (e *Exec) Run(ctx context.Context, call capability.Call) (json.RawMessage, error) {
	input, err := json.Marshal(call)
	if err != nil {
		return nil, fmt.Errorf("%w: the call is no JSON", ErrFailed)
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(e.Wall, DefaultWall))
	defer cancel()
	run := mark + "=" + rand.Text()
	stderr := &tail{most: maxLog}
	stdout := &answer{most: cmp.Or(e.MaxAnswer, DefaultMaxAnswer), full: cancel}
	cmd := e.command(ctx, run)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), stdout, stderr
	if err := start(cmd, e.limits()); err != nil {
		logger(e.Log).ErrorContext(ctx, "program not started", "path", e.Path, "error", err)
		return nil, ended(ctx, fmt.Errorf("%w: the handler's program cannot be started", repute.ErrUnavailable))
	}
	err = cmd.Wait()
	killAll(cmd.Process.Pid, run)
	out, failure := e.result(ctx, cmd, stdout, err)
	e.logEnd(ctx, call, failure, err, stderr.text())
	return out, failure
}

// logEnd logs how a program ended, when it failed or wrote to standard error.
func (e *Exec) logEnd(ctx context.Context, call capability.Call, failure, err error, stderr string) {
	level := slog.LevelDebug
	switch {
	case failure != nil:
		level = slog.LevelWarn
	case stderr == "":
		return
	}
	logger(e.Log).Log(ctx, level, "program ended", "path", e.Path, "capability", call.Capability,
		"requestId", call.RequestID, "error", err, "stderr", stderr)
}

// command is the program of one run, without streams.
func (e *Exec) command(ctx context.Context, run string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, e.Path, e.Args...)
	cmd.Dir = cmp.Or(e.Dir, "/")
	cmd.Env = append(append([]string{}, e.Env...), run)
	cmd.SysProcAttr = attributes()
	cmd.Cancel = func() error { return killGroup(cmd.Process.Pid) }
	cmd.WaitDelay = waitDelay
	return cmd
}

// limits are the bounds that the kernel enforces.
func (e *Exec) limits() limits {
	cpu := cmp.Or(e.CPU, DefaultCPU)
	return limits{memory: cmp.Or(e.Memory, DefaultMemory), cpu: uint64((cpu + time.Second - 1) / time.Second)}
}

// result judges how a program ended. A child that holds the output open does not make a finished
// program wrong.
func (e *Exec) result(ctx context.Context, cmd *exec.Cmd, out *answer, err error) (json.RawMessage, error) {
	switch {
	case out.tooLong():
		return nil, fmt.Errorf("%w: its answer has more than %d bytes", ErrFailed, out.most)
	case ctx.Err() != nil && err != nil:
		return nil, ended(ctx, err)
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		return checked(out.bytes())
	case overCPU(cmd.ProcessState, e.limits().cpu):
		return nil, fmt.Errorf("%w: it used up its CPU time", ErrTimeout)
	}
	return nil, fmt.Errorf("%w: its program ended with an error", ErrFailed)
}

// answer keeps standard output up to a bound; beyond it, it ends the program.
type answer struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	most int
	long bool
	full context.CancelFunc
}

// Write implements io.Writer.
func (a *answer) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.buf.Len()+len(p) > a.most {
		a.long = true
		a.full()
		return 0, errTooLong
	}
	return a.buf.Write(p)
}

func (a *answer) tooLong() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.long
}

func (a *answer) bytes() []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	return bytes.Clone(a.buf.Bytes())
}

// tail keeps the beginning of standard error and discards the rest.
type tail struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	most int
}

// Write implements io.Writer. It never fails, so that a program is not ended for what it logs.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.Write(p[:min(len(p), t.most-t.buf.Len())])
	return len(p), nil
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}

// limits are bounds of each process of a run.
type limits struct {
	memory uint64 // bytes of address space
	cpu    uint64 // seconds
}
