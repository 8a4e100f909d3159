package bench

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

// process is a running program.
type process struct {
	cmd     *exec.Cmd
	started time.Time
	done    chan struct{}
	err     error         // how it ended; valid once done is closed
	stderr  *bytes.Buffer // standard error; to be read once done is closed
	out     io.Reader     // standard output
	peakKB  int64
}

// start runs the program with its output kept for errors.
func (p Program) start(args ...string) (*process, error) {
	r := &process{cmd: exec.Command(p.Path, args...), done: make(chan struct{}), stderr: new(bytes.Buffer)}
	r.cmd.Env = append(os.Environ(), p.Env...)
	r.cmd.Stderr = r.stderr
	dieWithParent(r.cmd)
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", args[0], err)
	}
	r.out = out
	r.started = time.Now()
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

// stop ends the program and returns what it used. It may be called twice.
func (r *process) stop() error {
	if kb := r.peak(); kb > 0 {
		r.peakKB = kb
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
	return r.failure()
}

// failure is how the program ended, with the end of its standard error, nil when well.
func (r *process) failure() error {
	if r.err == nil {
		return nil
	}
	const last = 2000
	stderr := bytes.TrimSpace(r.stderr.Bytes())
	return fmt.Errorf("%s: %w: %s", r.cmd.Args[1], r.err, stderr[max(0, len(stderr)-last):])
}

// peak is the most memory the program held until now, in KiB; 0 where the system
// has no such figure.
func (r *process) peak() int64 {
	value := field(filepath.Join("/proc", strconv.Itoa(r.cmd.Process.Pid), "status"), "VmHWM")
	kb, _ := strconv.ParseInt(strings.TrimSuffix(value, " kB"), 10, 64)
	return kb
}

// cpu is the processor time of a program that ended.
func (r *process) cpu() time.Duration {
	return r.cmd.ProcessState.UserTime() + r.cmd.ProcessState.SystemTime()
}

// await polls until ready says so. It fails when the program ends first, and with
// ctx.
func (r *process) await(ctx context.Context, every time.Duration, ready func(context.Context) (bool, error)) error {
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
			return errors.Join(fmt.Errorf("%s ended too early: %s", r.cmd.Args[1], r.stderr), r.failure())
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

// session is the product at work on a database.
type session struct {
	*process
	d      *database
	before int64 // position of the server's log
}

// serve starts the product with a configuration.
func (d *database) serve(ctx context.Context, p Program, config string) (s *session, err error) {
	s = &session{d: d}
	if s.before, err = d.server.wal(ctx); err != nil {
		return nil, err
	}
	s.process, err = p.start("serve", "--config", config)
	return s, err
}

// count adds what the server did so far.
func (s *session) count(ctx context.Context, u *Usage) error {
	now, err := s.d.server.wal(ctx)
	if err != nil {
		return err
	}
	cpu, err := s.d.cpu(ctx)
	u.WALMB, u.PostgresCPU = float64(now-s.before)/1e6, cpu.Seconds()
	return err
}

// end stops the product and adds what it took.
func (s *session) end(u *Usage) error {
	if err := s.stop(); err != nil {
		return err
	}
	u.CPU, u.PeakMB = s.cpu().Seconds(), float64(s.peakKB)/1024
	return nil
}
