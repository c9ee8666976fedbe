package testing

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// failOnPanic fails a test whose code panics, with the panic and the stack of that code. Other tests go on. Defer it.
func failOnPanic(t *testing.T) {
	if cause := recover(); cause != nil {
		t.Errorf("the row panicked: %v\n%s", cause, stackOfPanic())
	}
}

const (
	// maxFrames is how many calls of a stack are printed.
	maxFrames = 30
	// harnessPrefix begins the names of the functions of this package.
	harnessPrefix = "github.com/espalier-dev/espalier/testing."
)

// stackOfPanic returns the calls that led to the panic that a deferred function has recovered from, the innermost
// first. It leaves out those of the Go runtime and of the harness that called the code under test.
func stackOfPanic() string {
	counters := make([]uintptr, 256)
	frames := runtime.CallersFrames(counters[:runtime.Callers(1, counters)])
	var calls []runtime.Frame
	for more := true; more; {
		var frame runtime.Frame
		if frame, more = frames.Next(); frame.Function == "testing.tRunner" {
			break
		}
		if frame.Function == "runtime.gopanic" {
			calls = nil // what came before handles the panic
		}
		calls = append(calls, frame)
	}
	for len(calls) > 0 && strings.HasPrefix(calls[0].Function, "runtime.") {
		calls = calls[1:]
	}
	for len(calls) > 0 && strings.HasPrefix(calls[len(calls)-1].Function, harnessPrefix) {
		calls = calls[:len(calls)-1]
	}
	var b strings.Builder
	for _, call := range calls[:min(len(calls), maxFrames)] {
		fmt.Fprintf(&b, "%s\n\t%s:%d\n", call.Function, call.File, call.Line)
	}
	return b.String()
}
