package storage_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	apistorage "k8s.io/apiserver/pkg/storage"

	"github.com/espalier-dev/espalier/testing/internal/storage"
)

// Updates of one object by many clients are all made, one after the other.
func TestConcurrentUpdates(t *testing.T) {
	const clients, updates = 8, 50
	f := newFixture(t, storage.Options{})
	f.create(t, "a", 0)
	var group sync.WaitGroup
	for range clients {
		group.Go(func() {
			for range updates {
				if err := increment(t.Context(), f, "a"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	pod := &example.Pod{}
	if err := f.Get(t.Context(), podKey("a"), apistorage.GetOptions{}, pod); err != nil {
		t.Fatal(err)
	}
	if got, want := pod.Generation, int64(clients*updates); got != want {
		t.Errorf("counted %d updates, want %d", got, want)
	}
	if got, want := pod.ResourceVersion, strconv.Itoa(2+clients*updates); got != want {
		t.Errorf("the resource version is %s, want %s", got, want)
	}
}

func increment(ctx context.Context, s apistorage.Interface, name string) error {
	return s.GuaranteedUpdate(ctx, podKey(name), &example.Pod{}, false, nil,
		apistorage.SimpleUpdate(func(obj runtime.Object) (runtime.Object, error) {
			obj.(*example.Pod).Generation++
			return obj, nil
		}), nil)
}

// What watches say is what lists say, while many clients write: the events up to the revision of a list lead to the
// list, and a list of that revision that is made after all writes is the same.
func TestWatchesAndListsAgree(t *testing.T) {
	for seed := range uint64(5) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			const writers, writes = 4, 200
			f := newFixture(t, storage.Options{})
			if seed%2 == 1 {
				f = f.untransformed(t)
			}
			during := f.watch(t, from("1"))
			lists := make([]*example.PodList, writers*writes/10)
			var group sync.WaitGroup
			for i, part := range slices.Collect(slices.Chunk(lists, len(lists)/writers)) {
				random := rand.New(rand.NewPCG(seed, uint64(i)))
				group.Go(func() { writeAtRandom(t, f, random, writes) })
				group.Go(func() { listOften(t, f, part) })
			}
			group.Wait()
			f.create(t, "last", 0)
			slices.SortFunc(lists, func(a, b *example.PodList) int { return cmp.Compare(revision(a), revision(b)) })
			checkReplay(t, nil, during, lists)
			checkReplay(t, nil, f.watch(t, from("1")), lists)
			middle := lists[len(lists)/2]
			checkReplay(t, versions(middle), f.watch(t, from(middle.ResourceVersion)), lists[len(lists)/2:])
			for _, list := range lists {
				again, err := f.list(t.Context(), list.ResourceVersion)
				if err != nil {
					t.Fatal(err)
				}
				if got, want := versions(again), versions(list); !maps.Equal(got, want) {
					t.Errorf("a list of revision %s is %v after more writes, was %v", list.ResourceVersion, got, want)
				}
			}
		})
	}
}

// writeAtRandom creates, updates and deletes a few pods.
func writeAtRandom(t *testing.T, f *fixture, random *rand.Rand, writes int) {
	for range writes {
		name := fmt.Sprintf("pod-%d", random.IntN(20))
		var err error
		switch random.IntN(3) {
		case 0:
			err = f.Create(t.Context(), podKey(name), newPod(name), nil, 0)
		case 1:
			err = increment(t.Context(), f, name)
		case 2:
			err = f.Delete(t.Context(), podKey(name), &example.Pod{}, nil, apistorage.ValidateAllObjectFunc, nil,
				apistorage.DeleteOptions{})
		}
		if err != nil && !apistorage.IsNotFound(err) && !apistorage.IsExist(err) {
			t.Error(err)
		}
	}
}

func listOften(t *testing.T, f *fixture, lists []*example.PodList) {
	for i := range lists {
		var err error
		if lists[i], err = f.list(t.Context(), ""); err != nil {
			t.Error(err)
		}
	}
}

// checkReplay applies the events of a watch to the pods that were there when it began, and compares the pods with lists,
// which are ordered by revision. The last event is the creation of the pod "last".
func checkReplay(t *testing.T, pods map[string]string, w watch.Interface, lists []*example.PodList) {
	t.Helper()
	if pods == nil {
		pods = map[string]string{}
	}
	for {
		event := <-w.ResultChan()
		pod, ok := event.Object.(*example.Pod)
		if !ok {
			t.Fatalf("the watch got %v", describe(event))
		}
		rv, err := strconv.ParseUint(pod.ResourceVersion, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		for len(lists) > 0 && revision(lists[0]) < rv {
			if want := versions(lists[0]); !maps.Equal(pods, want) {
				t.Fatalf("the watch leads to %v at revision %s, want %v", pods, lists[0].ResourceVersion, want)
			}
			lists = lists[1:]
		}
		if pod.Name == "last" {
			return
		}
		if event.Type == watch.Deleted {
			delete(pods, pod.Name)
		} else {
			pods[pod.Name] = pod.ResourceVersion
		}
	}
}

// versions returns the resource versions of pods by name.
func versions(list *example.PodList) map[string]string {
	found := map[string]string{}
	for _, pod := range list.Items {
		found[pod.Name] = pod.ResourceVersion
	}
	return found
}

func revision(list *example.PodList) uint64 {
	rv, err := strconv.ParseUint(list.ResourceVersion, 10, 64)
	if err != nil {
		panic(err)
	}
	return rv
}

// Compactions lead to expired lists and watches, never to wrong ones.
func TestConcurrentCompaction(t *testing.T) {
	const writes = 1000
	f := newFixture(t, storage.Options{})
	for i := range 20 {
		f.create(t, fmt.Sprintf("other-%d", i), 0)
	}
	var group sync.WaitGroup
	group.Go(func() { writeAtRandom(t, f, rand.New(rand.NewPCG(1, 2)), writes) })
	group.Go(func() {
		for range writes {
			f.storage.Compact(f.storage.Revision() - 3)
		}
	})
	for range writes {
		at := strconv.FormatInt(f.storage.Revision()-3, 10)
		list, err := f.list(t.Context(), at)
		if err != nil && !apierrors.IsResourceExpired(err) {
			t.Error(err)
		}
		for _, pod := range list.Items {
			if rv, _ := strconv.ParseUint(pod.ResourceVersion, 10, 64); rv > revision(list) {
				t.Errorf("a list of revision %s has a pod of revision %d", list.ResourceVersion, rv)
			}
		}
		w := f.watch(t, from(at))
		if event := describe(<-w.ResultChan()); strings.HasPrefix(event, "ERROR") && event != "ERROR Expired 410" {
			t.Errorf("a watch got %s", event)
		}
		w.Stop()
	}
	group.Wait()
}
