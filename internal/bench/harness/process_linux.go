package harness

import (
	"os/exec"
	"syscall"
)

// dieWithParent ends the program when this process is killed.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
