package storage_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/apis/example"

	"github.com/espalier-dev/espalier/testing/internal/storage"
)

func TestGive(t *testing.T) {
	s := storage.New(storage.Options{Revision: 9, Retention: -1})
	give := func(s *storage.Storage, revisions ...int64) (got []int64) {
		t.Helper()
		var entries []*storage.Entry
		for i, revision := range revisions {
			entries = append(entries, &storage.Entry{
				Key: "/given/" + string(rune('a'+i+int(s.Revision()))), Value: []byte("{}"), Revision: revision,
			})
		}
		if err := s.Give(entries...); err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			got = append(got, s.Entry(e.Key).Revision)
		}
		return got
	}
	if got, want := give(s, 0, 2, 9, 9, 0), []int64{1, 2, 9, 9, 3}; !slices.Equal(got, want) {
		t.Errorf("the entries have the revisions %v, want %v", got, want)
	}
	fork := s.Fork(nil)
	if got, want := give(fork, 20, 0, 0, 0, 0, 0, 0), []int64{20, 4, 5, 6, 7, 8, 21}; !slices.Equal(got, want) {
		t.Errorf("the entries of a fork have the revisions %v, want %v", got, want)
	}
	if got, want := give(s, 0), []int64{4}; !slices.Equal(got, want) {
		t.Errorf("the entry has the revision %v, want %v", got, want)
	}
	if s.Revision() != 9 || fork.Revision() != 21 {
		t.Errorf("the revisions are %d and %d, want 9 and 21", s.Revision(), fork.Revision())
	}
	err := s.Give(
		&storage.Entry{Key: "/given/x", Value: []byte("{}")},
		&storage.Entry{Key: "/given/large", Value: make([]byte, 2<<20)})
	if err == nil || !strings.Contains(err.Error(), "/given/large") || s.Entry("/given/x") != nil {
		t.Errorf("what is too large is given with the error %v", err)
	}
}

// TestGiveBetweenWrites reads the past, which has what was given, although revisions have no change.
func TestGiveBetweenWrites(t *testing.T) {
	f := newFixture(t, storage.Options{Retention: -1}).untransformed(t)
	before := f.create(t, "a", 0).ResourceVersion
	at := f.storage.Revision()
	watched := f.watch(t, from(before))
	err := f.storage.Give(&storage.Entry{
		Key: podKey("given"), Value: f.storage.Entry(podKey("a")).Value, Revision: at + 10,
		Show: func(_ []byte, into runtime.Object) error {
			into.(*example.Pod).Name = "shown"
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	f.label(t, "a", "b", nil)
	if got, want := f.storage.Revision(), at+11; got != want {
		t.Errorf("the revision is %d, want %d", got, want)
	}
	list, err := f.list(t.Context(), before)
	if err != nil || len(list.Items) != 2 || list.Items[0].Labels != nil || list.Items[1].Name != "shown" {
		t.Errorf("at revision %d there are %v, and the error is %v", at, list.Items, err)
	}
	if got := f.label(t, "given", "b", nil).Name; got != "a" {
		t.Errorf("who updates an object gets %s, want what is stored", got)
	}
	f.delete(t, "given")
	for _, want := range []string{"MODIFIED a", "MODIFIED a", "DELETED a"} {
		if got := describe(<-watched.ResultChan()); got != want {
			t.Errorf("the event is %s, want %s", got, want)
		}
	}
}
