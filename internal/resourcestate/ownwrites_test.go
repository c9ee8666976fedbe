package resourcestate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/resourcestate"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	start = time.Date(2025, 2, 3, 4, 5, 6, 0, time.UTC)
	// lag is how long a cache may lag.
	lag = 10 * time.Minute
)

func object(name string, uid types.UID, version string) *corev1.ConfigMap {
	meta := metav1.ObjectMeta{Namespace: "ns", Name: name, UID: uid, ResourceVersion: version}
	return &corev1.ConfigMap{ObjectMeta: meta}
}

func terminating(obj *corev1.ConfigMap) *corev1.ConfigMap {
	obj.DeletionTimestamp = &metav1.Time{Time: start}
	return obj
}

// versions describes objects by name and version. A nil object is "none".
func versions(objects ...client.Object) string {
	var texts []string
	for _, obj := range objects {
		text := "none"
		if obj != nil {
			text = obj.GetName() + "@" + obj.GetResourceVersion()
		}
		texts = append(texts, text)
	}
	slices.Sort(texts)
	return strings.Join(texts, " ")
}

func TestWhatIsBelievedOfAnObjectThatTheCacheShows(t *testing.T) {
	type writes = resourcestate.OwnWrites
	wrote := func(version string, created bool) func(*writes) {
		return func(w *writes) { w.Wrote(object("x", "1", version), created, start) }
	}
	deleted := func(w *writes) { w.Deleted(object("x", "1", "5"), start) }
	tests := map[string]struct {
		write  func(*writes)
		cached *corev1.ConfigMap
		after  time.Duration
		want   string
		// kept is true if the write is remembered afterwards.
		kept bool
	}{
		"no write":                      {func(*writes) {}, object("x", "1", "1"), 0, "x@1", false},
		"older than an update":          {wrote("5", false), object("x", "1", "4"), 0, "x@5", true},
		"versions are numbers":          {wrote("10", false), object("x", "1", "9"), 0, "x@10", true},
		"the version of an update":      {wrote("5", false), object("x", "1", "5"), 0, "x@5", false},
		"newer than an update":          {wrote("5", false), object("x", "1", "6"), 0, "x@6", false},
		"older than a create":           {wrote("5", true), object("x", "1", "4"), 0, "x@5", true},
		"older, after just ten minutes": {wrote("5", false), object("x", "1", "4"), lag, "x@5", true},
		"older, after ten minutes":      {wrote("5", false), object("x", "1", "4"), lag + 1, "x@4", false},
		"a version that is no number":   {wrote("5", false), object("x", "1", "abc"), 0, "x@abc", false},
		"written without a version":     {wrote("", false), object("x", "1", "4"), 0, "x@4", false},
		"the last of two writes": {func(w *writes) { wrote("5", false)(w); wrote("7", false)(w) },
			object("x", "1", "6"), 0, "x@7", true},
		"alive after a delete":             {deleted, object("x", "1", "5"), 0, "none", true},
		"newer after a delete":             {deleted, object("x", "1", "9"), 0, "none", true},
		"terminating after a delete":       {deleted, terminating(object("x", "1", "6")), 0, "x@6", false},
		"alive ten minutes after a delete": {deleted, object("x", "1", "5"), lag + 1, "x@5", false},
		"alive, and written as terminating": {func(w *writes) {
			w.Wrote(terminating(object("x", "1", "5")), false, start)
		}, object("x", "1", "7"), 0, "x@5", true},
		"written after a delete": {func(w *writes) { deleted(w); wrote("7", false)(w) },
			object("x", "1", "6"), 0, "x@7", true},
		"another object of the name": {wrote("5", false), object("x", "2", "4"), 0, "x@4", true},
		"another object":             {deleted, object("y", "2", "4"), 0, "y@4", true},
		"no UID, by name": {func(w *writes) { w.Wrote(object("x", "", "5"), false, start) },
			object("x", "", "4"), 0, "x@5", true},
		"no UID, another type": {func(w *writes) {
			w.Deleted(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x"}}, start)
		}, object("x", "", "4"), 0, "x@4", true},
		"no UID, another name": {func(w *writes) { w.Wrote(object("x", "", "5"), false, start) },
			object("y", "", "4"), 0, "y@4", true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var w writes
			tc.write(&w)
			if got := versions(w.Resolve(tc.cached, start.Add(tc.after))); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			if kept := w.Len() > 0; kept != tc.kept {
				t.Errorf("the write is remembered: %t, want %t", kept, tc.kept)
			}
		})
	}
}

func TestWhatIsBelievedIsACopy(t *testing.T) {
	var w resourcestate.OwnWrites
	w.Wrote(object("x", "1", "5"), true, start)
	w.Resolve(object("x", "1", "4"), start).SetResourceVersion("changed")
	if got := versions(w.Resolve(object("x", "1", "4"), start)); got != "x@5" {
		t.Errorf("Resolve returns %s after its result was changed, want x@5", got)
	}
	w.Wrote(object("y", "2", "5"), true, start)
	for range 2 {
		unseen, err := w.Unseen(t.Context(), nil, []client.Object{object("x", "1", "5")}, start)
		if err != nil || versions(unseen...) != "y@5" {
			t.Fatalf("Unseen returns %s (%v), want y@5", versions(unseen...), err)
		}
		unseen[0].SetResourceVersion("changed")
	}
}

// reader is an API server with one object.
type reader struct {
	client.Reader
	object *corev1.ConfigMap
	err    error
	reads  int
}

func (r *reader) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	r.reads++
	if r.err != nil {
		return r.err
	}
	if r.object == nil || client.ObjectKeyFromObject(r.object) != key {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, key.Name)
	}
	r.object.DeepCopyInto(obj.(*corev1.ConfigMap))
	return nil
}

func TestWhatIsBelievedOfAnObjectThatTheCacheDoesNotShow(t *testing.T) {
	type writes = resourcestate.OwnWrites
	created := func(w *writes) { w.Wrote(object("x", "1", "5"), true, start) }
	updated := func(w *writes) { w.Wrote(object("x", "1", "5"), false, start) }
	deleted := func(w *writes) { w.Deleted(object("x", "1", "5"), start) }
	seen := func(w *writes) { w.Resolve(object("x", "1", "4"), start) }
	do := func(steps ...func(*writes)) []func(*writes) { return steps }
	there := func() *reader { return &reader{object: object("x", "1", "7")} }
	failed := errors.New("failed")
	tests := map[string]struct {
		writes []func(*writes)
		shown  []client.Object
		// server is nil if there is no reader.
		server *reader
		after  time.Duration
		want   string
		err    error
		kept   bool
		reads  int
	}{
		"no write":              {server: there()},
		"created, and there":    {writes: do(created), server: there(), want: "x@7", kept: true, reads: 1},
		"created, and gone":     {writes: do(created), server: &reader{}, reads: 1},
		"created, and replaced": {writes: do(created), server: &reader{object: object("x", "2", "7")}, reads: 1},
		"created, unreadable":   {writes: do(created), server: &reader{err: failed}, err: failed, kept: true, reads: 1},
		"created before":        {writes: do(created), server: there(), after: lag + 1, want: "x@7", kept: true, reads: 1},
		"created, then updated": {writes: do(created, updated), server: there(), want: "x@7", kept: true, reads: 1},
		"created, then seen":    {writes: do(created, seen), server: there()},
		"created, and shown": {writes: do(created), shown: []client.Object{object("x", "1", "4")},
			server: there(), kept: true},
		"updated":               {writes: do(updated), server: there()},
		"deleted":               {writes: do(deleted), server: there()},
		"created and deleted":   {writes: do(created, deleted), server: there()},
		"deleted and updated":   {writes: do(deleted, updated), server: there()},
		"without a reader":      {writes: do(created), want: "x@5", kept: true},
		"not longer than a lag": {writes: do(created), after: lag, want: "x@5", kept: true},
		"longer than a lag":     {writes: do(created), after: lag + 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var w writes
			for _, write := range tc.writes {
				write(&w)
			}
			var server client.Reader
			if tc.server != nil {
				server = tc.server
			}
			unseen, err := w.Unseen(t.Context(), server, tc.shown, start.Add(tc.after))
			if got := versions(unseen...); got != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("got %q and the error %v, want %q and %v", got, err, tc.want, tc.err)
			}
			if kept := w.Len() > 0; kept != tc.kept {
				t.Errorf("the write is remembered: %t, want %t", kept, tc.kept)
			}
			if tc.server != nil && tc.server.reads != tc.reads {
				t.Errorf("the API server was asked %d times, want %d", tc.server.reads, tc.reads)
			}
		})
	}
}

// What the API server answered counts from then on, as if it had been written.
func TestAnUnseenObjectIsBelievedAsTheServerHasIt(t *testing.T) {
	var w resourcestate.OwnWrites
	w.Wrote(object("x", "1", "5"), true, start)
	if _, err := w.Unseen(t.Context(), &reader{object: object("x", "1", "7")}, nil, start); err != nil {
		t.Fatal(err)
	}
	if got := versions(w.Resolve(object("x", "1", "6"), start)); got != "x@7" {
		t.Errorf("got %s, want x@7", got)
	}
}

func TestOldWritesAreEvicted(t *testing.T) {
	var w resourcestate.OwnWrites
	if !w.Evict(start) {
		t.Error("without a write there is something left, want nothing")
	}
	w.Wrote(object("old", "1", "5"), true, start)
	w.Deleted(object("gone", "2", "5"), start)
	w.Wrote(object("new", "3", "5"), false, start.Add(time.Minute))
	for _, step := range []struct {
		after time.Duration
		left  int
	}{{0, 3}, {lag, 3}, {lag + 1, 1}, {lag + time.Minute, 1}, {lag + time.Minute + 1, 0}} {
		empty := w.Evict(start.Add(step.after))
		if w.Len() != step.left || empty != (step.left == 0) {
			t.Errorf("after %s: %d writes are left, want %d; empty: %t", step.after, w.Len(), step.left, empty)
		}
	}
}

// Run with -race.
func TestOwnWritesAreUsedConcurrently(t *testing.T) {
	var w resourcestate.OwnWrites
	var group sync.WaitGroup
	for g := range 8 {
		group.Go(func() {
			for i := range 200 {
				name := fmt.Sprint("x-", (g+i)%5)
				uid := types.UID(name)
				w.Wrote(object(name, uid, "5"), i%2 == 0, start)
				if got := w.Resolve(object(name, uid, "9"), start); got != nil && got.GetName() != name {
					t.Errorf("the object is %s, want %s", got.GetName(), name)
				}
				unseen, err := w.Unseen(t.Context(), nil, nil, start)
				if err != nil {
					t.Error(err)
				}
				for _, obj := range unseen {
					obj.SetResourceVersion("changed")
				}
				w.Deleted(object(name, uid, "5"), start)
				w.Evict(start.Add(time.Duration(i%2) * time.Hour))
				w.Len()
			}
		})
	}
	group.Wait()
	if !w.Evict(start.Add(time.Hour)) {
		t.Errorf("%d writes are left, want none", w.Len())
	}
}
