package words

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// FailOnPanic fails a test whose code panics, with the panic and the stack of that code. Other tests go on. Defer it.
func FailOnPanic(t *testing.T) {
	if cause := recover(); cause != nil {
		t.Error(Panic(cause))
	}
}

// Panic says that a row panicked. It is for a deferred function that has recovered from that.
func Panic(cause any) string { return fmt.Sprintf("the row panicked: %v\n%s", cause, StackOfPanic()) }

// maxFrames is how many calls of a stack are printed.
const maxFrames = 30

// StackOfPanic returns the calls that led to the panic that a deferred function has recovered from, the innermost
// first. It leaves out those of the Go runtime and of the harness that called the code under test.
func StackOfPanic() string {
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
	for len(calls) > 0 && ofHarness(calls[len(calls)-1].Function) {
		calls = calls[:len(calls)-1]
	}
	var b strings.Builder
	for _, call := range calls[:min(len(calls), maxFrames)] {
		fmt.Fprintf(&b, "%s\n\t%s:%d\n", call.Function, call.File, call.Line)
	}
	return b.String()
}
