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

// Program is the product's binary.
type Program struct {
	Path string
	Env  []string // in addition to this process's
}

// Process is a running program.
type Process struct {
	Started time.Time
	Stderr  *bytes.Buffer // standard error; to be read once Done is closed
	Out     io.Reader     // standard output
	PeakKB  int64         // most memory that it held, in KiB; set by Stop

	cmd  *exec.Cmd
	done chan struct{}
	err  error // how it ended; valid once done is closed
}

// Start runs the program with its output kept for errors.
func (p Program) Start(args ...string) (*Process, error) {
	r := &Process{cmd: exec.Command(p.Path, args...), done: make(chan struct{}), Stderr: new(bytes.Buffer)}
	r.cmd.Env = append(append(os.Environ(), "REPUTE_LOG_LEVEL=warn"), p.Env...)
	r.cmd.Stderr = r.Stderr
	dieWithParent(r.cmd)
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", args[0], err)
	}
	r.Out = out
	r.Started = time.Now()
	if err := r.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", args[0], err)
	}
	go func() {
		r.err = r.cmd.Wait()
		close(r.done)
	}()
	return r, nil
}

// stopWait is how long a program may take to end after SIGTERM.
const stopWait = 20 * time.Second

// Stop ends the program and returns what it used. It may be called twice.
func (r *Process) Stop() error {
	if kb := r.Peak(); kb > 0 {
		r.PeakKB = kb
	}
	_ = r.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-r.done:
	case <-time.After(stopWait):
		_ = r.cmd.Process.Kill()
		<-r.done
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

// PID returns the id of the process.
func (r *Process) PID() int { return r.cmd.Process.Pid }

// Failure is how the program ended, with the end of its standard error, nil when well.
func (r *Process) Failure() error {
	if r.err == nil {
		return nil
	}
	const last = 2000
	stderr := bytes.TrimSpace(r.Stderr.Bytes())
	return fmt.Errorf("%s: %w: %s", r.cmd.Args[1], r.err, stderr[max(0, len(stderr)-last):])
}

// Peak is the most memory the program held until now, in KiB; 0 where the system
// has no such figure.
func (r *Process) Peak() int64 {
	value := Field(filepath.Join("/proc", strconv.Itoa(r.cmd.Process.Pid), "status"), "VmHWM")
	kb, _ := strconv.ParseInt(strings.TrimSuffix(value, " kB"), 10, 64)
	return kb
}

// CPU is the processor time of a program that ended.
func (r *Process) CPU() time.Duration {
	return r.cmd.ProcessState.UserTime() + r.cmd.ProcessState.SystemTime()
}

// Await polls until ready says so. It fails when the program ends first, and with
// ctx.
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
			return errors.Join(fmt.Errorf("%s ended too early: %s", r.cmd.Args[1], r.Stderr), r.Failure())
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

// Serve starts the product with a configuration.
func (d *Database) Serve(ctx context.Context, p Program, config string) (s *Session, err error) {
	s = &Session{d: d}
	if s.before, err = d.server.wal(ctx); err != nil {
		return nil, err
	}
	s.Process, err = p.Start("serve", "--config", config)
	return s, err
}

// Count adds what the server did so far.
func (s *Session) Count(ctx context.Context, u *Usage) error {
	now, err := s.d.server.wal(ctx)
	if err != nil {
		return err
	}
	cpu, err := s.d.CPU(ctx)
	u.WALMB, u.PostgresCPU = float64(now-s.before)/1e6, cpu.Seconds()
	return err
}

// End stops the product and adds what it took.
func (s *Session) End(u *Usage) error {
	if err := s.Stop(); err != nil {
		return err
	}
	u.CPU, u.PeakMB = s.CPU().Seconds(), float64(s.PeakKB)/1024
	return nil
}

// Kill ends the process at once, as kill -9 does.
func (r *Process) Kill() error { return r.cmd.Process.Kill() }
