//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lock locks the file at path, which it creates if it does not exist, and calls wait before it blocks. The lock ends
// with a call of unlock, or with the process.
func lock(path string, wait func()) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		wait()
		for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
			err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
		}
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("could not lock %s: %w", path, err)
	}
	return func() { file.Close() }, nil
}
