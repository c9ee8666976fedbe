package server

import (
	"slices"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// init removes the handler of errors that lets a goroutine sleep if the last error was less than a millisecond before.
// It compares the clocks of all bubbles and the real one: in a bubble, which begins in the year 2000, the first error
// that a library reports would be followed by decades of sleep, for example in a goroutine that watches. The handler
// before it, which logs, stays.
func init() {
	utilruntime.ErrorHandlers = slices.Delete(utilruntime.ErrorHandlers, 1, 2)
}
