//go:build unix && !linux

package pg

import (
	"errors"
	"io/fs"
	"syscall"
)

// attr makes a command run as the account.
func (a *account) attr() *syscall.SysProcAttr {
	if a == nil {
		return &syscall.SysProcAttr{}
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}}
}

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

// ownedBy reports whether a file belongs to a user.
func ownedBy(st fs.FileInfo, uid int) bool {
	sys, ok := st.Sys().(*syscall.Stat_t)
	return ok && int(sys.Uid) == uid
}
