package command

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/release"
)

// The exit codes of commands that say how a component is. Those of diff are as the ones of kubectl diff: 0 without a
// difference, 1 with one, and 2 after an error.
const (
	exitFailed      = 1
	exitNotReady    = 2
	exitBlocked     = 3
	exitInterrupted = 130

	exitDiffers    = 1
	exitDiffFailed = 2
)

// exitError is an error with an exit code of its own. Without a cause, nothing is printed.
type exitError struct {
	code  int
	cause error
}

func (e *exitError) Error() string {
	if e.cause == nil {
		return ""
	}
	return e.cause.Error()
}

func (e *exitError) Unwrap() error { return e.cause }

// ExitCode returns the exit code of the program after an error of its command, 0 after none.
func ExitCode(err error) int {
	var exit *exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.code
	}
	return exitFailed
}

// ended returns an error with the exit code that the end of the context stands for, if that is why there is one.
func ended(ctx context.Context, err error) error {
	var exit *exitError
	if err == nil || ctx.Err() == nil || errors.As(err, &exit) {
		return err
	}
	cause := context.Cause(ctx)
	if !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	if errors.Is(cause, release.ErrTimeout) {
		return &exitError{exitNotReady, err}
	}
	return &exitError{exitInterrupted, err}
}

// interruptible is a reader whose calls return when the context ends, such as those that wait for another program.
type interruptible struct {
	ctx context.Context
	io.Reader
}

func (i interruptible) Read(p []byte) (int, error) {
	type result struct {
		content []byte
		err     error
	}
	read := make(chan result, 1)
	go func() {
		content := make([]byte, len(p))
		n, err := i.Reader.Read(content)
		read <- result{content[:n], err}
	}()
	select {
	case <-i.ctx.Done():
		return 0, context.Cause(i.ctx)
	case r := <-read:
		return copy(p, r.content), r.err
	}
}
