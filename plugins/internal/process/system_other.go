//go:build !unix

package process

import "syscall"

func ownGroup() *syscall.SysProcAttr { return nil }

func awaitEnd(int) {}

func killGroup(int) {}

func limit(int, Limits) {}
