package pg

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// attr makes a command run as the account.
func (a *account) attr() *syscall.SysProcAttr {
	if a == nil {
		return &syscall.SysProcAttr{}
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}}
}

// detach keeps terminal signals from the server: it is stopped in order, after
// its users. Unless it shall outlive us, the kernel asks it for a fast shutdown
// when we die, however we die.
func detach(attr *syscall.SysProcAttr, outlive bool) {
	if outlive {
		attr.Setsid = true
		return
	}
	attr.Setpgid = true
	attr.Pdeathsig = syscall.SIGINT
}

// servesDir reports whether pid is a live server of that data directory: a
// postmaster works in its data directory.
func servesDir(pid int, data string) bool {
	cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
	return err == nil && cwd == data
}

// ownedBy reports whether a file belongs to a user.
func ownedBy(st fs.FileInfo, uid int) bool {
	sys, ok := st.Sys().(*syscall.Stat_t)
	return ok && int(sys.Uid) == uid
}
