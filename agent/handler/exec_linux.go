package handler

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// run runs a program to its end, and ends it with ctx. The error says why it could not be started.
func (p *program) run(ctx context.Context) (end outcome, err error) {
	s, err := newStreams()
	if err != nil {
		return end, err
	}
	defer s.close()
	s.copy(p)
	childless(func() { end, err = p.follow(ctx, s) })
	s.drain()
	return end, err
}

// childless calls a function on a thread that has no children, and keeps the thread for it alone. Only the thread
// that starts a traced program can follow it, until it has no child left: one of another program that this process
// started on the same thread, such as a server of MCP, would be waited for, and its end be taken from its starter.
func childless(do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := unix.Waitid(unix.P_ALL, 0, nil,
			unix.WEXITED|unix.WSTOPPED|unix.WNOHANG|unix.WNOWAIT|unix.WALL|unix.WNOTHREAD,
			nil)
		if errors.Is(err, unix.ECHILD) {
			do()
			return
		}
		childless(do) // this thread is taken meanwhile
	}()
	<-done
}

// follow starts a program and returns when no process of its run is left.
func (p *program) follow(ctx context.Context, s *streams) (end outcome, err error) {
	t := &tree{tasks: map[int]bool{}, cpu: p.limits.cpu}
	var pidfd int
	t.main, pidfd, err = p.start(s)
	s.closeChild()
	if err != nil {
		return end, err
	}
	defer unix.Close(pidfd)
	// The descriptor names this process for ever, its number does not.
	sent := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(sent)
		_ = unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0) // a process that has ended takes no signal
	})
	t.wait()
	if !stop() {
		<-sent // before the descriptor is closed
	}
	return t.outcome, nil
}

// start starts a program under its limits, traced by this thread. Before that it takes from programs
// of the same user the right to read this process's environment and memory under /proc, where keys
// are.
func (p *program) start(s *streams) (pid, pidfd int, err error) {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return 0, 0, fmt.Errorf("hide this process: %w", err)
	}
	pid, err = syscall.ForkExec(p.path, p.args, &syscall.ProcAttr{Dir: p.dir, Env: p.env,
		Files: []uintptr{s.child[0].Fd(), s.child[1].Fd(), s.child[2].Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true, Ptrace: true, PidFD: &pidfd}})
	if err != nil {
		return 0, 0, err
	}
	if err := release(pid, p.limits); err != nil {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it is stopped and has no children
		_, _ = syscall.Wait4(pid, nil, syscall.WALL, nil)
		return 0, 0, errors.Join(err, unix.Close(pidfd))
	}
	return pid, pidfd, nil
}

// release sets the limits of a program that is stopped before its first instruction, and lets it run.
// From then on its children are traced too, and the kernel kills all when this process ends.
func release(pid int, l limits) error {
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(pid, &status, syscall.WALL, nil)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if !status.Stopped() {
		return errors.New("the program ended before its limits were set")
	}
	for what, limit := range map[int]unix.Rlimit{
		unix.RLIMIT_AS:    {Cur: l.memory, Max: l.memory},
		unix.RLIMIT_CPU:   {Cur: l.cpu, Max: l.cpu + 1}, // SIGXCPU first: SIGKILL alone does not tell why
		unix.RLIMIT_FSIZE: {Cur: maxFile, Max: maxFile},
		unix.RLIMIT_CORE:  {},
	} {
		if err := unix.Prlimit(pid, what, &limit, nil); err != nil {
			return fmt.Errorf("limit %d: %w", what, err)
		}
	}
	const follow = unix.PTRACE_O_EXITKILL | unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK |
		unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEEXEC
	if err := syscall.PtraceSetOptions(pid, follow); err != nil {
		return fmt.Errorf("trace children: %w", err)
	}
	return syscall.PtraceCont(pid, 0)
}

// tree are the processes and threads of a run. All methods MUST be called by the tracing thread.
type tree struct {
	main  int          // id of the first process
	tasks map[int]bool // ids of the others that live
	cpu   uint64       // limit, in seconds
	// ending is set when the first process has ended or the run was too large: all others are killed.
	ending bool
	outcome
}

// wait follows the run until no process is left: the kernel answers ECHILD then.
func (t *tree) wait() {
	for {
		var status syscall.WaitStatus
		var used syscall.Rusage
		id, err := syscall.Wait4(-1, &status, syscall.WALL|unix.WNOTHREAD, &used)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return
		case status.Stopped():
			t.stopped(id, status)
		case id == t.main:
			t.finished(status, &used)
			t.end()
		default:
			delete(t.tasks, id)
		}
	}
}

// stopped lets a task run on, or kills it when the run is over. A child stops once at its beginning.
func (t *tree) stopped(id int, status syscall.WaitStatus) {
	if first := id != t.main && !t.tasks[id]; first {
		t.tasks[id] = true
		if len(t.tasks) >= maxTasks && !t.ending {
			t.crowded = true
			_ = syscall.Kill(t.main, syscall.SIGKILL) // it lives: its end sets ending
			t.end()
		}
	}
	if t.ending {
		_ = syscall.Kill(id, syscall.SIGKILL) // it is stopped: its number is its own
		return
	}
	signal := 0
	switch s := status.StopSignal(); s {
	case syscall.SIGTRAP:
		if status.TrapCause() == unix.PTRACE_EVENT_EXEC {
			t.renamed(id)
		} else if status.TrapCause() == 0 {
			signal = int(s) // no event of ours
		}
	case syscall.SIGSTOP, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU:
	default:
		signal = int(s)
	}
	_ = syscall.PtraceCont(id, signal) // it fails for a task that was killed meanwhile
}

// renamed forgets the id of a thread that took its process's id by execve.
func (t *tree) renamed(id int) {
	if before, err := syscall.PtraceGetEventMsg(id); err == nil && int(before) != id {
		delete(t.tasks, int(before))
	}
}

// end kills all known tasks of the run. Those that are not known yet are killed when they first stop.
func (t *tree) end() {
	t.ending = true
	for id := range t.tasks {
		_ = syscall.Kill(id, syscall.SIGKILL) // it was not reaped: its number is its own
	}
}

// finished takes down how the first process ended.
func (t *tree) finished(status syscall.WaitStatus, used *syscall.Rusage) {
	t.ok = status.Exited() && status.ExitStatus() == 0
	t.text = fmt.Sprintf("exit status %d", status.ExitStatus())
	if !status.Signaled() {
		return
	}
	t.text = "signal: " + status.Signal().String()
	spent := time.Duration(used.Utime.Nano() + used.Stime.Nano())
	t.overCPU = status.Signal() == syscall.SIGXCPU ||
		status.Signal() == syscall.SIGKILL && spent >= time.Duration(t.cpu)*time.Second // it ignores SIGXCPU
}

// streams are the pipes of a program.
type streams struct {
	child  [3]*os.File // ends of the program
	ours   [3]*os.File
	copies sync.WaitGroup
}

// newStreams makes the pipes of a program. close and closeChild MUST be called.
func newStreams() (*streams, error) {
	s := &streams{}
	for i := range s.child {
		r, w, err := os.Pipe()
		if err != nil {
			s.closeChild()
			s.close()
			return nil, fmt.Errorf("pipe: %w", err)
		}
		if s.child[i], s.ours[i] = w, r; i == 0 {
			s.child[i], s.ours[i] = r, w
		}
	}
	return s, nil
}

// copy starts to give a program its input and to take its output.
func (s *streams) copy(p *program) {
	s.copies.Go(func() {
		_, _ = io.Copy(s.ours[0], bytes.NewReader(p.stdin)) // the program may end without reading it
		_ = s.ours[0].Close()
	})
	for i, to := range []io.Writer{p.stdout, p.stderr} {
		s.copies.Go(func() { _, _ = io.Copy(to, s.ours[i+1]) }) // the writer says where it is too much
	}
}

// drain waits for the rest of the output. A process that escaped may hold the pipes open.
func (s *streams) drain() {
	for _, f := range s.ours {
		_ = f.SetDeadline(time.Now().Add(waitDelay)) // it may be closed already
	}
	s.copies.Wait()
}

// closeChild closes the ends of the program.
func (s *streams) closeChild() {
	for _, f := range s.child {
		_ = f.Close() // nothing is written to it here
	}
}

// close closes the own ends.
func (s *streams) close() {
	for _, f := range s.ours {
		_ = f.Close() // all was read or given up
	}
}
