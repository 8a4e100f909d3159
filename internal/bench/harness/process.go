package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Program is a binary to be measured: the product's, or that of the benchmark itself, which is also its own node and
// its own worker.
type Program struct {
	Path string
	Env  []string // in addition to this process's
}

// Process is a running program. Stop or Kill MUST be called, also after a failure. Nobody reads its standard output but
// StartServing, which reads one line: a program that prints more than a pipe holds would wait for ever.
type Process struct {
	Started time.Time
	PeakMB  float64 // most memory that it held; set by Stop, 0 before and on systems without /proc

	cmd    *exec.Cmd
	stderr *bytes.Buffer // to be read once done is closed
	out    io.Reader     // standard output
	done   chan struct{}
	err    error // how it ended; valid once done is closed
}

// Start runs the program with its output kept for errors. The program logs warnings and errors alone, unless Env says
// otherwise: lines of a log would take time of the processors.
func (p Program) Start(args ...string) (*Process, error) { return p.start("", args...) }

// Serve starts the product with a configuration, whose file is removed when the product has ended.
func (p Program) Serve(config string) (*Process, error) {
	path, err := WriteConfig(config)
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(path)
	r, err := p.start(dir, "serve", "--config", path)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return r, nil
}

// start is Start of a program whose directory, if it is not "", is removed when the program has ended.
func (p Program) start(dir string, args ...string) (*Process, error) {
	r := &Process{cmd: exec.Command(p.Path, args...), done: make(chan struct{}), stderr: new(bytes.Buffer)}
	r.cmd.Env = append(append(os.Environ(), "REPUTE_LOG_LEVEL=warn"), p.Env...)
	r.cmd.Stderr = r.stderr
	dieWithParent(r.cmd)
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", args[0], err)
	}
	r.out = out
	r.Started = time.Now()
	if err := r.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", args[0], err)
	}
	// One goroutine waits for the end, however many ask for it: err is written before done is closed, and read after.
	go func() {
		r.err = r.cmd.Wait()
		_ = os.RemoveAll(dir) // under the temporary directory
		close(r.done)
	}()
	return r, nil
}

// stopWait is how long a program may take to end after SIGTERM. A program that takes longer is killed, and Stop returns
// an error.
const stopWait = 20 * time.Second

// Stop ends the program by SIGTERM and waits for its end. The error is how it failed, or that it had to be killed. It
// may be called twice, and after the program has ended. PeakMB is read before the signal, since the figure is gone with
// the process.
func (r *Process) Stop() error {
	r.PeakMB = max(r.PeakMB, r.memory("VmHWM"))
	_ = r.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-r.done:
	case <-time.After(stopWait):
		r.Kill()
		return fmt.Errorf("%s did not end: killed", r.cmd.Args[1])
	}
	var exit *exec.ExitError
	if errors.As(r.err, &exit) && exit.ExitCode() < 0 {
		return nil // ended by the signal before it could handle it
	}
	return r.Failure()
}

// Done returns a channel that is closed when the program has ended.
func (r *Process) Done() <-chan struct{} { return r.done }

// Failure is how the program ended, with the end of its standard error, nil when well. It MUST be called after the end
// only: see Done.
func (r *Process) Failure() error {
	if r.err == nil {
		return nil
	}
	const last = 2000
	stderr := bytes.TrimSpace(r.stderr.Bytes())
	return fmt.Errorf("%s: %w: %s", r.cmd.Args[1], r.err, stderr[max(0, len(stderr)-last):])
}

// ResidentMB is the memory that the program holds now, 0 where the system has no such figure.
func (r *Process) ResidentMB() float64 { return r.memory("VmRSS") }

// memory is a figure of the program's memory under /proc, in MB; 0 where the system has none.
func (r *Process) memory(name string) float64 {
	value := field(fmt.Sprintf("/proc/%d/status", r.cmd.Process.Pid), name)
	kb, _ := strconv.ParseFloat(strings.TrimSuffix(value, " kB"), 64)
	return kb / 1024
}

// CPU is the processor time of a program that ended, of user and system. It panics before the end.
func (r *Process) CPU() time.Duration {
	return r.cmd.ProcessState.UserTime() + r.cmd.ProcessState.SystemTime()
}

// Await polls until ready says so. It fails when the program ends first, and with
// ctx. What ready sees after the end counts: a program may have done its work and ended
// between two looks.
func (r *Process) Await(ctx context.Context, every time.Duration, ready func(context.Context) (bool, error)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		ok, err := ready(ctx)
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", r.cmd.Args[1], ctx.Err())
		case <-r.done:
			if ok, err := ready(ctx); ok || err != nil {
				return err
			}
			return errors.Join(fmt.Errorf("%s ended too early: %s", r.cmd.Args[1], r.stderr), r.Failure())
		case <-tick.C:
		}
	}
}

// Usage is what a run of the product took, to its end.
type Usage struct {
	CPU         float64 `json:"cpu_seconds"` // of the product, its start and end included
	PostgresCPU float64 `json:"postgres_cpu_seconds"`
	PeakMB      float64 `json:"peak_rss_mb"` // of the product
	WALMB       float64 `json:"wal_mb"`
}

// Session is the product at work on a database.
type Session struct {
	*Process
	d      *Database
	before int64 // position of the server's log
}

// Serve is Program.Serve of a product whose work on the database is measured.
func (d *Database) Serve(ctx context.Context, p Program, config string) (s *Session, err error) {
	s = &Session{d: d}
	if s.before, err = d.server.wal(ctx); err != nil {
		return nil, err
	}
	s.Process, err = p.Serve(config)
	return s, err
}

// Count adds what the server did so far. It MUST be called before the product ends, with whose sessions their
// processor time is gone. The log's bytes are those of the whole server, which runs nothing else.
func (s *Session) Count(ctx context.Context, u *Usage) error {
	now, err := s.d.server.wal(ctx)
	if err != nil {
		return err
	}
	cpu, err := s.d.CPU(ctx)
	u.WALMB, u.PostgresCPU = float64(now-s.before)/1e6, cpu.Seconds()
	return err
}

// End stops the product and adds what it took. Nothing is added where it failed.
func (s *Session) End(u *Usage) error {
	if err := s.Stop(); err != nil {
		return err
	}
	u.CPU, u.PeakMB = s.CPU().Seconds(), s.PeakMB
	return nil
}

// Kill ends the process at once, as kill -9 does, and waits for its end.
func (r *Process) Kill() {
	_ = r.cmd.Process.Kill() // it may have ended
	<-r.done
}
