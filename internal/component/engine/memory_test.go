package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/component/engine"
	"github.com/espalier-dev/espalier/internal/component/execute"
	"github.com/espalier-dev/espalier/internal/component/manifest"
	"github.com/espalier-dev/espalier/internal/component/observe"
	"github.com/espalier-dev/espalier/internal/component/plan"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// atRest is a cluster in which nothing changes.
type atRest struct {
	obedient
	created, deleted int
}

func (r *atRest) Unchanged(observe.Component) bool { return true }

func (r *atRest) Managed(observe.Component, plan.Key) []metav1.ManagedFieldsEntry {
	return []metav1.ManagedFieldsEntry{{Manager: prefix}}
}

func (r *atRest) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	r.created++
	return r.obedient.Create(ctx, object, options...)
}

func (r *atRest) Observe(_ context.Context, _ observe.Component, interests []observe.Interest) (*observe.Observation, error) {
	seen := plan.Observed{Presence: plan.Absent}
	if r.created > r.deleted {
		seen = plan.Observed{Presence: plan.Present, UID: "a", Ownership: plan.Ours}
	}
	objects := map[plan.Key]plan.Observed{}
	for i := range interests {
		objects[interests[i].Key] = seen
	}
	return &observe.Observation{Objects: objects}, nil
}

func (r *atRest) Deleted(observe.Component, plan.Key, types.UID, bool) {}

func (r *atRest) Delete(context.Context, client.Object, ...client.DeleteOption) error {
	r.deleted++
	return nil
}

// TestStoredIsForgotten: what a run has created is remembered until the inventory is found to have it, and not for as
// long as nothing changes.
func TestStoredIsForgotten(t *testing.T) {
	for name, found := range map[string]bool{"found stored": true, "not looked for": false} {
		t.Run(name, func(t *testing.T) {
			options := manifest.Options{Prefix: prefix, Namespaced: func(schema.GroupVersionKind) (bool, bool, error) { return true, true, nil }}
			objects, err := manifest.Prepare([]client.Object{configMap("a")}, options, nil)
			if err != nil {
				t.Fatal(err)
			}
			world := &atRest{}
			machine := &engine.Engine{
				Client: world, Observer: world, Store: world, Memory: &engine.Memory{},
				Mark: execute.Mark{Prefix: prefix, ID: "id", Owner: "owner"}, FieldManager: prefix,
			}
			now := time.Unix(1000, 0)
			if report, err := machine.Run(t.Context(), engine.Task{Objects: objects, Now: now}); err != nil || !report.Plan.Done {
				t.Fatalf("the component is ready: %t (%v), want true", report.Plan.Done, err)
			}
			if found {
				if report := machine.Unchanged(now); report == nil {
					t.Fatal("something has changed, want that nothing has")
				}
			}
			_ = machine.Undo(t.Context(), now) // it tells what is remembered
			if want := map[bool]int{false: 1}[found]; world.deleted != want {
				t.Errorf("the process remembers %d objects that may not be stored, want %d", world.deleted, want)
			}
		})
	}
}
