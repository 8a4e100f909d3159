//go:build unix && !linux

package pg

import (
	"errors"
	"syscall"
)

// detach keeps terminal signals from the server. Without a parent-death signal
// a server whose parent was killed stays until the next Start in its directory.
func detach(attr *syscall.SysProcAttr, outlive bool) {
	if outlive {
		attr.Setsid = true
		return
	}
	attr.Setpgid = true
}

// servesDir reports whether a process with that pid is alive. It cannot find out which directory the process serves,
// and trusts the pid file that named it.
func servesDir(pid int, _ string) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
