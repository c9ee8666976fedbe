package engine_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/engine"
	"github.com/espalier-dev/espalier/internal/component/execute"
	"github.com/espalier-dev/espalier/internal/component/observe"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/served"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

var gear = schema.GroupVersionKind{Group: "test.local", Version: "v1", Kind: "Gear"}

// scoped is a cluster whose mapper says that Gears are in namespaces, and an API server that may know better.
type scoped struct {
	leaving
	served.Discoverer
	meta.ResettableRESTMapper
	discovery.DiscoveryInterface

	// serves is what the API server says about the group, or why it says nothing.
	serves []metav1.APIResource
	fails  error

	asked, resets int
	looked        []string
}

func (s *scoped) RESTMapper() meta.RESTMapper { return s }

func (s *scoped) Reset() { s.resets++ }

func (s *scoped) Known(gk schema.GroupKind) (*meta.RESTMapping, bool) {
	return &meta.RESTMapping{GroupVersionKind: gear, Scope: meta.RESTScopeNamespace}, gk == gear.GroupKind()
}

func (s *scoped) ServerResourcesForGroupVersion(string) (*metav1.APIResourceList, error) {
	s.asked++
	return &metav1.APIResourceList{APIResources: s.serves}, s.fails
}

func (s *scoped) Observe(_ context.Context, _ observe.Component, interests []observe.Interest) (*observe.Observation, error) {
	for _, in := range interests {
		s.looked = append(s.looked, in.Key.String())
	}
	return &observe.Observation{}, nil
}

// TestScopeIsAskedFor: a key that does not fit the scope that the mapper knows is looked for only if the API server says
// that it fits, or that it does not serve the type. Without an answer, nothing is known.
func TestScopeIsAskedFor(t *testing.T) {
	gears := func(namespaced bool) []metav1.APIResource {
		return []metav1.APIResource{{Name: "gears/status", Kind: "Gear", Namespaced: !namespaced}, {Name: "gears", Kind: "Gear", Namespaced: namespaced}}
	}
	for name, test := range map[string]struct {
		namespace string
		world     scoped
		asked     int
		looks     bool
		resets    int
		want      plan.Observed
		polled    bool
	}{
		"it fits":         {namespace: "default", looks: true},
		"it cannot exist": {world: scoped{serves: gears(true)}, asked: 1, want: plan.Observed{Presence: plan.Absent, Misplaced: true}},
		"it fits now":     {world: scoped{serves: gears(false)}, asked: 1, looks: true, resets: 1},
		"no such type":    {world: scoped{}, asked: 1, looks: true, resets: 1},
		"no such version": {world: scoped{fails: apierrs.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{}, "", "", 0, true)}, asked: 1, looks: true, resets: 1},
		"it is not known": {world: scoped{fails: errors.New("connection refused")}, asked: 1, polled: true},
	} {
		t.Run(name, func(t *testing.T) {
			world := &test.world
			for range 2 {
				world.records = append(world.records, apis.InventoryRecord{
					Group: gear.Group, Version: gear.Version, Kind: gear.Kind, Namespace: test.namespace, Name: string(rune('a' + len(world.records))),
				})
			}
			machine := &engine.Engine{
				Client: world, Discovery: world, Observer: world, Store: world, Memory: &engine.Memory{},
				Mark: execute.Mark{Prefix: prefix, ID: "id", Owner: "owner"}, FieldManager: prefix,
			}
			report, err := machine.Run(t.Context(), engine.Task{Now: time.Unix(1000, 0), AllowEmpty: true})
			if err != nil {
				t.Fatal(err)
			}
			if looks := len(world.looked) == 2; looks != test.looks || world.asked != test.asked || (world.resets > 0) != (test.resets > 0) {
				t.Errorf("it looks for %v, after %d questions and %d resets of the mapper, want it to look: %t, after %d and %d",
					world.looked, world.asked, world.resets, test.looks, test.asked, test.resets)
			}
			for _, r := range world.records {
				if got := report.Input.Observed[plan.KeyOf(r)]; got != test.want {
					t.Errorf("it observes %+v, want %+v", got, test.want)
				}
			}
			if left := len(report.Inventory); (left == 0) != test.want.Misplaced || (report.Polled[gear.GroupKind()] != "") != test.polled {
				t.Errorf("%d records are left and %v is polled, want none left: %t, and the type polled: %t", left, report.Polled, test.want.Misplaced, test.polled)
			}
		})
	}
}
