package storage_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	apistorage "k8s.io/apiserver/pkg/storage"

	"github.com/espalier-dev/espalier/testing/internal/storage"
)

// Changes are kept for the retention and no longer. What is older is compacted by the next write.
func TestRetention(t *testing.T) {
	tests := map[string]struct {
		retention, age time.Duration
		expired        bool
	}{
		"default, at its end":  {0, 5 * time.Minute, false},
		"default, after it":    {0, 5*time.Minute + 1, true},
		"shorter":              {time.Second, time.Second + 1, true},
		"longer":               {time.Hour, 5*time.Minute + 1, false},
		"for ever after years": {-1, 100 * 365 * 24 * time.Hour, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, storage.Options{Retention: test.retention})
				first := f.create(t, "a", 0)
				f.label(t, "a", "1", nil)
				time.Sleep(test.age)
				if list, err := f.list(t.Context(), first.ResourceVersion); err != nil || len(list.Items) != 1 {
					t.Fatalf("before the next write: %d pods, error %v", len(list.Items), err)
				}
				f.create(t, "b", 0)
				list, err := f.list(t.Context(), first.ResourceVersion)
				if apierrors.IsResourceExpired(err) != test.expired {
					t.Errorf("listed with error %v, want expired to be %v", err, test.expired)
				}
				if err == nil && (len(list.Items) != 1 || list.Items[0].Labels != nil) {
					t.Errorf("listed %v, want the first pod without label", list.Items)
				}
				if got := f.CompactRevision() > 0; got != test.expired {
					t.Errorf("the compact revision is %d", f.CompactRevision())
				}
			})
		})
	}
}

// A watch reads on from a compacted revision, but not from one before it.
func TestWatchFromCompactedRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, storage.Options{})
		first := f.create(t, "a", 0)
		second := f.create(t, "b", 0)
		f.create(t, "c", 0)
		f.storage.Compact(3)
		tooOld, inTime := f.watch(t, from(first.ResourceVersion)), f.watch(t, from(second.ResourceVersion))
		synctest.Wait()
		if got, want := pending(tooOld), []string{"ERROR Expired 410", "end"}; !slices.Equal(got, want) {
			t.Errorf("a watch from before the compaction got %q, want %q", got, want)
		}
		if got, want := pending(inTime), []string{"ADDED c"}; !slices.Equal(got, want) {
			t.Errorf("a watch from the compacted revision got %q, want %q", got, want)
		}
	})
}

// A revision that has not been written stands for the last one, and a compaction is never undone.
func TestCompactBounds(t *testing.T) {
	f := newFixture(t, storage.Options{})
	f.create(t, "a", 0)
	for _, step := range []struct{ to, want int64 }{{-1, 0}, {0, 0}, {100, 2}, {1, 2}, {2, 2}} {
		f.storage.Compact(step.to)
		if got := f.CompactRevision(); got != step.want {
			t.Errorf("after a compaction to %d the compact revision is %d, want %d", step.to, got, step.want)
		}
	}
	if list, err := f.list(t.Context(), "2"); err != nil || len(list.Items) != 1 {
		t.Errorf("a list of the last revision has %d pods and error %v, want 1", len(list.Items), err)
	}
}

// A client that does not read loses nothing: its watch waits. Once a compaction has overtaken the watch, it ends with
// 410 after the events that it had still seen.
func TestSlowWatch(t *testing.T) {
	const writes = 100
	for name, compact := range map[string]bool{"waits": false, "overtaken by a compaction": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, storage.Options{})
				w := f.watch(t, from("1"))
				for i := range writes {
					f.create(t, fmt.Sprintf("pod-%03d", i), 0)
					synctest.Wait()
				}
				if compact {
					f.storage.Compact(f.storage.Revision())
				}
				got := drain(w)
				for i, event := range got[:len(got)-1] {
					if want := fmt.Sprintf("ADDED pod-%03d", i); event != want {
						t.Fatalf("event %d is %q, want %q", i, event, want)
					}
				}
				last, want := got[len(got)-1], fmt.Sprintf("ADDED pod-%03d", writes-1)
				if compact {
					want = "ERROR Expired 410"
				}
				if last != want {
					t.Errorf("the last event is %q, want %q", last, want)
				}
			})
		})
	}
}

// drain reads events until there are no more, and stops at the end of the watch.
func drain(w watch.Interface) []string {
	var got []string
	for {
		synctest.Wait()
		select {
		case event, ok := <-w.ResultChan():
			if !ok {
				return got
			}
			got = append(got, describe(event))
		default:
			return got
		}
	}
}

// The token of a list that cannot be continued leads to the rest at the current revision.
func TestContinueAfterCompaction(t *testing.T) {
	f := newFixture(t, storage.Options{})
	for _, name := range []string{"a", "b", "c"} {
		f.create(t, name, 0)
	}
	page := func(ctx context.Context, token string, limit int64) (*example.PodList, error) {
		list := &example.PodList{}
		predicate := apistorage.Everything
		predicate.Limit, predicate.Continue = limit, token
		return list, f.GetList(ctx, "/pods/", apistorage.ListOptions{Predicate: predicate, Recursive: true}, list)
	}
	first, err := page(t.Context(), "", 1)
	if err != nil {
		t.Fatal(err)
	}
	f.delete(t, "b")
	if rest, err := page(t.Context(), first.Continue, 0); err != nil || len(rest.Items) != 2 {
		t.Errorf("the rest has %d pods and error %v, want 2: those of the first page's revision", len(rest.Items), err)
	}
	f.storage.Compact(f.storage.Revision())
	_, err = page(t.Context(), first.Continue, 0)
	if !apierrors.IsResourceExpired(err) {
		t.Fatalf("continued with error %v, want expired", err)
	}
	token := err.(apierrors.APIStatus).Status().Continue
	if rest, err := page(t.Context(), token, 0); err != nil || len(rest.Items) != 1 || rest.Items[0].Name != "c" {
		t.Errorf("the rest is %v with error %v, want pod c", rest.Items, err)
	}
}
