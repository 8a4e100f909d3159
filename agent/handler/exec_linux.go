package handler

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// attributes start a program in a session of its own, so that its children can be killed together,
// and stopped before its first instruction, so that it cannot run without its limits.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true, Ptrace: true} }

// start starts a program under limits. Before that it takes from programs of the same user the right
// to read this process's environment and memory under /proc, where keys are. The thread that starts a
// traced program MUST also release it.
func start(cmd *exec.Cmd, l limits) error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("hide this process: %w", err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := release(cmd.Process.Pid, l); err != nil {
		_ = killGroup(cmd.Process.Pid) // it is stopped and has no children
		_ = cmd.Wait()                 // the error is that of the release
		return err
	}
	return nil
}

// release sets the limits of a stopped program and lets it run.
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
		unix.RLIMIT_AS:   {Cur: l.memory, Max: l.memory},
		unix.RLIMIT_CPU:  {Cur: l.cpu, Max: l.cpu + 1}, // SIGXCPU first: SIGKILL alone does not tell why
		unix.RLIMIT_CORE: {},
	} {
		if err := unix.Prlimit(pid, what, &limit, nil); err != nil {
			return fmt.Errorf("limit %d: %w", what, err)
		}
	}
	return syscall.PtraceDetach(pid)
}

// killGroup kills the processes that did not leave the program's group.
func killGroup(leader int) error {
	if err := syscall.Kill(-leader, syscall.SIGKILL); !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}

// killAll kills what a program left behind: its group, and the processes that carry the mark of the
// run in their environment. It repeats until none is left, because a process can start another while
// the list is read.
func killAll(leader int, run string) {
	_ = killGroup(leader) // what cannot be signaled is not ours
	for range 50 {
		found := false
		for _, pid := range marked(run) {
			found = true
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if !found {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// marked lists the processes that carry the mark of a run.
func marked(run string) (out []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is well-formed
	for _, file := range files {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			continue
		}
		env, err := os.ReadFile(file)
		if err == nil && bytes.Contains(env, []byte(run)) {
			out = append(out, pid)
		}
	}
	return out
}

// overCPU reports whether a program was killed because it used up its CPU time.
func overCPU(state *os.ProcessState, seconds uint64) bool {
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return false
	}
	used := state.UserTime() + state.SystemTime()
	return status.Signal() == syscall.SIGXCPU ||
		status.Signal() == syscall.SIGKILL && used >= time.Duration(seconds)*time.Second // it ignores SIGXCPU
}
