//go:build unix && !linux

package process

import (
	"os/exec"
	"syscall"
)

// ownGroup has a process start in a group of its own.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// waitWithGroup waits until a process has ended, and kills the others of its group.
func waitWithGroup(command *exec.Cmd) error {
	err := command.Wait()
	killGroup(command.Process.Pid)
	return err
}

// killGroup kills the processes of a group. There may be none.
func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

// limit does nothing: the system bounds only the process that asks.
func limit(int, Limits) {}
