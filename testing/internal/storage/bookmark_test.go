package storage_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	apistorage "k8s.io/apiserver/pkg/storage"

	"github.com/espalier-dev/espalier/testing/internal/storage"
)

// allowBookmarks are the options of a watch that clients begin.
func allowBookmarks(resourceVersion string) apistorage.ListOptions {
	opts := from(resourceVersion)
	opts.Predicate.AllowWatchBookmarks = true
	return opts
}

// A bookmark says what a watch was not told of, an interval after it happened, and nothing is sent before or after.
func TestBookmark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, storage.Options{})
		w, without := f.watch(t, allowBookmarks("1")), f.watch(t, from("1"))
		check := func(after time.Duration, want ...string) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if got := pending(w); !slices.Equal(got, want) {
				t.Errorf("after %v the watch got %q, want %q", after, got, want)
			}
		}
		check(365 * 24 * time.Hour)
		f.increase(t.Context(), t)
		f.increase(t.Context(), t)
		check(time.Minute - 1)
		check(1, "BOOKMARK 3")
		check(time.Hour)

		f.increase(t.Context(), t)
		f.create(t, "a", 0)
		check(time.Hour, "ADDED a")

		f.create(t, "b", 0)
		f.increase(t.Context(), t)
		check(time.Hour, "ADDED b", "BOOKMARK 7")
		if got, want := pending(without), []string{"ADDED a", "ADDED b"}; !slices.Equal(got, want) {
			t.Errorf("a watch without bookmarks got %q, want %q", got, want)
		}
	})
}

// Bookmarks go on during a stream of changes that do not concern a watch.
func TestBookmarksWhileOthersChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, storage.Options{BookmarkInterval: 10500 * time.Millisecond})
		w := f.watch(t, allowBookmarks("1"))
		for range 60 {
			time.Sleep(time.Second)
			f.increase(t.Context(), t)
		}
		synctest.Wait()
		want := []string{"BOOKMARK 12", "BOOKMARK 23", "BOOKMARK 34", "BOOKMARK 45", "BOOKMARK 56"}
		if got := pending(w); !slices.Equal(got, want) {
			t.Errorf("the watch got %q, want %q", got, want)
		}
	})
}

// A bookmark says nothing that an event at the same time has said.
func TestBookmarkAtTheTimeOfAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, storage.Options{})
		w := f.watch(t, allowBookmarks("1"))
		for range 100 {
			name := fmt.Sprint(f.increase(t.Context(), t))
			time.Sleep(time.Minute)
			f.create(t, name, 0)
			time.Sleep(time.Hour)
			got := pending(w)
			if last := len(got) - 1; got[last] != "ADDED "+name || last > 1 {
				t.Errorf("the watch got %q, want the event at the end", got)
			}
		}
	})
}

func TestNoBookmarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, storage.Options{BookmarkInterval: -1})
		initial := true
		opts := allowBookmarks("")
		opts.SendInitialEvents = &initial
		w := f.watch(t, opts)
		f.increase(t.Context(), t)
		time.Sleep(time.Hour)
		if got, want := pending(w), []string{"BOOKMARK 1"}; !slices.Equal(got, want) {
			t.Errorf("the watch got %q, want only the end of its initial events: %q", got, want)
		}
	})
}

// RequestWatchProgress has watches with progress notifications tell the revision at once, even if it is the old one.
func TestRequestWatchProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, storage.Options{})
		f.create(t, "a", 0)
		opts := from("2")
		opts.ProgressNotify = true
		w, without := f.watch(t, opts), f.watch(t, allowBookmarks("2"))
		for _, want := range []string{"BOOKMARK 2", "BOOKMARK 2"} {
			if err := f.RequestWatchProgress(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if got := pending(w); !slices.Equal(got, []string{want}) {
				t.Errorf("the watch got %q, want %q", got, want)
			}
		}
		f.create(t, "b", 0)
		if err := f.RequestWatchProgress(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got, want := pending(w), []string{"ADDED b", "BOOKMARK 3"}; !slices.Equal(got, want) {
			t.Errorf("the watch got %q, want %q", got, want)
		}
		if got, want := pending(without), []string{"ADDED b"}; !slices.Equal(got, want) {
			t.Errorf("a watch without progress notifications got %q, want %q", got, want)
		}
	})
}
