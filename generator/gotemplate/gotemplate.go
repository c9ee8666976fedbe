package gotemplate

import (
	"errors"
	"time"
)

// ErrLimit is the error of a template that took too long, or whose output or values became too large. The error that
// wraps it says which limit was reached, and in which template.
var ErrLimit = errors.New("limit of a template")

// Limits bound one execution. A zero value is the default, there is no way to have no limit.
type Limits struct {
	// Time is how long an execution may take. Default: 10 seconds.
	Time time.Duration
	// Size is how many bytes all output and all values that the templates compute may have together. Default: 64 MiB.
	Size int64
}
