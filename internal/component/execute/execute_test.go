package execute_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/espalier-dev/espalier/internal/component/manifest"
	"github.com/espalier-dev/espalier/internal/component/plan"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// Operations and objects that make no sense are errors.
func TestNonsenseIsNoPanic(t *testing.T) {
	b := newBench(t)
	for name, content := range map[string]map[string]any{
		"nil":      nil,
		"empty":    {},
		"metadata": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": []any{"x"}},
		"labels": {"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": "x", "labels": "x", "annotations": []any{}}},
		"no version": {"kind": "ConfigMap", "metadata": map[string]any{"name": "x"}},
		"finalizers": {"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": "x", "finalizers": "x"}},
		"not what it is": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x"},
			"data": []any{1}},
	} {
		key := plan.Key{Kind: "ConfigMap", Namespace: b.namespace, Name: "x"}
		o := manifest.Given(&unstructured.Unstructured{Object: content})
		o.Desired = plan.Desired{Key: key, Digest: "d"}
		b.executor.Objects[key] = &o
		for _, action := range []plan.Action{plan.ActionCreate, plan.ActionApply, plan.ActionAdopt,
			plan.ActionReplace} {
			for _, uid := range []types.UID{"", "1"} {
				op := plan.Operation{Action: action, Key: key, Version: "v1", UID: uid, Pattern: -1}
				if result := b.run(op); result.Err == nil && action != plan.ActionCreate {
					t.Errorf("%s: %s was done, want an error", name, action)
				}
			}
		}
	}
	b.executor.Objects[plan.Key{}] = &manifest.Object{}
	if b.run(plan.Operation{}).Err == nil || b.run(plan.Operation{Action: plan.ActionCreate}).Err == nil {
		t.Error("an empty operation was done, want an error")
	}
}

// creations desires n ConfigMaps, and returns the stage that creates them.
func (b *bench) creations(n int) plan.Stage {
	b.Helper()
	var stage plan.Stage
	for i := range n {
		o := b.desire(fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: x%d}}`, i), "d1")
		stage.Operations = append(stage.Operations, operation(plan.ActionCreate, o))
	}
	return stage
}

// One that fails or panics does not keep the others from being tried, and the results are in the order of the
// operations.
func TestRun(t *testing.T) {
	b := newBench(t, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			switch o.GetName() {
			case "x3":
				return apierrs.NewInternalError(errors.New("because"))
			case "x5":
				panic("no data")
			}
			return c.Create(ctx, o, opts...)
		},
	})
	stage := b.creations(40)
	results := b.executor.Run(t.Context(), stage)
	if len(results) != len(stage.Operations) {
		t.Fatalf("there are %d results, want %d", len(results), len(stage.Operations))
	}
	for i, result := range results {
		if result.Operation != stage.Operations[i] {
			t.Errorf("result %d is for %s, want %s", i, result.Operation.Key, stage.Operations[i].Key)
		}
		if failed := result.Err != nil; failed != (i == 3 || i == 5) {
			t.Errorf("operation %d has the error %v, want one for operations 3 and 5 alone", i, result.Err)
		}
		if result.Err == nil && result.Object.GetName() != stage.Operations[i].Key.Name {
			t.Errorf("operation %d has the object %s, want %s", i, result.Object.GetName(),
				stage.Operations[i].Key.Name)
		}
	}
	b.wantText(results[3].Err, "unable to create ConfigMap NS/x3: Internal error occurred: because")
	b.wantText(results[5].Err, "unable to create ConfigMap NS/x5: panicked: no data")
	if got := b.executor.Run(t.Context(), plan.Stage{}); len(got) != 0 {
		t.Errorf("no operations have %d results, want none", len(got))
	}
}

// As many operations as allowed are executed at the same time, and no more.
func TestRunInParallel(t *testing.T) {
	for _, test := range []struct{ parallel, want int }{{0, 16}, {1, 1}, {5, 5}} {
		var mu sync.Mutex
		running, most := 0, 0
		full := make(chan struct{})
		b := newBench(t, interceptor.Funcs{
			Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
				mu.Lock()
				running++
				if most = max(most, running); most == test.want && running == most {
					select {
					case <-full:
					default:
						close(full)
					}
				}
				mu.Unlock()
				<-full
				mu.Lock()
				running--
				mu.Unlock()
				return nil
			},
		})
		b.executor.Parallel = test.parallel
		b.executor.Run(t.Context(), b.creations(40))
		if most != test.want {
			t.Errorf("with %d, at most %d were executed at the same time, want %d", test.parallel, most, test.want)
		}
	}
}

// Once the context is done, nothing more is begun.
func TestRunCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	b := newBench(t, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			calls++
			err := c.Create(ctx, o, opts...)
			cancel()
			return err
		},
	})
	b.executor.Parallel = 1
	results := b.executor.Run(ctx, b.creations(4))
	if calls != 1 || results[0].Err != nil {
		t.Errorf("%d operations were begun and the first one ended with %v, want 1 without an error", calls,
			results[0].Err)
	}
	for i, result := range results[1:] {
		if !errors.Is(result.Err, context.Canceled) {
			t.Errorf("operation %d has the error %v, want %v", i+1, result.Err, context.Canceled)
		}
	}
	b.wantText(results[3].Err, "unable to create ConfigMap NS/x3: context canceled")
	failed := b.executor.EnsureNamespaces(ctx, []string{b.namespace})
	if !errors.Is(failed[b.namespace], context.Canceled) {
		t.Errorf("the error is %v, want %v", failed[b.namespace], context.Canceled)
	}
}

// Operations that make no sense are errors.
func TestRunNonsense(t *testing.T) {
	b := newBench(t)
	key := plan.Key{Kind: "ConfigMap", Namespace: b.namespace, Name: "x"}
	for _, action := range []plan.Action{plan.ActionCreate, plan.ActionApply, plan.ActionAdopt, plan.ActionReplace} {
		b.wantText(b.run(plan.Operation{Action: action, Key: key, UID: "1"}).Err,
			"unable to "+string(action)+" ConfigMap NS/x: there is no manifest for it")
	}
	b.wantText(b.run(plan.Operation{Action: "dance", Key: key, UID: "1"}).Err,
		"unable to dance ConfigMap NS/x: the action is not known")
}
