package command

import "errors"

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
