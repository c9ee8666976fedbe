//go:build !unix

package process

import (
	"os/exec"
	"syscall"
)

func ownGroup() *syscall.SysProcAttr { return nil }

func waitWithGroup(command *exec.Cmd) error { return command.Wait() }

func killGroup(int) {}

func limit(int, Limits) {}
