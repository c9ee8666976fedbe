package simulation

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
)

// recorder takes down what a story says to its test, so that a story may fail in an attempt without the test failing.
// It is safe for concurrent use.
type recorder struct {
	testing.TB
	// helpers are the names of functions that called Helper.
	helpers sync.Map

	mu       sync.Mutex
	failed   bool
	messages []string
	cleanups []func()
	// note is told of each failure.
	note func(text string)
	// muted says that what the story says and how it ends does not count.
	muted bool
}

// mute says whether what the story says counts from now on.
func (r *recorder) mute(muted bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.muted = muted
}

func (r *recorder) isMuted() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.muted
}

// run runs a story to its end, or to its first fatal failure. A panic of the story is a failure.
func (r *recorder) run(story func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if reason := recover(); reason != nil {
				r.Errorf("the story panicked: %v\n%s", reason, debug.Stack())
			}
		}()
		story()
	}()
	<-done
}

// cleanUp calls what was given to Cleanup, last first.
func (r *recorder) cleanUp() {
	for len(r.cleanups) > 0 {
		last := len(r.cleanups) - 1
		f := r.cleanups[last]
		r.cleanups = r.cleanups[:last]
		r.run(f)
	}
}

// text returns what was said.
func (r *recorder) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.messages, "\n")
}

func (r *recorder) say(message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.messages = append(r.messages, strings.TrimSuffix(message, "\n"))
}

// noteFailure has each failure noted where it happens, in one line.
func (r *recorder) noteFailure(note func(text string)) { r.note = note }

// fail is as say for a failure at a place, which may be empty.
func (r *recorder) fail(place, message string) {
	r.say(place + message)
	if r.note != nil {
		first, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
		r.note("the story fails: " + first)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
}

// Failed implements [testing.TB].
func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// Fail implements [testing.TB].
func (r *recorder) Fail() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = r.failed || !r.muted
}

// FailNow implements [testing.TB].
func (r *recorder) FailNow() {
	r.Fail()
	runtime.Goexit()
}

// Log implements [testing.TB].
func (r *recorder) Log(args ...any) { r.say(r.place() + fmt.Sprintln(args...)) }

// Logf implements [testing.TB].
func (r *recorder) Logf(format string, args ...any) { r.say(r.place() + fmt.Sprintf(format, args...)) }

// Error implements [testing.TB].
func (r *recorder) Error(args ...any) { r.Errorf("%s", fmt.Sprintln(args...)) }

// Errorf implements [testing.TB].
func (r *recorder) Errorf(format string, args ...any) {
	if !r.isMuted() {
		r.fail(r.place(), fmt.Sprintf(format, args...))
	}
}

// Fatal implements [testing.TB].
func (r *recorder) Fatal(args ...any) {
	r.Error(args...)
	runtime.Goexit()
}

// Fatalf implements [testing.TB].
func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// Cleanup implements [testing.TB]. The function is called when the story has ended, while the cluster is still there.
func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}
