//go:build !linux

package handler

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// errLinux is returned where the kernel cannot bound programs.
var errLinux = errors.New("programs as handlers need Linux; use an HTTP or MCP handler")

func attributes() *syscall.SysProcAttr { return nil }

func start(*exec.Cmd, limits) error { return errLinux }

func killGroup(int) error { return errLinux }

func killAll(int, string) {}

func overCPU(*os.ProcessState, uint64) bool { return false }
