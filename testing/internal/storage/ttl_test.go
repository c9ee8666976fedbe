package storage_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/apis/example"
	apistorage "k8s.io/apiserver/pkg/storage"

	"github.com/espalier-dev/espalier/testing/internal/storage"
)

func seconds(ttl uint64) *uint64 { return &ttl }

func TestTimeToLive(t *testing.T) {
	const ttl = 60
	tests := map[string]struct {
		// does happens half a minute after the creation with a time to live of a minute.
		does func(t *testing.T, f *fixture)
		// lives is how long the pod is there after its creation, 0 for ever.
		lives time.Duration
		want  []string
	}{
		"of creation": {
			does:  func(*testing.T, *fixture) {},
			lives: time.Minute,
			want:  []string{"ADDED a", "DELETED a"},
		},
		"kept by an update": {
			does:  func(t *testing.T, f *fixture) { f.label(t, "a", "1", nil) },
			lives: time.Minute,
			want:  []string{"ADDED a", "MODIFIED a", "DELETED a"},
		},
		"set anew by an update": {
			does:  func(t *testing.T, f *fixture) { f.label(t, "a", "1", seconds(ttl)) },
			lives: 90 * time.Second,
			want:  []string{"ADDED a", "MODIFIED a", "DELETED a"},
		},
		"removed by an update": {
			does: func(t *testing.T, f *fixture) { f.label(t, "a", "1", seconds(0)) },
			want: []string{"ADDED a", "MODIFIED a"},
		},
		"not that of a deleted object": {
			does: func(t *testing.T, f *fixture) { f.delete(t, "a"); f.create(t, "a", 0) },
			want: []string{"ADDED a", "DELETED a", "ADDED a"},
		},
		"stopped with the storage": {
			does: func(_ *testing.T, f *fixture) { f.storage.Close() },
			want: []string{"ADDED a"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, storage.Options{})
				w := f.watch(t, from("0"))
				f.create(t, "a", ttl)
				time.Sleep(30 * time.Second)
				test.does(t, f)
				if test.lives != 0 {
					time.Sleep(test.lives - 30*time.Second - time.Nanosecond)
					if synctest.Wait(); !f.exists(t, "a") {
						t.Fatal("expired too early")
					}
					time.Sleep(time.Nanosecond)
				} else {
					time.Sleep(time.Hour)
				}
				synctest.Wait()
				if exists, want := f.exists(t, "a"), test.lives == 0; exists != want {
					t.Errorf("exists is %v, want %v", exists, want)
				}
				if got := pending(w); !slices.Equal(got, test.want) {
					t.Errorf("the watch got %q, want %q", got, test.want)
				}
			})
		})
	}
}

// An update is told how long the object has to live.
func TestTimeToLiveOfUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, storage.Options{})
		f.create(t, "a", 60)
		f.create(t, "b", 0)
		time.Sleep(20 * time.Second)
		for name, want := range map[string]int64{"a": 40, "b": 0} {
			update := func(obj runtime.Object, meta apistorage.ResponseMeta) (runtime.Object, *uint64, error) {
				if meta.TTL != want {
					t.Errorf("pod %s has %d seconds to live, want %d", name, meta.TTL, want)
				}
				return obj, nil, nil
			}
			err := f.GuaranteedUpdate(t.Context(), podKey(name), &example.Pod{}, false, nil, update, nil)
			if err != nil {
				t.Error(err)
			}
		}
	})
}

// An expired object is deleted like any other: with a revision of its own, which the event has.
func TestExpiryHasRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, storage.Options{})
		created := f.create(t, "a", 1)
		w := f.watch(t, from(created.ResourceVersion))
		time.Sleep(time.Hour)
		if got, want := f.storage.Revision(), int64(3); got != want {
			t.Fatalf("the revision is %d, want %d", got, want)
		}
		event := <-w.ResultChan()
		if rv, err := f.Versioner().ObjectResourceVersion(event.Object); err != nil || rv != 3 {
			t.Errorf("the event has revision %d and error %v, want 3", rv, err)
		}
		list, err := f.list(t.Context(), created.ResourceVersion)
		if err != nil || len(list.Items) != 1 {
			t.Errorf("a list of the revision before has %d pods and error %v, want 1", len(list.Items), err)
		}
	})
}
