package pg

import (
	"fmt"
	"os"
	"syscall"
)

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
