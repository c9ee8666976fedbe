package gotemplate

import (
	"errors"
	"fmt"
	"time"
)

// ErrLimit is the error of a template that took too long, or whose output or values became too large. The error that
// wraps it says which limit was reached, and in which template.
var ErrLimit = errors.New("limit of a template")

// Limits bound what one component may need of the operator. A zero value is the default, there is no way to have no
// limit.
//
// Only one execution in the process may need more than 2 MiB at a time. Others that need more wait for it, as long as
// the context is not done, and at most for a minute. So many components together need little more than one. That wait
// does not count as Time. If it is too long, the error is a [generator.RetriableError], which names the component whose
// turn it is. An execution that looks something up lets others go on until it has the answer, and keeps what it needs
// until then.
type Limits struct {
	// Time is how long an execution may take, with what it looks up. Default: 10 seconds.
	Time time.Duration
	// Size is how many bytes all output and all values that the templates compute may have together. Default: 16 MiB,
	// which is ten times as much as large charts need.
	Size int64
	// Objects is how many objects a component may have. Default: 10,000.
	Objects int
}

// CheckObjects returns an error that wraps [ErrLimit] if a component must not have as many objects.
func (l Limits) CheckObjects(count int) error {
	if l.Objects <= 0 {
		l.Objects = defaultObjects
	}
	if count > l.Objects {
		return fmt.Errorf("%w: there are more than %d objects", ErrLimit, l.Objects)
	}
	return nil
}
