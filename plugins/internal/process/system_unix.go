//go:build unix && !linux

package process

import "syscall"

// ownGroup has a process start in a group of its own.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// awaitEnd does nothing: the system cannot tell without letting somebody else have the ID.
func awaitEnd(int) {}

// killGroup kills the processes of a group. There may be none.
func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

// limit does nothing: the system bounds only the process that asks.
func limit(int, Limits) {}
