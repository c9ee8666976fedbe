package engine_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/engine"
	"github.com/espalier-dev/espalier/internal/component/execute"
	"github.com/espalier-dev/espalier/internal/component/observe"
	"github.com/espalier-dev/espalier/internal/component/plan"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// leaving is a cluster with an object that is deleted, and an observer that is a moment behind.
type leaving struct {
	obedient
	// watched is what AwaitDeleted returns. It shows the deletions then.
	watched bool
	// again has the UIDs with which another client creates the object once more.
	again []types.UID

	exists, shown types.UID
	deleted       []types.UID
	saved         []int
}

func (l *leaving) Delete(_ context.Context, _ client.Object, options ...client.DeleteOption) error {
	applied := (&client.DeleteOptions{}).ApplyOptions(options)
	l.deleted = append(l.deleted, *applied.Preconditions.UID)
	l.exists = ""
	if len(l.again) > 0 {
		l.exists, l.again = l.again[0], l.again[1:]
	}
	return nil
}

// Managed says that the object is ours, so that it is not read before it is deleted.
func (l *leaving) Managed(observe.Component, plan.Key) []metav1.ManagedFieldsEntry {
	return []metav1.ManagedFieldsEntry{{Manager: prefix}}
}

func (l *leaving) Deleted(observe.Component, plan.Key, types.UID, bool) {}

func (l *leaving) AwaitDeleted(context.Context, observe.Component) bool {
	if l.watched {
		l.shown = l.exists
	}
	return l.watched
}

func (l *leaving) Observe(_ context.Context, _ observe.Component, interests []observe.Interest) (*observe.Observation, error) {
	seen := plan.Observed{Presence: plan.Absent}
	if l.shown != "" {
		seen = plan.Observed{Presence: plan.Present, UID: l.shown, Ownership: plan.Ours}
	}
	return &observe.Observation{Objects: map[plan.Key]plan.Observed{interests[0].Key: seen}}, nil
}

func (l *leaving) Save(_ context.Context, records []apis.InventoryRecord) (bool, error) {
	l.saved = append(l.saved, len(records))
	return true, nil
}

// TestDeletionIsSeenAtOnce: a run whose deletions the watches show is the last one. It stores no record of what is gone.
func TestDeletionIsSeenAtOnce(t *testing.T) {
	for name, test := range map[string]struct {
		world   leaving
		done    bool
		saved   []int
		deleted []types.UID
	}{
		"the watches show it":    {world: leaving{watched: true}, done: true, saved: []int{0}, deleted: []types.UID{"1"}},
		"no watch shows it":      {world: leaving{}, saved: []int{1}, deleted: []types.UID{"1"}},
		"it is created again":    {world: leaving{watched: true, again: []types.UID{"2"}}, saved: []int{1}, deleted: []types.UID{"1", "2"}},
		"and again after that":   {world: leaving{watched: true, again: []types.UID{"2", "3"}}, saved: []int{1}, deleted: []types.UID{"1", "2"}},
		"it is gone before that": {world: leaving{watched: true, exists: "-"}, done: true, saved: []int{0}},
	} {
		t.Run(name, func(t *testing.T) {
			world := &test.world
			world.records = []apis.InventoryRecord{{Version: "v1", Kind: "ConfigMap", Namespace: "default", Name: "a", UID: "1"}}
			if world.exists == "" {
				world.exists, world.shown = "1", "1"
			}
			machine := &engine.Engine{
				Client: world, Observer: world, Store: world, Memory: &engine.Memory{},
				Mark: execute.Mark{Prefix: prefix, ID: "id", Owner: "owner"}, FieldManager: prefix,
			}
			report, err := machine.Run(t.Context(), engine.Task{Deleting: true, Now: time.Unix(1000, 0)})
			if err != nil || report.Futile || len(report.Failures) > 0 {
				t.Fatalf("the run found the error %v and the failures %v (futile: %t), want none", err, report.Failures, report.Futile)
			}
			if report.Plan.Done != test.done {
				t.Errorf("the component is gone: %t, want %t", report.Plan.Done, test.done)
			}
			if !slices.Equal(world.deleted, test.deleted) {
				t.Errorf("it deleted the objects %v, want %v", world.deleted, test.deleted)
			}
			if !slices.Equal(world.saved, test.saved) {
				t.Errorf("it stored inventories of %v records, want %v", world.saved, test.saved)
			}
		})
	}
}
