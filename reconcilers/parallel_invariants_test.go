package reconcilers_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/espalier-dev/espalier/internal/branching"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"
	"github.com/espalier-dev/espalier/testing/fake"
	"github.com/espalier-dev/espalier/tracker"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// changing is a node that changes what no other one of its name does: fields, conditions and values. It waits a while,
// so that it is by chance which one is faster.
func (f *forest) changing(name string) widgetNode {
	wait := time.Duration(f.IntN(1000)) * time.Millisecond
	remove, conditions := f.IntN(3) == 0, f.IntN(3)
	leaf := f.leaf()
	return &widgetSync{Name: name, SyncWithResult: func(ctx context.Context, w *resources.Widget) (reconcilers.Result, error) {
		time.Sleep(wait)
		f.calls.add("%s sees %d fields and %d conditions", name, len(w.Status.Fields), len(w.Status.Conditions))
		w.Status.AddField(name, fmt.Sprint(wait))
		if remove {
			delete(w.Status.Fields, "before "+name)
			stash.ClearValue(ctx, stash.Key("before "+name))
		}
		for i := range conditions {
			reconcilers.SetCondition(ctx, w, metav1.Condition{Type: fmt.Sprint(name, i), Status: "True", Reason: "Test"})
		}
		stash.StoreValue(ctx, stash.Key(name), wait)
		return leaf.Reconcile(ctx, w)
	}}
}

// around puts a node into one of the combinators that call a node in another way than a list does, or leaves it alone.
func (f *forest) around(node widgetNode) widgetNode {
	passes := func(
		_ context.Context, _ *resources.Widget, result reconcilers.Result, err error,
	) (reconcilers.Result, error) {
		return result, err
	}
	switch f.IntN(12) {
	case 0:
		return &reconcilers.Advice[*resources.Widget]{Reconciler: node, After: passes}
	case 1:
		return &reconcilers.TryCatch[*resources.Widget]{Try: node, Catch: passes, Finally: f.leaf()}
	case 2:
		return &reconcilers.TryCatch[*resources.Widget]{Try: f.leaf(), Finally: node}
	case 3:
		return &reconcilers.While[*resources.Widget]{
			Condition: func(ctx context.Context, _ *resources.Widget) bool {
				return reconcilers.RetrieveIteration(ctx) < 2
			},
			Reconciler: node,
		}
	case 4:
		return &reconcilers.ForEach[*resources.Widget, string]{
			Items:      func(context.Context, *resources.Widget) ([]string, error) { return []string{"x", "y"}, nil },
			Reconciler: node,
		}
	case 5:
		return &reconcilers.SuppressTransientErrors[*resources.Widget, *resources.WidgetList]{Reconciler: node}
	case 6:
		return f.when(true, node, nil)
	case 7:
		return widgetSequence{node, f.leaf()}
	}
	return node
}

// The outcome does not depend on which branch is faster, nor on whether branches run at the same time: it is that of
// the nodes one after the other, by Always. Also if branches have branches, and if other combinators are around them.
func TestParallelIsAnAlways(t *testing.T) {
	for seed := range uint64(200) {
		var outcomes [3]string
		for way := range outcomes {
			synctest.Test(t, func(t *testing.T) {
				f := &forest{Rand: rand.New(rand.NewPCG(seed, 0)), calls: &trace{}}
				names := 0
				var grow func(depth int) widgetNode
				grow = func(depth int) widgetNode {
					nodes := make([]widgetNode, 1+f.IntN(4))
					for i := range nodes {
						if names++; depth > 0 && f.IntN(3) == 0 {
							nodes[i] = grow(depth - 1)
							continue
						}
						nodes[i] = f.changing(fmt.Sprint("n", names))
					}
					limit := f.IntN(4)
					if way == 0 {
						return f.around(widgetAlways(nodes))
					}
					return f.around(&widgetParallel{Nodes: nodes, Limit: limit})
				}
				tree := grow(2)
				ctx := testContext(t, expectWidget().Config())
				if way == 1 {
					ctx = branching.InOrder(ctx)
				}
				w := widget.Object()
				for i := range names {
					key := fmt.Sprint("before n", i)
					w.Status.AddField(key, "there")
					stash.StoreValue(ctx, stash.Key(key), 0)
				}
				result, err := tree.Reconcile(ctx, w)
				for i := range names {
					for _, key := range []stash.Key{stash.Key(fmt.Sprint("n", i)), stash.Key(fmt.Sprint("before n", i))} {
						outcomes[way] += fmt.Sprintf("%s=%v ", key, stash.RetrieveValue(ctx, key))
					}
				}
				outcomes[way] += fmt.Sprintf("%+v %v %v", w.Status, result.RequeueAfter, err)
			})
		}
		if outcomes[1] != outcomes[0] || outcomes[2] != outcomes[0] {
			t.Fatalf("seed %d: Always gives\n%s\nin order\n%s\nat the same time\n%s, want the same", seed, outcomes[0],
				outcomes[1], outcomes[2])
		}
	}
}

func TestAlgebraOfParallel(t *testing.T) {
	invariants := map[string]func(f *forest) (left, right widgetNode){
		"a parallel of one is that one": func(f *forest) (widgetNode, widgetNode) {
			node := f.combined(3)
			return node, parallel(node)
		},
		"the empty parallel is the empty sequence": func(*forest) (widgetNode, widgetNode) {
			return widgetSequence{}, parallel()
		},
		"in order, it makes the calls of an always": func(f *forest) (widgetNode, widgetNode) {
			a, b, c := f.combined(2), f.combined(2), f.combined(2)
			return widgetAlways{a, b, c}, parallel(a, b, c)
		},
		"in order, it does not matter how it is split": func(f *forest) (widgetNode, widgetNode) {
			a, b, c := f.combined(2), f.combined(2), f.combined(2)
			return parallel(a, b, c), parallel(parallel(a, b), parallel(), parallel(c))
		},
	}
	for name, invariant := range invariants {
		t.Run(name, func(t *testing.T) {
			ctx := branching.InOrder(testContext(t, expectWidget().Config()))
			for seed := range uint64(300) {
				f := &forest{Rand: rand.New(rand.NewPCG(seed, 0)), calls: &trace{}}
				left, right := invariant(f)
				if l, r := f.outcome(inRequest{ctx, left}), f.outcome(inRequest{ctx, right}); l != r {
					t.Fatalf("seed %d: the outcome is\n%s\nwant that of the other way\n%s\n%s\n%s", seed, l, r,
						reconcilers.Describe(left), reconcilers.Describe(right))
				}
			}
		})
	}
}

// inMemory returns a config for an API server in memory that has w.
func inMemory(w *resources.Widget) reconcilers.Config {
	c := fake.NewClientBuilder().WithScheme(widgetScheme).WithStatusSubresource(&resources.Widget{}).WithObjects(w).Build()
	return reconcilers.Config{
		Client: c, APIReader: c, Recorder: record.NewFakeRecorder(1000), Tracker: tracker.New(widgetScheme, time.Hour),
	}
}

// Each branch adds and removes its finalizers, and none those of another one. They end up in the order of the branches.
func TestParallelFinalizers(t *testing.T) {
	finalizers := func(w *resources.Widget) []string { return w.Finalizers }
	for range 20 {
		var cleaned sync.Map
		node := func(name string) widgetNode {
			return &widgetFinalizer{Finalizer: "test.espalier.dev/" + name, Reconciler: &widgetSync{
				Name: name,
				Sync: func(_ context.Context, w *resources.Widget) error {
					if own := []string{theirs, "test.espalier.dev/" + name}; !slices.Equal(w.Finalizers, own) {
						return fmt.Errorf("%s sees the finalizers %v, want only those before and its own", name, w.Finalizers)
					}
					return nil
				},
				Finalize: func(context.Context, *resources.Widget) error { cleaned.Store(name, true); return nil },
			}}
		}
		config := inMemory(widget.With(func(w *resources.Widget) { w.Finalizers = []string{theirs} }).Object())
		root := &widgetRoot{Config: config, Reconciler: parallel(
			node("a"), parallel(node("b"), node("c")), &reconcilers.CastResource[*resources.Widget, *corev1.Pod]{
				Reconciler: &reconcilers.WithFinalizer[*corev1.Pod]{
					Finalizer: "test.espalier.dev/d", Reconciler: &reconcilers.SyncReconciler[*corev1.Pod]{
						Sync: func(context.Context, *corev1.Pod) error { return nil },
					},
				},
			},
			syncing(func(_ context.Context, w *resources.Widget) { w.Status.AddField("e", "1") }),
		)}
		reconcile := func() *resources.Widget {
			t.Helper()
			if _, err := root.Reconcile(t.Context(), widgetRequest); err != nil {
				t.Fatalf("the error is %v, want none", err)
			}
			var w resources.Widget
			if err := config.Get(t.Context(), widgetKey, &w); err != nil {
				t.Fatal(err)
			}
			return &w
		}
		w := reconcile()
		want := []string{
			theirs, "test.espalier.dev/a", "test.espalier.dev/b", "test.espalier.dev/c", "test.espalier.dev/d",
		}
		if diff := cmp.Diff(want, finalizers(w)); diff != "" || w.Status.Fields["e"] != "1" {
			t.Fatalf("the finalizers differ (-want, +got):\n%s\nthe status is %v", diff, w.Status.Fields)
		}
		if err := config.Delete(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		left := reconcile()
		if diff := cmp.Diff([]string{theirs}, finalizers(left)); diff != "" {
			t.Fatalf("the finalizers left differ (-want, +got):\n%s", diff)
		}
		for _, name := range []string{"a", "b", "c"} {
			if _, ok := cleaned.Load(name); !ok {
				t.Errorf("%s has not cleaned up, want it to", name)
			}
		}
	}
}

// A change of finalizers that two branches make is sent once. After the last one is gone, there is nothing to patch.
func TestParallelBranchesChangeOneFinalizer(t *testing.T) {
	changes := func(do func(context.Context, client.Object, string) error) widgetNode {
		one := func() widgetNode {
			return &widgetSync{SyncDuringFinalization: true, Sync: func(ctx context.Context, w *resources.Widget) error {
				return do(ctx, w, theirs)
			}}
		}
		return parallel(one(), parallel(one(), idle{}), one())
	}
	for name, test := range map[string]struct {
		given *resources.Widget
		node  widgetNode
		left  []string
	}{
		"added": {widget.Object(), changes(reconcilers.AddFinalizer), []string{theirs}},
		"cleared": {
			widget.With(func(w *resources.Widget) { w.Finalizers = []string{theirs} }).Object(),
			changes(reconcilers.ClearFinalizer), nil,
		},
		"cleared, terminating": {
			terminatingWidget.With(func(w *resources.Widget) { w.Finalizers = []string{theirs} }).Object(),
			changes(reconcilers.ClearFinalizer), nil,
		},
	} {
		config := inMemory(test.given)
		counted := &counting{Client: config.Client}
		config.Client = counted
		root := &widgetRoot{Config: config, Reconciler: test.node}
		for i := range 2 {
			if _, err := root.Reconcile(t.Context(), widgetRequest); err != nil {
				t.Errorf("%s: the error of request %d is %v, want none", name, i, err)
			}
		}
		var w resources.Widget
		err := config.Get(t.Context(), widgetKey, &w)
		if client.IgnoreNotFound(err) != nil || !slices.Equal(w.Finalizers, test.left) || counted.patches != 1 {
			t.Errorf("%s: %d patches leave the finalizers %v (%v), want one patch and %v",
				name, counted.patches, w.Finalizers, err, test.left)
		}
	}
}

// Authors give unstructured content the types int and []string, before branches and in them.
func TestParallelWithUnstructuredContent(t *testing.T) {
	set := func(value any, path ...string) reconcilers.SubReconciler[*unstructured.Unstructured] {
		return &reconcilers.SyncReconciler[*unstructured.Unstructured]{
			Sync: func(_ context.Context, u *unstructured.Unstructured) error {
				content := u.Object
				for _, name := range path[:len(path)-1] {
					if content[name] == nil {
						content[name] = map[string]any{}
					}
					content = content[name].(map[string]any)
				}
				content[path[len(path)-1]] = value
				return nil
			},
		}
	}
	branches := &reconcilers.Parallel[*unstructured.Unstructured]{
		Nodes: []reconcilers.SubReconciler[*unstructured.Unstructured]{
			set("1", "status", "fields", "a"), set(3, "count"), set([]string{"x"}, "names"),
			&reconcilers.Parallel[*unstructured.Unstructured]{
				Nodes: []reconcilers.SubReconciler[*unstructured.Unstructured]{
					set("2", "status", "fields", "b"), set(int64(3), "count"),
				},
			},
		},
	}
	config := inMemory(widget.Object())
	root := &widgetRoot{Config: config, Reconciler: &reconcilers.CastResource[*resources.Widget, *unstructured.Unstructured]{
		Reconciler: reconcilers.Sequence[*unstructured.Unstructured]{set(1, "before"), branches},
	}}
	for i := range 2 {
		if _, err := root.Reconcile(t.Context(), widgetRequest); err != nil {
			t.Errorf("the error of request %d is %v, want none", i, err)
		}
		var w resources.Widget
		if err := config.Get(t.Context(), widgetKey, &w); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"a": "1", "b": "2"}, w.Status.Fields); diff != "" {
			t.Errorf("the status differs after request %d (-want, +got):\n%s", i, diff)
		}
	}
}

// Content that cannot be sent is an error of its node, and what other branches have changed counts.
func TestParallelWithContentThatHoldsItself(t *testing.T) {
	endless := func() reconcilers.SubReconciler[*unstructured.Unstructured] {
		return &reconcilers.SyncReconciler[*unstructured.Unstructured]{
			Sync: func(_ context.Context, u *unstructured.Unstructured) error {
				u.Object["own"] = u.Object
				return nil
			},
		}
	}
	sound := &reconcilers.SyncReconciler[*unstructured.Unstructured]{
		Sync: func(_ context.Context, u *unstructured.Unstructured) error {
			u.Object["count"] = 5
			return nil
		},
	}
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "gadget"}}}
	node := &reconcilers.Parallel[*unstructured.Unstructured]{
		Nodes: []reconcilers.SubReconciler[*unstructured.Unstructured]{endless(), endless(), sound},
	}
	_, err := node.Reconcile(t.Context(), u)
	if n := strings.Count(fmt.Sprint(err), "has changed is left out: "); n != 2 || u.Object["count"] != int64(5) {
		t.Errorf("the error is %v and the content %v, want an error of both nodes, and a count of 5", err, u.Object)
	}
}

// What branches track wakes the resource, and what no branch tracks any more does not.
func TestParallelTracks(t *testing.T) {
	named := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	}
	config := inMemory(widget.Object())
	tracked := []string{"a", "b", "c", "d"}
	var nodes []widgetNode
	for i := range tracked {
		nodes = append(nodes, &widgetSync{Sync: func(ctx context.Context, _ *resources.Widget) error {
			config := reconcilers.RetrieveConfigOrDie(ctx)
			key := client.ObjectKeyFromObject(named(tracked[i]))
			return client.IgnoreNotFound(config.TrackAndGet(ctx, key, &corev1.ConfigMap{}))
		}})
	}
	root := &widgetRoot{Config: config, Reconciler: parallel(nodes[0], parallel(nodes[1], nodes[2]), nodes[3])}
	for _, names := range [][]string{{"a", "b", "c", "d"}, {"a", "x", "c", "y"}} {
		tracked = names
		if _, err := root.Reconcile(t.Context(), widgetRequest); err != nil {
			t.Fatalf("the error is %v, want none", err)
		}
		for _, name := range []string{"a", "b", "c", "d", "x", "y"} {
			woken, err := config.Tracker.GetObservers(named(name))
			if want := slices.Contains(names, name); err != nil || slices.Contains(woken, widgetKey) != want {
				t.Errorf("with %v tracked, a change of %s wakes %v (%v), want the widget woken: %t",
					names, name, woken, err, want)
			}
		}
	}
}

// A list of children that several branches need is asked for once, and has what they wrote afterwards.
func TestParallelBranchesShareLists(t *testing.T) {
	config := inMemory(widget.Object())
	counted := &counting{Client: config.Client}
	config.Client = counted
	child := func(name string) widgetNode {
		return &configMapNode{
			Name: name, LabelChildren: true,
			DesiredChild: func(_ context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
				return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "config-" + name}}, nil
			},
			ReflectChildStatusOnParent: func(_ context.Context, w *resources.Widget, c *corev1.ConfigMap, _ error) {
				w.Status.AddField(name, c.GetName())
			},
			MergeBeforeUpdate: mergeConfigMap,
		}
	}
	var nodes []widgetNode
	want := map[string]string{}
	for i := range 30 {
		name := fmt.Sprintf("c%02d", i)
		nodes, want[name] = append(nodes, child(name)), "config-"+name
	}
	after := child("after")
	root := &widgetRoot{Config: config, Reconciler: widgetSequence{parallel(nodes...), after}}
	want["after"] = "config-after"
	for i := range 3 {
		counted.mu.Lock()
		counted.lists, counted.writes = 0, 0
		counted.mu.Unlock()
		if _, err := root.Reconcile(t.Context(), widgetRequest); err != nil {
			t.Fatalf("the error of request %d is %v, want none", i, err)
		}
		writes := 0
		if i == 0 {
			writes = 31
		}
		if counted.lists != 1 || counted.writes != writes {
			t.Errorf("request %d makes %d lists and %d writes of children, want 1 and %d", i, counted.lists, counted.writes, writes)
		}
	}
	var w resources.Widget
	if err := config.Get(t.Context(), widgetKey, &w); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, w.Status.Fields); diff != "" {
		t.Errorf("the status differs (-want, +got):\n%s", diff)
	}
}

// counting is a client that counts calls about config maps.
type counting struct {
	client.Client
	mu                     sync.Mutex
	lists, writes, patches int
}

func (c *counting) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption,
) error {
	c.mu.Lock()
	c.patches++
	c.mu.Unlock()
	return c.Client.Patch(ctx, obj, patch, opts...)
}

func (c *counting) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	c.mu.Lock()
	c.lists++
	c.mu.Unlock()
	return c.Client.List(ctx, list, opts...)
}

func (c *counting) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	c.mu.Lock()
	c.writes++
	c.mu.Unlock()
	return c.Client.Create(ctx, obj, opts...)
}
