//go:build !linux

package handler

import (
	"context"
	"errors"
)

// errLinux is returned where the kernel cannot bound programs.
var errLinux = errors.New("programs as handlers need Linux; use an HTTP or MCP handler")

func (p *program) run(context.Context) (outcome, error) { return outcome{}, errLinux }
