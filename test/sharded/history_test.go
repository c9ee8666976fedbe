package sharded_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/internal/testenv/sharder"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// change is what one write made of an object.
type change struct {
	// revision orders the changes of objects of all types.
	revision uint64
	object   client.Object
	deleted  bool
}

// history has each change of the Widgets, and of what is made for them, in a namespace.
type history struct {
	namespace string
	mu        sync.Mutex
	changes   []change
	err       error
}

// lists returns lists of the types of a history.
func lists() []client.ObjectList {
	return []client.ObjectList{&resources.WidgetList{}, &corev1.ConfigMapList{}, &corev1.SecretList{}}
}

// record records what changes in a namespace from now on, until the test ends.
func record(t testing.TB, namespace string) *history {
	t.Helper()
	c, err := client.NewWithWatch(plane.Config(t), client.Options{Scheme: resources.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	h := &history{namespace: namespace}
	var recording sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		recording.Wait()
	})
	for _, list := range lists() {
		if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		// An API server ends watches whose client is slow. Another one goes on where it has ended.
		w, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), &toolscache.ListWatch{
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				return c.Watch(ctx, list, client.InNamespace(namespace), &client.ListOptions{Raw: &options})
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		recording.Go(func() {
			for event := range w.ResultChan() {
				h.note(event)
			}
			if ctx.Err() == nil {
				h.fail(fmt.Errorf("the watch of %T has ended", list))
			}
		})
	}
	return h
}

// note records an event of a watch.
func (h *history) note(event watch.Event) {
	object, ok := event.Object.(client.Object)
	if !ok || event.Type == watch.Error {
		h.fail(fmt.Errorf("the watch gives %s %v", event.Type, event.Object))
		return
	}
	revision, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		h.fail(err)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changes = append(h.changes, change{revision: revision, object: object, deleted: event.Type == watch.Deleted})
}

func (h *history) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = errors.Join(h.err, err)
}

// all returns the changes so far, in the order in which they were made.
func (h *history) all() ([]change, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	slices.SortFunc(h.changes, func(a, b change) int { return cmp.Compare(a.revision, b.revision) })
	return slices.Clone(h.changes), h.err
}

// complete waits until the watches have shown what there is, and returns all changes.
func (h *history) complete(t testing.TB, c client.Client) []change {
	t.Helper()
	var all []change
	controlplanetest.Eventually(t, "the watches do not show what there is", func(ctx context.Context) (err error) {
		if all, err = h.all(); err != nil {
			return err
		}
		shown := worldAfter(all)
		left := len(shown)
		for _, list := range lists() {
			if err := c.List(ctx, list, client.InNamespace(h.namespace)); err != nil {
				return err
			}
			for _, object := range items(list) {
				seen := shown[object.GetUID()]
				if seen == nil || seen.GetResourceVersion() != object.GetResourceVersion() {
					return fmt.Errorf("%T %s is not shown as it is", object, object.GetName())
				}
				left--
			}
		}
		if left > 0 {
			return fmt.Errorf("%d objects are shown that are gone", left)
		}
		return nil
	})
	return all
}

// items returns the objects of a list.
func items(list client.ObjectList) []client.Object {
	var all []client.Object
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		all = append(all, item.(client.Object))
		return nil
	})
	return all
}

// moves says how often a ring gave objects to another shard than before, and how many objects it did that with.
type moves struct {
	widgets, movedWidgets, children, movedChildren int
}

// movesOf returns the moves in a history after a revision.
func movesOf(ring string, changes []change, after uint64) moves {
	var m moves
	last, moved := map[types.UID]string{}, map[types.UID]bool{}
	for _, c := range changes {
		uid, shard := c.object.GetUID(), c.object.GetLabels()[sharder.ShardLabel(ring)]
		if shard == "" {
			continue
		}
		if before := last[uid]; before != "" && before != shard && c.revision > after {
			m.count(c.object, !moved[uid])
			moved[uid] = true
		}
		last[uid] = shard
	}
	return m
}

func (m *moves) count(object client.Object, first bool) {
	total, objects := &m.children, &m.movedChildren
	if _, ok := object.(*resources.Widget); ok {
		total, objects = &m.widgets, &m.movedWidgets
	}
	*total++
	if first {
		*objects++
	}
}
