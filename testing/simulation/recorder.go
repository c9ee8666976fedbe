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
	// muted says that what the story says and how it ends does not count. unsaid is what it said last, also when it
	// gave up by itself.
	muted  bool
	unsaid string
	// ended says that the story came to its end, and skipped that it gave up by itself.
	ended, skipped bool
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

// untold says why a story that did not fail shows nothing, and is empty if it was told to its end.
func (r *recorder) untold() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	why := ""
	switch {
	case r.failed:
		return ""
	case r.muted:
		why = "the user deleted the resource early, and the story ended before its own Delete of it, after which it " +
			"counts"
	case !r.ended:
		why = "the story did not come to its end"
	default:
		return ""
	}
	if r.unsaid != "" {
		why += ": " + r.unsaid
	}
	return why
}

// tell runs a story as run does, and takes down whether it came to its end.
func (r *recorder) tell(story func()) {
	r.run(func() {
		story()
		r.mu.Lock()
		defer r.mu.Unlock()
		r.ended = true
	})
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
	place, text := r.place(), fmt.Sprintf(format, args...)
	if !r.unsay(place + text) {
		r.fail(place, text)
	}
}

// unsay takes down what does not count, and reports whether that is so.
func (r *recorder) unsay(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.muted {
		r.unsaid, _, _ = strings.Cut(text, "\n")
	}
	return r.muted
}

// Skip implements [testing.TB]. A story that skips its test is not told to its end.
func (r *recorder) Skip(args ...any) { r.Skipf("%s", fmt.Sprintln(args...)) }

// Skipf implements [testing.TB].
func (r *recorder) Skipf(format string, args ...any) {
	text := r.place() + fmt.Sprintf(format, args...)
	r.mu.Lock()
	r.unsaid = strings.TrimSpace(text)
	r.mu.Unlock()
	r.SkipNow()
}

// SkipNow implements [testing.TB].
func (r *recorder) SkipNow() {
	r.mu.Lock()
	r.skipped = true
	r.mu.Unlock()
	runtime.Goexit()
}

// Skipped implements [testing.TB].
func (r *recorder) Skipped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.skipped
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
