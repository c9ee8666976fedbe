package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/branching"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"
	"github.com/espalier-dev/espalier/validation"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type widgetParallel = reconcilers.Parallel[*resources.Widget]

func parallel(nodes ...widgetNode) *widgetParallel { return &widgetParallel{Nodes: nodes} }

// In a table, branches run one after the other.
func TestParallel(t *testing.T) {
	goesOn := func(err error) nodeTest {
		return nodeTest{
			node: func(calls *trace) widgetNode {
				return parallel(calls.step("a", requeue, nil), calls.step("b", minute, err), calls.step("c", twoMinutes, nil))
			},
			calls: []string{"a", "b", "c"},
			widgetCase: widgetCase{
				ShouldErr: true,
				Verify:    returnsBoth(err, reconcilers.AggregateResults(requeue, minute)),
			},
		}
	}
	nodeTests{
		"empty": {node: func(*trace) widgetNode { return parallel() }, calls: []string{}},
		"in order, terminating": {
			node: func(calls *trace) widgetNode {
				return parallel(calls.step("a", nothing, nil), calls.step("b", nothing, nil))
			},
			calls:      []string{"a", "b"},
			widgetCase: widgetCase{Resource: terminatingWidget.Object()},
		},
		"no branch sees what another one has changed": {
			node: func(*trace) widgetNode {
				return parallel(
					&widgetSync{Sync: func(_ context.Context, w *resources.Widget) error {
						w.Status.AddField("a", "ran")
						return errBoom
					}},
					syncing(func(_ context.Context, w *resources.Widget) { w.Status.AddField("b", "after a "+w.Status.Fields["a"]) }),
				)
			},
			widgetCase: widgetCase{
				ExpectResource: widget.With(statusField("a", "ran"), statusField("b", "after a ")).Object(),
				ShouldErr:      true,
			},
		},
		"goes on after an error":       goesOn(errBoom),
		"goes on after a quiet error":  goesOn(reconcilers.ErrQuiet),
		"goes on after a halt":         goesOn(reconcilers.ErrHaltSubReconcilers),
		"goes on after a durable halt": goesOn(reconcilers.ErrDurable),
		"goes on after a skip":         goesOn(reconcilers.ErrSkipStatusUpdate),
	}.run(t)
}

// Without a validation, a nil node counts as one that fails.
func TestParallelWithANilNode(t *testing.T) {
	calls := &trace{}
	_, err := parallel(nil, calls.step("a", nothing, nil)).Reconcile(t.Context(), widget.Object())
	want := "Parallel must have a valid Nodes[0]: must not be nil"
	if calls.compare(t, []string{"a"}); err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %q", err, want)
	}
}

// Each node waits for all others, so that none ends if they do not run at the same time.
func TestParallelNodesRunAtTheSameTime(t *testing.T) {
	const n = 16
	var met sync.WaitGroup
	met.Add(n)
	nodes := make([]widgetNode, n)
	for i := range nodes {
		nodes[i] = syncing(func(context.Context, *resources.Widget) {
			met.Done()
			met.Wait()
		})
	}
	if _, err := parallel(nodes...).Reconcile(t.Context(), widget.Object()); err != nil {
		t.Errorf("the error is %v, want none", err)
	}
}

// Nobody may have validated the node.
func TestParallelWithANegativeLimit(t *testing.T) {
	calls := &trace{}
	returned := make(chan error, 1)
	go func() {
		defer close(returned)
		node := parallel(calls.step("a", nothing, nil), calls.step("b", nothing, nil))
		node.Limit = -1
		_, err := node.Reconcile(t.Context(), widget.Object())
		returned <- err
	}()
	err, ok := <-returned
	want := "Parallel must not have the Limit -1: it is a number of nodes, or zero for 16"
	if calls.compare(t, []string{}); !ok || err == nil || err.Error() != want {
		t.Errorf("Reconcile returned: %t, with the error %v, want %q", ok, err, want)
	}
}

func TestParallelLimit(t *testing.T) {
	for limit, want := range map[int]int{1: 1, 3: 3, 0: 16, 100: 40} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var order []int
			running, most := 0, 0
			nodes := make([]widgetNode, 40)
			for i := range nodes {
				nodes[i] = syncing(func(context.Context, *resources.Widget) {
					mu.Lock()
					order, running = append(order, i), running+1
					most = max(most, running)
					mu.Unlock()
					time.Sleep(time.Second + time.Duration(i)*time.Millisecond)
					mu.Lock()
					running--
					mu.Unlock()
				})
			}
			node := parallel(nodes...)
			node.Limit = limit
			if _, err := node.Reconcile(t.Context(), widget.Object()); err != nil {
				t.Errorf("with the limit %d the error is %v, want none", limit, err)
			}
			slices.Sort(order)
			if most != want || len(slices.Compact(order)) != len(nodes) {
				t.Errorf("with the limit %d, %d of %d nodes run, at most %d at the same time, want all, and %d",
					limit, len(slices.Compact(order)), len(nodes), most, want)
			}
		})
	}
}

// In a simulation, the branches begin in the order that the simulation decides, and each waits for its turn.
func TestParallelHasAPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var places []string
		var mu sync.Mutex
		var waited []int
		ctx := branching.WithPace(t.Context(), branching.Pace{
			Order: func(place string, count int) []int {
				places = append(places, fmt.Sprint(place, " ", count))
				return []int{2, 0, 3, 1}
			},
			Wait: func(place int) {
				mu.Lock()
				waited = append(waited, place)
				mu.Unlock()
				time.Sleep(time.Duration(1+place) * time.Nanosecond)
			},
		})
		ctx = reconcilers.StashRequest(ctx, widgetRequest)
		calls := &trace{}
		var nodes []widgetNode
		for _, name := range []string{"a", "b", "c", "d"} {
			nodes = append(nodes, syncing(func(context.Context, *resources.Widget) {
				calls.add("%s begins", name)
				time.Sleep(time.Second)
			}))
		}
		for limit, want := range map[int][]string{
			0: {"c begins", "a begins", "d begins", "b begins"}, 2: {"c begins", "a begins", "d begins", "b begins"},
			1: {"a begins", "b begins", "c begins", "d begins"},
		} {
			calls.calls = nil
			node := &widgetParallel{Nodes: nodes, Limit: limit}
			if _, err := node.Reconcile(reconcilers.Enter(ctx, "Root"), widget.Object()); err != nil {
				t.Errorf("the error is %v, want none", err)
			}
			calls.compare(t, want)
		}
		if want := []string{"default/gadget Root 4", "default/gadget Root 4"}; !slices.Equal(places, want) {
			t.Errorf("the order is asked for at %q, want %q", places, want)
		}
		slices.Sort(waited)
		if want := []int{0, 0, 1, 1, 2, 3}; !slices.Equal(waited, want) {
			t.Errorf("there are waits for the places %v, want %v: four branches begin, and then two", waited, want)
		}
	})
}

// A limit of nodes that wait, and a cancellation: those that have not begun do not run, and Reconcile returns once the
// others have ended.
func TestParallelIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		var ran, ended []int
		nodes := make([]widgetNode, 5)
		for i := range nodes {
			nodes[i] = &widgetSync{Sync: func(ctx context.Context, _ *resources.Widget) error {
				mu.Lock()
				ran = append(ran, i)
				mu.Unlock()
				<-ctx.Done()
				time.Sleep(time.Minute)
				mu.Lock()
				ended = append(ended, i)
				mu.Unlock()
				return ctx.Err()
			}}
		}
		go func() {
			synctest.Wait()
			cancel()
		}()
		node := parallel(nodes...)
		node.Limit = 2
		_, err := node.Reconcile(ctx, widget.Object())
		slices.Sort(ran)
		slices.Sort(ended)
		if !slices.Equal(ran, []int{0, 1}) || !slices.Equal(ended, ran) || !errors.Is(err, context.Canceled) {
			t.Errorf("nodes %v ran, and %v ended, with the error %v, want 0 and 1 in both, and that it was cancelled",
				ran, ended, err)
		}
		if want := 3; strings.Count(fmt.Sprint(err), "the request ended before the node began") != want {
			t.Errorf("the error is %v, want it to say of %d nodes that they did not begin", err, want)
		}
	})
}

// Two branches that change one thing to different values are an error that names both and the thing. The first counts.
func TestParallelConflicts(t *testing.T) {
	store := func(key stash.Key, value any) func(context.Context, *resources.Widget) {
		return func(ctx context.Context, _ *resources.Widget) { stash.StoreValue(ctx, key, value) }
	}
	field := func(key, value string) func(context.Context, *resources.Widget) {
		return func(_ context.Context, w *resources.Widget) { w.Status.AddField(key, value) }
	}
	condition := func(status metav1.ConditionStatus) func(context.Context, *resources.Widget) {
		return func(ctx context.Context, w *resources.Widget) {
			reconcilers.SetCondition(ctx, w, metav1.Condition{Type: "Cached", Status: status, Reason: "Test"})
		}
	}
	both := func(what string) string {
		return "the nodes Root/0/a and Root/1/b both change " + what + ": nodes that do so must not be in one Parallel"
	}
	clears := func(ctx context.Context, w *resources.Widget) {
		stash.ClearValue(ctx, "before")
		delete(w.Status.Fields, "before")
	}
	tests := map[string]struct {
		a, b  func(context.Context, *resources.Widget)
		want  string
		stash map[stash.Key]any
		left  map[string]string
	}{
		"different fields": {a: field("a", "1"), b: field("b", "2"), left: map[string]string{"before": "0", "a": "1", "b": "2"}},
		"one field": {
			a: field("a", "1"), b: field("a", "2"), want: both(".status.fields.a of the resource"),
			left: map[string]string{"before": "0", "a": "1"},
		},
		"one field, the same": {a: field("a", "1"), b: field("a", "1"), left: map[string]string{"before": "0", "a": "1"}},
		"removed and changed": {
			a: clears, b: field("before", "1"), want: both(".status.fields.before of the resource"),
			left: map[string]string{},
		},
		"one condition": {
			a: condition("True"), b: condition("False"), want: both(".status.conditions[Cached] of the resource"),
			left: map[string]string{"before": "0"},
		},
		"different values": {
			a: store("a", 1), b: store("b", 2), stash: map[stash.Key]any{"a": 1, "b": 2, "before": 0},
			left: map[string]string{"before": "0"},
		},
		"one value": {
			a: store("a", 1), b: store("a", 2), want: both(`the value "a" in the stash`),
			stash: map[stash.Key]any{"a": 1, "before": 0}, left: map[string]string{"before": "0"},
		},
		"a value removed": {
			a: clears, b: store("b", 2), stash: map[stash.Key]any{"b": 2, "before": nil}, left: map[string]string{},
		},
		"a value put back": {
			a: func(ctx context.Context, w *resources.Widget) {
				stash.StoreValue(ctx, "before", 5)
				stash.StoreValue(ctx, "before", 0)
			},
			b: store("before", 2), stash: map[stash.Key]any{"before": 2}, left: map[string]string{"before": "0"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for range 20 {
				ctx := testContext(t, expectWidget().Config())
				stash.StoreValue(ctx, "before", 0)
				w := widget.With(statusField("before", "0")).Object()
				node := parallel(
					&widgetSync{Name: "a", Sync: func(ctx context.Context, w *resources.Widget) error { test.a(ctx, w); return nil }},
					&widgetSync{Name: "b", Sync: func(ctx context.Context, w *resources.Widget) error { test.b(ctx, w); return nil }},
				)
				got := ""
				if _, err := node.Reconcile(reconcilers.Enter(ctx, "Root"), w); err != nil {
					got = err.Error()
				}
				if got != test.want {
					t.Fatalf("the error is\n%q, want\n%q", got, test.want)
				}
				if diff := cmp.Diff(test.left, w.Status.Fields); diff != "" {
					t.Fatalf("the status differs (-want, +got):\n%s", diff)
				}
				for key, value := range test.stash {
					if got := stash.RetrieveValue(ctx, key); got != value {
						t.Fatalf("the stash has %v under %q, want %v", got, key, value)
					}
				}
			}
		})
	}
}

// What branches have marked by a condition set is summed up as if they had marked one after the other.
func TestParallelSumsUpConditions(t *testing.T) {
	set := apis.NewLivingConditionSet("A", "B", "C")
	mark := func(conditionType string, status metav1.ConditionStatus) widgetNode {
		return syncing(func(ctx context.Context, w *resources.Widget) {
			manager := set.ManageWithContext(ctx, &w.Status)
			switch status {
			case metav1.ConditionTrue:
				manager.MarkTrue(conditionType, "Fine", "")
			case metav1.ConditionFalse:
				manager.MarkFalse(conditionType, "Broken", "%s is broken", conditionType)
			default:
				manager.MarkUnknown(conditionType, "Asking", "")
			}
		})
	}
	states := []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown}
	for i := range 27 * 2 {
		nodes := []widgetNode{mark("A", states[i%3]), mark("B", states[i/3%3]), mark("C", states[i/9%3])}
		var outcomes [2][]metav1.Condition
		for j, node := range []widgetNode{widgetSequence(nodes), parallel(nodes...)} {
			ctx := testContext(t, expectWidget().Config())
			w := widget.Object()
			set.ManageWithContext(ctx, &w.Status).InitializeConditions()
			if i >= 27 {
				set.ManageWithContext(ctx, &w.Status).MarkFalse("B", "Broken", "before")
			}
			if _, err := node.Reconcile(ctx, w); err != nil {
				t.Fatalf("the error is %v, want none", err)
			}
			outcomes[j] = w.Status.Conditions
		}
		if diff := cmp.Diff(outcomes[0], outcomes[1]); diff != "" {
			t.Errorf("case %d: the conditions differ from those of a sequence (-sequence, +parallel):\n%s", i, diff)
		}
	}
}

// Below a root, a panic is an error of its node, and the other branches go on. Without a root it reaches the caller.
func TestParallelPanics(t *testing.T) {
	tree := func() widgetNode {
		return parallel(
			syncing(func(_ context.Context, w *resources.Widget) { w.Status.AddField("a", "1") }),
			&widgetSync{Name: "panics", Sync: func(context.Context, *resources.Widget) error { panic("boom") }},
			syncing(func(_ context.Context, w *resources.Widget) { w.Status.AddField("c", "3") }),
		)
	}
	root := &widgetRoot{Config: expectWidget(widget).Config(), Reconciler: tree()}
	_, err := root.Reconcile(t.Context(), widgetRequest)
	var located *reconcilers.Error
	if !errors.As(err, &located) || located.Path != "WidgetResourceReconciler/1/panics" {
		t.Errorf("the error is %v, want one at WidgetResourceReconciler/1/panics", err)
	}
	var left resources.Widget
	if err := root.Config.Get(t.Context(), widgetKey, &left); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(left.Status.Fields), "map[a:1 c:3]"; got != want {
		t.Errorf("the status has %s, want %s", got, want)
	}

	func() {
		defer func() {
			if value := recover(); value != "boom" {
				t.Errorf("the caller recovers %v, want the value of the panic, boom", value)
			}
		}()
		_, err := tree().Reconcile(t.Context(), widget.Object())
		t.Errorf("Reconcile returned %v, want it to panic", err)
	}()

	exits := make(chan bool)
	go func() {
		defer close(exits)
		node := parallel(syncing(func(context.Context, *resources.Widget) { runtime.Goexit() }), idle{})
		_, _ = node.Reconcile(t.Context(), widget.Object())
		exits <- true
	}()
	if <-exits {
		t.Error("Reconcile returned although a node has called Goexit, want the caller to exit, too")
	}
}

// The error of a branch is located at the node that met it, also at one that does not record its errors.
func TestParallelLocatesErrors(t *testing.T) {
	calls := &trace{}
	named := &widgetSync{Name: "named", Sync: func(context.Context, *resources.Widget) error { return errBoom }}
	for name, node := range map[string]widgetNode{
		"Root/1":       parallel(idle{}, calls.step("fails", nothing, errBoom), idle{}),
		"Root/1/0":     parallel(idle{}, parallel(calls.step("fails", nothing, errBoom), idle{})),
		"Root/1/named": parallel(idle{}, named),
	} {
		locates(t, node, errBoom, name)
	}
	root := &widgetRoot{Name: "Root", Reconciler: parallel(idle{}, nil), Config: expectWidget(widget).Config()}
	_, err := root.Reconcile(t.Context(), widgetRequest)
	var located *reconcilers.Error
	if !errors.As(err, &located) || located.Path != "Root/1" {
		t.Errorf("the error of a nil node is %v, want one at Root/1", err)
	}
}

func TestParallelIsValidated(t *testing.T) {
	sets := func(name string, conditions ...string) widgetNode {
		return &described{Description: reconcilers.Description{Kind: "node", Name: name, Conditions: conditions}}
	}
	yields := func(name string, key stash.Key) widgetNode {
		order := &reconcilers.Order{Yields: []stash.Key{key}}
		return &described{Description: reconcilers.Description{Kind: "node", Name: name, Order: order}}
	}
	ofItems := func(name string, node widgetNode) widgetNode {
		return &reconcilers.ForEach[*resources.Widget, string]{
			Name: name, Key: func(item string) string { return item }, Reconciler: node,
			Items: func(context.Context, *resources.Widget) ([]string, error) { return nil, nil },
		}
	}
	same := sets("same")
	child := reflectingChild(&trace{})
	child.Name = "child"
	for want, node := range map[string]*widgetParallel{
		"": parallel(
			sets("a", "A", "A"), sets("b", "B"), yields("c", "x"), yields("d", "y"), sets("e", ""), sets("f", ""),
			ofItems("g", yields("h", "z")), ofItems("i", yields("j", "z"))),
		"Parallel must not have the Limit -1: it is a number of nodes, or zero for 16": {Limit: -1},
		"Parallel must have a valid Nodes[1]: must not be nil":                         parallel(idle{}, nil),
		"Parallel must not have one node twice, as Nodes[0] and Nodes[2]":              parallel(same, idle{}, same),
		"Parallel must not have one node at 0/0/child and at 1/0/child, which run at the same time": parallel(
			widgetSequence{child}, widgetSequence{child}),
		"Parallel must not have the condition A at 0/a and at 1/0/b, which run at the same time": parallel(
			sets("a", "A"), widgetSequence{sets("b", "A")}),
		`Parallel must not have the value "x" at 0/a and at 1/0/b, which run at the same time`: parallel(
			yields("a", "x"), widgetSequence{yields("b", "x")}),
	} {
		ctx := validation.WithRecursive(t.Context())
		for verb, err := range map[string]error{
			"Validate": node.Validate(ctx), "SetupWithManager": node.SetupWithManager(ctx, nil, nil),
		} {
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("the error of %s is\n%q, want\n%q", verb, got, want)
			}
		}
	}
}

// described is a node that does nothing.
type described struct {
	idle
	reconcilers.Description
}

func (d *described) Describe() reconcilers.Description { return d.Description }
