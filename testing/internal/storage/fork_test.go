package storage_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	apistorage "k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/espalier-dev/espalier/testing/internal/storage"
)

// pods are the Pods of the storage that the context of a call chooses.
type pods struct {
	testing.TB
	apistorage.Interface
}

func newPods(t testing.TB, kept *storage.Storage) pods {
	t.Helper()
	config := (&storagebackend.Config{Codec: podCodec}).ForResource(example.Resource("pods"))
	made, destroy, err := kept.ByContext()(config, "/pods", nil,
		func() runtime.Object { return &example.Pod{} }, func() runtime.Object { return &example.PodList{} }, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(destroy)
	return pods{t, made}
}

func (p pods) create(ctx context.Context, name string) {
	p.Helper()
	pod := &example.Pod{}
	pod.Name, pod.Namespace = name, "ns"
	if err := p.Create(ctx, podKey(name), pod, nil, 0); err != nil {
		p.Error(err)
	}
}

func (p pods) delete(ctx context.Context, name string) {
	p.Helper()
	err := p.Delete(ctx, podKey(name), &example.Pod{}, nil, apistorage.ValidateAllObjectFunc, nil,
		apistorage.DeleteOptions{})
	if err != nil {
		p.Error(err)
	}
}

// label sets the label of a pod.
func (p pods) label(ctx context.Context, name, value string) {
	p.Helper()
	err := p.GuaranteedUpdate(ctx, podKey(name), &example.Pod{}, false, nil,
		apistorage.SimpleUpdate(func(obj runtime.Object) (runtime.Object, error) {
			obj.(*example.Pod).Labels = map[string]string{"a": value}
			return obj, nil
		}), nil)
	if err != nil {
		p.Error(err)
	}
}

// read returns the version and the label of a pod, "" if there is none.
func (p pods) read(ctx context.Context, name string) string {
	p.Helper()
	pod := &example.Pod{}
	if err := p.Get(ctx, podKey(name), apistorage.GetOptions{}, pod); apistorage.IsNotFound(err) {
		return ""
	} else if err != nil {
		p.Error(err)
	}
	return pod.ResourceVersion + pod.Labels["a"]
}

// names lists the pods, with the revision first.
func (p pods) names(ctx context.Context, exact string) []string {
	p.Helper()
	list := &example.PodList{}
	opts := apistorage.ListOptions{Predicate: apistorage.Everything, Recursive: true}
	if exact != "" {
		opts.ResourceVersion, opts.ResourceVersionMatch = exact, "Exact"
	}
	if err := p.GetList(ctx, "/pods/", opts, list); err != nil {
		p.Error(err)
	}
	names := []string{list.ResourceVersion}
	for _, pod := range list.Items {
		names = append(names, pod.Name)
	}
	return names
}

func (p pods) want(got []string, want ...string) {
	p.Helper()
	if !slices.Equal(got, want) {
		p.Errorf("got %q, want %q", got, want)
	}
}

func TestForksAreApart(t *testing.T) {
	base := storage.New(storage.Options{Retention: -1})
	p := newPods(t, base)
	inBase := t.Context()
	p.create(inBase, "a")
	one, two := base.Fork(nil), base.Fork(nil)
	inOne, inTwo := storage.With(t.Context(), one), storage.With(t.Context(), two)
	p.create(inOne, "b")
	p.delete(inTwo, "a")
	again := storage.With(t.Context(), one.Fork(nil))
	p.create(again, "c")
	p.create(inOne, "d")
	p.create(inBase, "e")
	p.want(p.names(inBase, ""), "3", "a", "e")
	p.want(p.names(inOne, ""), "4", "a", "b", "d")
	p.want(p.names(inTwo, ""), "3")
	p.want(p.names(again, ""), "4", "a", "b", "c")
	p.want(p.names(again, "2"), "2", "a")
	if got, want := two.Ended(podKey("a")), 1; got != want || base.Ended(podKey("a")) != 0 {
		t.Errorf("a was deleted %d times in a fork, %d in the other", got, base.Ended(podKey("a")))
	}
}

func TestNamesAreTakenInOrder(t *testing.T) {
	base := storage.New(storage.Options{})
	p := newPods(t, base)
	p.create(t.Context(), "a2")
	number := func(n int) (string, string) { name := fmt.Sprint("a", n); return name, podKey(name) }
	fork := base.Fork(nil)
	generate := func(s *storage.Storage, take bool) string {
		name, n := s.Name(number)
		s.EndName(n, take)
		return name
	}
	got := []string{generate(fork, false), generate(fork, true), generate(fork, true)}
	got = append(got, generate(fork.Fork(nil), true), generate(fork, true), generate(base, true))
	reserved, n := fork.Name(number)
	got = append(got, reserved, generate(fork, true))
	fork.EndName(n, false)
	got = append(got, generate(fork, true))
	p.want(got, "a1", "a1", "a3", "a4", "a4", "a1", "a5", "a6", "a7")
}

func TestLag(t *testing.T) {
	base := storage.New(storage.Options{Retention: -1})
	p := newPods(t, base)
	for _, name := range []string{"a", "b", "c"} {
		p.create(t.Context(), name) // at 2 to 4
	}
	fork := base.Fork(nil)
	ctx := storage.With(t.Context(), fork)
	p.label(ctx, "a", "new")
	p.delete(ctx, "b")
	p.create(ctx, "d")
	behind := func(revision int64, hidden ...string) context.Context {
		lag := storage.Lag{Revisions: map[string]int64{"/pods": revision}, Hidden: map[string]bool{}}
		for _, name := range hidden {
			lag.Hidden[podKey(name)] = true
		}
		return storage.Behind(ctx, lag)
	}
	for _, test := range []struct {
		ctx  context.Context
		want []string
	}{
		{behind(4), []string{"4", "a", "b", "c"}},
		{behind(3), []string{"3", "a", "b"}},
		{behind(0), []string{"1"}},
		{behind(5, "c"), []string{"5", "a", "b"}},
		{behind(100), []string{"7", "a", "c", "d"}},
		{storage.Behind(ctx, storage.Lag{Revisions: map[string]int64{"/others": 1}}), []string{"7", "a", "c", "d"}},
	} {
		p.want(p.names(test.ctx, ""), test.want...)
	}
	p.want(p.names(behind(3), "5"), "5", "a", "b", "c")
	p.want([]string{p.read(behind(4), "a"), p.read(behind(5), "a"), p.read(behind(4, "a"), "a")}, "2", "5new", "")
	p.want([]string{p.read(behind(4), "b"), p.read(behind(6), "b"), p.read(behind(6), "d")}, "3", "", "")
	later := storage.New(storage.Options{Retention: -1, Revision: 999, Entries: fork.Entries("/pods/")})
	ctx = storage.With(t.Context(), later)
	p.create(ctx, "e")
	p.want(p.names(behind(3), ""), "999", "a", "c", "d")
}

// TestForksInBubbles watches forks of one storage in bubbles, side by side.
func TestForksInBubbles(t *testing.T) {
	base := storage.New(storage.Options{})
	p := newPods(t, base)
	p.create(t.Context(), "a")
	var running sync.WaitGroup
	for range 10 {
		running.Go(func() {
			synctest.Test(t, func(t *testing.T) {
				ctx := storage.With(t.Context(), base.Fork(nil))
				w, err := p.Watch(ctx, "/pods/", apistorage.ListOptions{
					ResourceVersion: "1", Predicate: apistorage.Everything, Recursive: true,
				})
				if err != nil {
					t.Error(err)
					return
				}
				defer w.Stop()
				time.Sleep(time.Hour)
				p.create(ctx, "b")
				for range 2 {
					if event := <-w.ResultChan(); event.Type != watch.Added {
						t.Errorf("the event is %v", event)
					}
				}
			})
		})
	}
	running.Wait()
}

func TestDerivedIsMadeOnce(t *testing.T) {
	base := storage.New(storage.Options{})
	newPods(t, base).create(t.Context(), "a")
	e, made := base.Fork(nil).Entry(podKey("a")), 0
	derive := func() any { made++; return made }
	got := []any{e.Derived("one", derive), e.Derived("one", derive), e.Derived("two", derive), e.Derived("two", derive)}
	if want := []any{1, 1, 2, 2}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if base.Fork(nil).Entry(podKey("a")).Derived("two", derive) != 2 {
		t.Error("the entry of a fork is another one")
	}
}

func BenchmarkFork(b *testing.B) {
	f := full(b)
	for b.Loop() {
		f.storage.Fork(nil)
	}
}

// BenchmarkBehind reads pods as they were before the last ten changes.
func BenchmarkBehind(b *testing.B) {
	base := storage.New(storage.Options{Retention: -1})
	p := newPods(b, base)
	for i := range 20 {
		p.create(b.Context(), strconv.Itoa(i))
	}
	now := storage.With(b.Context(), base.Fork(nil))
	past := storage.Behind(now, storage.Lag{Revisions: map[string]int64{"/pods": 11}})
	for name, ctx := range map[string]context.Context{"now": now, "past": past} {
		b.Run("get/"+name, func(b *testing.B) {
			for b.Loop() {
				p.read(ctx, "3")
			}
		})
		b.Run("list/"+name, func(b *testing.B) {
			for b.Loop() {
				p.names(ctx, "")
			}
		})
	}
}
