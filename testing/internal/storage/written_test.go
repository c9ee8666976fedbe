package storage_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/apis/example"
	apistorage "k8s.io/apiserver/pkg/storage"

	"github.com/espalier-dev/espalier/testing/internal/storage"
)

// record has what was written to a storage.
type record struct {
	entries  map[string]*storage.Entry
	revision int64
	// full has writes be refused.
	full atomic.Bool
}

var errFull = errors.New("no space left on device")

func (r *record) written(_ context.Context, e *storage.Entry) error {
	if r.full.Load() {
		return errFull
	}
	if r.entries == nil {
		r.entries = map[string]*storage.Entry{}
	}
	r.entries[e.Key], r.revision = e, e.Revision
	if e.Value == nil {
		delete(r.entries, e.Key)
	}
	return nil
}

// TestWriteIsRefused has writes that cannot be kept.
func TestWriteIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &record{}
		f := newFixture(t, storage.Options{Written: r.written})
		created := f.create(t, "a", 0)
		w := f.watch(t, from(created.ResourceVersion))
		r.full.Store(true)
		label := func(obj runtime.Object, _ apistorage.ResponseMeta) (runtime.Object, *uint64, error) {
			obj.(*example.Pod).Labels = map[string]string{"label": "1"}
			return obj, nil, nil
		}
		for name, err := range map[string]error{
			"/pods/ns/b": f.Create(t.Context(), podKey("b"), newPod("b"), &example.Pod{}, 0),
			"/pods/ns/a": f.GuaranteedUpdate(t.Context(), podKey("a"), &example.Pod{}, false, nil, label, nil),
			"/pods/ns/a ": f.Delete(t.Context(), podKey("a"), &example.Pod{}, nil, apistorage.ValidateAllObjectFunc, nil,
				apistorage.DeleteOptions{}),
		} {
			want := "Internal error occurred: keep what is written to " + name[:10] + ": no space left on device"
			if !apierrors.IsInternalError(err) || err.Error() != want {
				t.Errorf("%s: the error is %v, want %s", name, err, want)
			}
		}
		list, err := f.list(t.Context(), "")
		if err != nil || len(list.Items) != 1 || list.Items[0].Labels != nil || list.ResourceVersion != created.ResourceVersion {
			t.Errorf("there are %v, %v; want the first pod alone, as it was", list, err)
		}
		r.full.Store(false)
		if got := f.create(t, "b", 0).ResourceVersion; got != "3" {
			t.Errorf("the next write has the revision %s, want 3", got)
		}
		synctest.Wait()
		if got, want := pending(w), []string{"ADDED b"}; !slices.Equal(got, want) {
			t.Errorf("the watch got %q, want %q", got, want)
		}
	})
}

// TestExpiryIsRefused has objects that expire while nothing can be written.
func TestExpiryIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &record{}
		f := newFixture(t, storage.Options{Written: r.written})
		f.create(t, "a", 60)
		f.create(t, "b", 60)
		time.Sleep(59 * time.Second)
		r.full.Store(true)
		time.Sleep(10*time.Second + time.Millisecond)
		if !f.exists(t, "a") {
			t.Error("the object is gone, although that could not be written")
		}
		r.full.Store(false)
		f.label(t, "b", "1", seconds(60))
		time.Sleep(time.Second)
		if f.exists(t, "a") || !f.exists(t, "b") {
			t.Error("an object that has expired is there, or one that has not is gone")
		}
		time.Sleep(time.Minute)
		if f.exists(t, "b") {
			t.Error("an object that has expired is there")
		}
		f.create(t, "c", 1)
		r.full.Store(true)
		time.Sleep(2 * time.Second)
		f.storage.Close()
	})
}

// TestEntriesAreTakenOver begins with what another storage had.
func TestEntriesAreTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &record{}
		first := newFixture(t, storage.Options{Written: r.written})
		a := first.create(t, "a", 0)
		first.create(t, "b", 0)
		first.create(t, "short", 30)
		first.create(t, "long", 90)
		first.label(t, "a", "1", nil)
		first.delete(t, "b")
		before, err := first.list(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		first.storage.Close()
		again := func() *fixture {
			return newFixture(t, storage.Options{
				Written: r.written, Entries: slices.Collect(maps.Values(r.entries)), Revision: r.revision,
			})
		}
		f := again()
		after, err := f.list(t.Context(), "")
		if diff := cmp.Diff(before, after); err != nil || diff != "" {
			t.Errorf("the objects are not the same: %v\n%s", err, diff)
		}
		_, err = f.list(t.Context(), a.ResourceVersion)
		if !apierrors.IsResourceExpired(err) {
			t.Errorf("a list of a resource version of the first storage: the error is %v, want that it has expired", err)
		}
		last := before.ResourceVersion
		tooOld, inTime := f.watch(t, from(a.ResourceVersion)), f.watch(t, from(last))
		if got := f.create(t, "c", 0).ResourceVersion; got != "8" {
			t.Errorf("the first write of the second storage has the revision %s, want 8", got)
		}
		synctest.Wait()
		if got, want := pending(tooOld), []string{"ERROR Expired 410", "end"}; !slices.Equal(got, want) {
			t.Errorf("a watch from the first storage got %q, want %q", got, want)
		}
		if got, want := pending(inTime), []string{"ADDED c"}; !slices.Equal(got, want) {
			t.Errorf("a watch from the last revision of the first storage got %q, want %q", got, want)
		}
		f.storage.Close()
		time.Sleep(time.Minute)
		f = again()
		synctest.Wait()
		if f.exists(t, "short") || !f.exists(t, "long") {
			t.Error("an object that has expired meanwhile is there, or one that has not is gone")
		}
		time.Sleep(31 * time.Second)
		if f.exists(t, "long") {
			t.Error("an object that has expired is there")
		}
	})
}
