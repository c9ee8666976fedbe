package informers_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	fcache "k8s.io/client-go/tools/cache/testing"

	"github.com/espalier-dev/espalier/testing/internal/informers"
)

// fixture is a source of objects and an informer of them that runs.
type fixture struct {
	*testing.T
	source   *fcache.FakeControllerSource
	informer cache.SharedIndexInformer

	mu    sync.Mutex
	told  []string
	times map[time.Time]bool
}

// run runs a test in a bubble with ten objects.
func run(t *testing.T, seed uint64, test func(f *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &fixture{T: t, source: fcache.NewFakeControllerSource(), times: map[time.Time]bool{}}
		for i := range 10 {
			f.source.Add(named(i))
		}
		f.informer = informers.New(seed, "operator")(f.source, &corev1.ConfigMap{}, 0, cache.Indexers{
			cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			f.informer.RunWithContext(ctx)
		}()
		test(f)
		cancel()
		<-ended
		f.source.Broadcaster.Shutdown()
		time.Sleep(time.Minute)
	})
}

func named(i int) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint(i)}}
}

// tell notes an event.
func (f *fixture) tell(what string, obj any) {
	name, err := cache.DeletionHandlingObjectToName(obj)
	if err != nil {
		f.Error(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told = append(f.told, what+" "+name.Name)
	f.times[time.Now()] = true
}

// handle adds a handler.
func (f *fixture) handle() cache.ResourceEventHandlerRegistration {
	r, err := f.informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if initial {
				f.tell("first", obj)
			} else {
				f.tell("add", obj)
			}
		},
		UpdateFunc: func(_, obj any) { f.tell("update", obj) },
		DeleteFunc: func(obj any) { f.tell("delete", obj) },
	})
	if err != nil {
		f.Fatal(err)
	}
	return r
}

// had returns what was told since it was called last.
func (f *fixture) had() string {
	time.Sleep(time.Second)
	synctest.Wait()
	had := strings.Join(f.told, ", ")
	f.told = nil
	return had
}

// first returns what a handler is told that is added before or after the informer has objects.
func first(t *testing.T, seed uint64, after bool) string {
	var had string
	run(t, seed, func(f *fixture) {
		if after {
			time.Sleep(time.Second)
		}
		r := f.handle()
		for !r.HasSynced() {
			time.Sleep(time.Microsecond)
		}
		if len(f.told) != 10 || len(f.times) != 10 {
			f.Errorf("synced after %d events in %d moments", len(f.told), len(f.times))
		}
		had = f.had()
	})
	return had
}

// TestFirst has a seed decide in which order a handler is told what is there.
func TestFirst(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, after := range []bool{false, true} {
		orders := map[string]bool{}
		for seed := range uint64(5) {
			want := first(t, seed, after)
			orders[want] = true
			for n := range 4 {
				runtime.GOMAXPROCS(n + 1)
				if got := first(t, seed, after); got != want {
					t.Errorf("seed %d: with %d processors, %s\nis not %s", seed, n+1, got, want)
				}
			}
		}
		if len(orders) != 5 {
			t.Errorf("5 seeds give the orders %v", orders)
		}
	}
}

// TestEvents tells what happens in the order in which it happens, in two handlers in different moments.
func TestEvents(t *testing.T) {
	run(t, 1, func(f *fixture) {
		f.handle()
		f.had()
		changed := named(3)
		changed.Data = map[string]string{"a": "b"}
		f.source.Modify(changed)
		f.source.Add(named(10))
		f.source.Modify(named(3))
		f.source.Delete(named(10))
		f.source.Modify(named(1))
		f.source.Add(named(10))
		if had := f.had(); had != "update 3, add 10, update 3, delete 10, update 1, add 10" {
			f.Errorf("told is %s", had)
		}
		f.told, f.times = nil, map[time.Time]bool{}
		f.handle()
		f.handle()
		f.had()
		if len(f.times) != 22 {
			f.Errorf("22 events are told in %d moments", len(f.times))
		}
	})
}

func TestSlowHandler(t *testing.T) {
	run(t, 1, func(f *fixture) {
		running := 0
		if _, err := f.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
			if running++; running > 1 {
				f.Error("two events are told at a time")
			}
			time.Sleep(time.Second)
			running--
			f.tell("add", obj)
		}}); err != nil {
			f.Fatal(err)
		}
		time.Sleep(10*time.Second + time.Millisecond)
		synctest.Wait()
		if len(f.told) != 10 {
			f.Errorf("told is %s", f.told)
		}
	})
}

// TestSyncedWithoutTime has a handler be synced while a mutex is held.
func TestSyncedWithoutTime(t *testing.T) {
	run(t, 1, func(f *fixture) {
		time.Sleep(time.Second)
		began := time.Now()
		<-f.handle().HasSyncedChecker().Done()
		if took := time.Since(began); took != 0 {
			f.Errorf("it took %v", took)
		}
	})
}

func TestRemove(t *testing.T) {
	run(t, 1, func(f *fixture) {
		r := f.handle()
		f.had()
		if err := f.informer.RemoveEventHandler(r); err != nil {
			f.Error(err)
		}
		f.source.Add(named(10))
		if had := f.had(); had != "" {
			f.Errorf("a removed handler is told %s", had)
		}
	})
}

// TestLists has a seed and the time decide in which orders objects are in lists.
func TestLists(t *testing.T) {
	lists := func(seed uint64) (orders []string) {
		run(t, seed, func(f *fixture) {
			for range 3 {
				time.Sleep(time.Second)
				orders = append(orders, f.list())
			}
		})
		return orders
	}
	all := map[string]bool{}
	for seed := range uint64(3) {
		want := lists(seed)
		for _, order := range want {
			all[order] = true
		}
		if got := lists(seed); !slices.Equal(got, want) {
			t.Errorf("seed %d: %v is not %v", seed, got, want)
		}
	}
	if len(all) != 9 {
		t.Errorf("9 lists have %d orders", len(all))
	}
}

// list returns the order of objects in lists of this moment.
func (f *fixture) list() string {
	by, err := f.informer.GetIndexer().ByIndex(cache.NamespaceIndex, "shop")
	if err != nil {
		f.Error(err)
	}
	like, err := f.informer.GetIndexer().Index(cache.NamespaceIndex, named(0))
	if err != nil {
		f.Error(err)
	}
	var order string
	for _, objs := range [][]any{by, like, f.informer.GetStore().List(), f.informer.GetIndexer().List()} {
		var names []string
		for _, obj := range objs {
			names = append(names, obj.(*corev1.ConfigMap).Name)
		}
		if again := fmt.Sprint(names); order != "" && again != order {
			f.Errorf("lists of one moment have the orders %s and %s", order, again)
		}
		order = fmt.Sprint(names)
		if slices.Sort(names); fmt.Sprint(names) != "[0 1 2 3 4 5 6 7 8 9]" {
			f.Errorf("a list has %v", names)
		}
	}
	return order
}
