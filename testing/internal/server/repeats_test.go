package server_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/testing/internal/server"
	"github.com/espalier-dev/espalier/testing/internal/storage"
)

// repeating returns a world that repeats what others with its history have done.
func (w world) repeating() world {
	w.ctx = server.World{Storage: w.Storage, Repeats: true}.In(w.Context())
	return w
}

// shown returns the entries of a storage, and its changes.
func shown(kept *storage.Storage) (shown string) {
	show := func(e *storage.Entry) string {
		if e == nil {
			return "nothing"
		}
		return fmt.Sprint(e.Key, e.Revision, e.Given, string(e.Value))
	}
	for _, e := range kept.Entries("/") {
		shown += show(e) + "\n"
	}
	for _, c := range kept.Changes(0) {
		shown += fmt.Sprintln(c.Revision, show(c.Before), show(c.After), c.Writer)
	}
	return shown
}

// TestWorldRepeats makes the same requests in a world that repeats nothing, and in two that do: the second repeats what
// was done in the first.
func TestWorldRepeats(t *testing.T) {
	var now time.Time
	base := worldOf(t, shared(t), func() time.Time { return now })
	work := func(w world) (world, string) {
		now = time.Unix(1_000_000_000, 0)
		answers := w.work(func() { now = now.Add(time.Minute) })
		return w, answers + shown(w.Storage)
	}
	_, want := work(base.fork())
	first, got := work(base.fork().repeating())
	if got != want {
		t.Errorf("a world that may repeat did\n%s\none that may not did\n%s", got, want)
	}
	second, got := work(base.fork().repeating())
	if got != want {
		t.Errorf("a world that repeats did\n%s\none that does not did\n%s", got, want)
	}
	for _, e := range first.Entries("/") {
		if second.Entry(e.Key) != e {
			t.Errorf("%s was written by a request of its own", e.Key)
		}
	}
}

// TestWorldRepeatsNothingElse makes one request at other times, by others, and after other ones.
func TestWorldRepeatsNothingElse(t *testing.T) {
	now := time.Unix(1_000_000_000, 0)
	base := worldOf(t, shared(t), func() time.Time { return now })
	create := func(w world) *storage.Entry {
		w.Helper()
		obj := configMap("a")
		w.create(obj)
		return w.Entry("/configmaps/default/a")
	}
	first := create(base.fork().repeating())
	if create(base.fork().repeating()) != first {
		t.Error("the same request was made again")
	}
	differs := func(what string, w world) {
		t.Helper()
		if create(w) == first {
			t.Error("it was repeated", what)
		}
	}
	by := base.fork().repeating()
	by.ctx = storage.As(by.ctx, "somebody")
	differs("for another writer", by)
	after := base.fork().repeating()
	after.create(configMap("b"))
	differs("after another request", after)
	given := base.fork()
	given.must(server.World{Storage: given.Storage}.Give(worldScheme()))
	differs("in a world that was given something", given.repeating())
	differs("in a world that does not repeat", base.fork())
	now = now.Add(time.Second)
	differs("at another time", base.fork().repeating())
}
