package engine_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/engine"
	"github.com/espalier-dev/espalier/internal/component/execute"
	"github.com/espalier-dev/espalier/internal/component/inventory"
	"github.com/espalier-dev/espalier/internal/component/observe"
	"github.com/espalier-dev/espalier/internal/component/plan"
)

// refusing is a cluster in which nothing may be read.
type refusing struct{ atRest }

func (r *refusing) Observe(
	_ context.Context, _ observe.Component, interests []observe.Interest,
) (*observe.Observation, error) {
	objects := map[plan.Key]plan.Observed{}
	for i := range interests {
		objects[interests[i].Key] = plan.Observed{Refused: true}
	}
	return &observe.Observation{Objects: objects}, nil
}

// Only what goes with a namespace that goes is not waited for: neither what defines types, nor an object of the cluster
// or of another namespace, nor anything while the resource stays, or while it is not known whether the namespace goes.
func TestWhatGoesWithItsNamespace(t *testing.T) {
	t.Parallel()
	errNoRight := errors.New("forbidden")
	goes := func(_ context.Context, name string) (bool, error) { return name == "leaving", nil }
	tests := map[string]struct {
		goes func(context.Context, string) (bool, error)
		want []string
		err  error
	}{
		"a namespace goes":   {goes: goes, want: []string{"cluster", "definer", "elsewhere"}},
		"it is not known":    {goes: func(context.Context, string) (bool, error) { return false, errNoRight }, err: errNoRight},
		"the resource stays": {want: []string{"cluster", "definer", "elsewhere", "inside"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			record := func(namespace, name string, managed ...apis.ManagedType) apis.InventoryRecord {
				return apis.InventoryRecord{
					Version: "v1", Kind: "ConfigMap", Namespace: namespace, Name: name, UID: "a", Digest: "d",
					Phase: apis.PhaseDeleting, ManagedTypes: managed,
				}
			}
			status := apis.ComponentStatus{Inventory: []apis.InventoryRecord{
				record("", "cluster"), record("leaving", "definer", apis.ManagedType{Group: "a", Version: "*", Kind: "B"}),
				record("staying", "elsewhere"), record("leaving", "inside"),
			}}
			world := &refusing{}
			machine := &engine.Engine{
				Client: world, Observer: world, Store: inventory.NewStatus(&status), Memory: &engine.Memory{},
				Mark: execute.Mark{Prefix: prefix, ID: "id", Owner: "owner"}, FieldManager: prefix,
			}
			task := engine.Task{Deleting: true, NamespaceGoes: test.goes, Now: time.Unix(1000, 0)}
			report, err := machine.Run(t.Context(), task)
			if !errors.Is(err, test.err) {
				t.Fatalf("the error is %v, want %v", err, test.err)
			}
			var left []string
			for _, record := range report.Inventory {
				left = append(left, record.Name)
			}
			if slices.Sort(left); test.err == nil && !slices.Equal(left, test.want) {
				t.Errorf("%v are left, want %v", left, test.want)
			}
		})
	}
}
