package component_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type (
	assemblyCase = rtesting.SubReconcilerTestCase[*resources.Assembly]
	assemblyRows rtesting.NodeTests[*resources.Assembly]
	rolledOut    = *rtesting.RolledOut[*resources.Assembly]
)

const componentFinalizer = componentPrefix + "/component"

// assembling is the node of the rows. What it does at the same time would be recorded in any order.
func assembling() *component.ComponentReconciler[*resources.Assembly] {
	return &component.ComponentReconciler[*resources.Assembly]{
		Prefix:    componentPrefix,
		Generator: resources.AssemblyGenerator(),
		Parallel:  1,
		// No API server is behind the client.
		FenceMargin: -1,
	}
}

// run runs the rows with nodes of their own, at the time of the roll-outs.
func (rows assemblyRows) run(t *testing.T, adapt ...func(*component.ComponentReconciler[*resources.Assembly])) {
	t.Helper()
	for name, row := range rows {
		row.Now = rtesting.RolledOutAt
		// What was applied once more has a digest of the fields that were applied.
		row.Replays.Ignore = append(row.Replays.Ignore, "Assembly default/house: status.inventory[*].fields")
		rows[name] = row
	}
	rtesting.NodeTests[*resources.Assembly](rows).Run(t, assemblyScheme,
		func(*testing.T, *assemblyCase, reconcilers.Config) reconcilers.SubReconciler[*resources.Assembly] {
			node := assembling()
			for _, change := range adapt {
				change(node)
			}
			return &reconcilers.WithConfig[*resources.Assembly]{Config: pastTheCache, Reconciler: node}
		})
}

// pastTheCache has a component read past the cache, as it does in a cluster.
func pastTheCache(_ context.Context, c reconcilers.Config) (reconcilers.Config, error) {
	c.Client = uncached{c.Client, c.APIReader}
	return c, nil
}

// uncached is a client that reads past the cache.
type uncached struct {
	client.Client
	reader client.Reader
}

func (u uncached) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return u.reader.Get(ctx, key, obj, opts...)
}

func (u uncached) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return u.reader.List(ctx, list, opts...)
}

// rollOut rolls out an Assembly, in so many passes, or else all of it.
func rollOut(t *testing.T, house *resources.Assembly, passes int, given ...client.Object) rolledOut {
	t.Helper()
	return rtesting.Rollout[*resources.Assembly]{
		Scheme: assemblyScheme, Resource: house, Reconciler: assembling(), Requests: passes, GivenObjects: given,
	}.Run(t)
}

// newHouse is a component of walls and a roof upon them.
func newHouse() (house *resources.Assembly, walls, roof *corev1.ConfigMap) {
	walls, roof = partOf("default", "walls", "0"), partOf("default", "roof", "1")
	house = resources.NewAssembly("default", "house", walls, roof)
	house.UID, house.Generation = "house-uid", 1
	return house, walls, roof
}

// going returns the resource as it is being deleted.
func going(a *resources.Assembly) {
	a.DeletionTimestamp = &metav1.Time{Time: rtesting.RolledOutAt}
}

// conditionIs expects a state and what the condition says.
func conditionIs(state apis.ComponentState, status metav1.ConditionStatus, reason, message string) func(*resources.Assembly) {
	return func(a *resources.Assembly) {
		rtesting.IgnoreComputed(&a.Status)
		a.Status.State, a.Status.ObservedGeneration = state, a.Generation
		if state == apis.ComponentReady {
			a.Status.AppliedGeneration = a.Generation
		}
		a.Status.Conditions = []metav1.Condition{{
			Type: apis.ConditionReady, Status: status, Reason: reason, Message: message, ObservedGeneration: a.Generation,
		}}
	}
}

// recordOf expects a record of a ConfigMap.
func recordOf(name string, order int16, phase apis.InventoryPhase, status apis.ObjectStatus, message string) apis.InventoryRecord {
	return apis.InventoryRecord{
		Version: "v1", Kind: "ConfigMap", Namespace: "default", Name: name,
		ApplyOrder: order, Phase: phase, Status: status, Message: message,
	}
}

func records(records ...apis.InventoryRecord) func(*resources.Assembly) {
	return func(a *resources.Assembly) { a.Status.Inventory = records }
}

// houseFinalizers expects that the finalizers of the house are set.
func houseFinalizers(house client.Object, version, finalizers string) rtesting.PatchRef {
	return rtesting.PatchRef{
		Group: resources.GroupVersion.Group, Kind: "Assembly", Namespace: house.GetNamespace(), Name: house.GetName(),
		PatchType: "application/merge-patch+json",
		Patch:     []byte(`{"metadata":{"finalizers":` + finalizers + `,"resourceVersion":"` + version + `"}}`),
	}
}

// houseEvents expects events about the house, each a reason and a message. A reason that ends in Error, and Error
// itself, warn.
func houseEvents(house client.Object, reasonsAndMessages ...string) []rtesting.Event {
	var events []rtesting.Event
	for i := 0; i < len(reasonsAndMessages); i += 2 {
		eventType := corev1.EventTypeNormal
		if strings.HasSuffix(reasonsAndMessages[i], "Error") {
			eventType = corev1.EventTypeWarning
		}
		event := rtesting.NewEvent(house, assemblyScheme, eventType, reasonsAndMessages[i], "%s", reasonsAndMessages[i+1])
		events = append(events, event)
	}
	return events
}

// later is a result that says when to come back.
func later(delay time.Duration) reconcilers.Result {
	return reconcilers.Result{RequeueAfter: delay, Priority: new(-100)}
}

func TestComponentRows(t *testing.T) {
	house, walls, roof := newHouse()
	fresh := rtesting.NewFixture(house)
	recorded, deployed := rollOut(t, house, 1), rollOut(t, house, 0)
	drifted := deployed.After(t, func(ctx context.Context, c client.Client) error {
		return c.Patch(ctx, walls.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"data":{"name":"ruins"}}`)))
	})
	pruned := deployed.With(func(a *resources.Assembly) { a.SetObjects(walls) })
	empty := deployed.After(t, func(ctx context.Context, c client.Client) error {
		return errors.Join(c.Delete(ctx, walls), c.Delete(ctx, roof))
	})
	ready := conditionIs(apis.ComponentReady, metav1.ConditionTrue, "Ready", "All objects are as desired, and ready")
	fence := partOf("default", "fence", "0")
	side := rollOut(t, func() *resources.Assembly { h, _, _ := newHouse(); h.SetObjects(walls, fence); return h }(), 1)
	other := resources.NewAssembly("default", "castle")
	other.UID = "castle-uid"
	theirs := rtesting.WithOwnership(walls, componentPrefix, other, assemblyScheme)
	theirs.UID = "theirs"
	const notOurs = "Wave 1 of 2: 0 of 1 ready, not ours: ConfigMap default/walls: it belongs to Assembly.test.espalier.dev default/castle; adoption-policy: always adopts it"

	assemblyRows{
		"records before it creates": {
			Resource: house,
			ExpectResource: fresh.With(
				func(a *resources.Assembly) {
					a.Finalizers, a.Status.Revision = []string{componentFinalizer}, 1
				},
				conditionIs(apis.ComponentPending, metav1.ConditionUnknown, "FirstSeen", "The objects are recorded"),
				records(
					recordOf("walls", 0, apis.PhaseScheduledForApplication, apis.ObjectInProgress, ""),
					recordOf("roof", 1, apis.PhaseScheduledForApplication, apis.ObjectInProgress, ""),
				),
			).Object(),
			ExpectPatches: []rtesting.PatchRef{houseFinalizers(house, "999", `["`+componentFinalizer+`"]`)},
			ExpectEvents: houseEvents(house,
				"FinalizerPatched", `Patched finalizer "`+componentFinalizer+`"`,
				"FirstSeen", "The objects are recorded"),
			ExpectedResult: later(1010 * time.Microsecond),
		},
		"creates wave by wave": {
			Resource:     recorded.Object(),
			GivenObjects: recorded.Objects(),
			ExpectResource: recorded.With(ready, records(
				recordOf("walls", 0, apis.PhaseReady, "", ""), recordOf("roof", 1, apis.PhaseReady, "", ""),
			)).Object(),
			ExpectCreates: []client.Object{
				rtesting.WithOwnership(walls, componentPrefix, house, assemblyScheme),
				rtesting.WithOwnership(roof, componentPrefix, house, assemblyScheme),
			},
			ExpectEvents: houseEvents(house, "Created", "Created ConfigMap default/walls", "Created", "Created ConfigMap default/roof",
				"Ready", "All objects are as desired, and ready"),
			ExpectedResult: later(606 * time.Second),
		},
		"does nothing once all agrees": {
			Resource:       deployed.Object(),
			GivenObjects:   deployed.Objects(),
			ExpectOrder:    []string{},
			ExpectedResult: later(606 * time.Second),
		},
		"puts right what somebody changed": {
			Resource:       drifted.Object(),
			GivenObjects:   drifted.Objects(),
			ExpectResource: drifted.With(func(a *resources.Assembly) { rtesting.IgnoreComputed(&a.Status) }).Object(),
			ExpectApplies:  []rtesting.ApplyRef{deployed.ApplyRef(walls)},
			ExpectEvents:   houseEvents(house, "Updated", "Updated ConfigMap default/walls"),
			ExpectedResult: later(606 * time.Second),
		},
		"prunes what is desired no more": {
			Resource:     pruned.Object(),
			GivenObjects: deployed.Objects(),
			ExpectResource: pruned.With(
				conditionIs(apis.ComponentProcessing, metav1.ConditionUnknown, "Processing", "Waiting for ConfigMap default/roof: it is being deleted"),
				func(a *resources.Assembly) { a.Status.Revision = 2 },
				records(
					recordOf("walls", 0, apis.PhaseReady, "", ""),
					recordOf("roof", 1, apis.PhaseDeleting, apis.ObjectTerminating, "it is being deleted"),
				),
			).Object(),
			ExpectDeletes: []rtesting.DeleteRef{deployed.DeleteRef(roof)},
			ExpectEvents: houseEvents(house, "Deleted", "Deleted ConfigMap default/roof",
				"Processing", "Waiting for ConfigMap default/roof: it is being deleted"),
			ExpectedResult: later(50500 * time.Microsecond),
		},
		"deletes all": {
			Resource:     deployed.With(going).Object(),
			GivenObjects: deployed.Objects(),
			ExpectResource: deployed.With(going,
				conditionIs(apis.ComponentDeleting, metav1.ConditionUnknown, "DeletionProcessing",
					"2 objects left to delete, waiting for ConfigMap default/walls: it is being deleted, ConfigMap default/roof: it is being deleted"),
				records(
					recordOf("walls", 0, apis.PhaseDeleting, apis.ObjectTerminating, "it is being deleted"),
					recordOf("roof", 1, apis.PhaseDeleting, apis.ObjectTerminating, "it is being deleted"),
				),
			).Object(),
			ExpectDeletes: []rtesting.DeleteRef{deployed.DeleteWithResourceRef(walls), deployed.DeleteWithResourceRef(roof)},
			ExpectEvents: houseEvents(house, "Deleted", "Deleted 2 objects: ConfigMap default/walls, ConfigMap default/roof",
				"DeletionProcessing", "2 objects left to delete, waiting for ConfigMap default/walls: it is being deleted, ConfigMap default/roof: it is being deleted"),
			ExpectedResult: later(50500 * time.Microsecond),
		},
		"lets the resource go once all is gone": {
			Resource:     empty.With(going).Object(),
			GivenObjects: empty.Objects(),
			ExpectResource: empty.With(going, func(a *resources.Assembly) {
				a.Finalizers, a.Status.Inventory = nil, nil
			}).Object(),
			ExpectPatches: []rtesting.PatchRef{houseFinalizers(house, empty.Object().GetResourceVersion(), "null")},
			ExpectEvents:  houseEvents(house, "FinalizerPatched", `Patched finalizer "`+componentFinalizer+`"`),
		},
		"what cannot be created is named, and the others go on": {
			Resource:     side.Object(),
			GivenObjects: side.Objects(),
			WithReactors: []rtesting.ReactionFunc{rtesting.InduceFailure("create", "ConfigMap",
				rtesting.InduceFailureOpts{Name: "walls", Error: errors.New("no bricks")})},
			ExpectResource: side.With(
				conditionIs(apis.ComponentError, metav1.ConditionFalse, "Error", "Unable to create ConfigMap default/walls: no bricks"),
				records(
					recordOf("walls", 0, apis.PhaseScheduledForApplication, apis.ObjectInProgress, "unable to create ConfigMap default/walls: no bricks"),
					recordOf("fence", 0, apis.PhaseReady, "", ""),
				),
			).Object(),
			ExpectCreates: []client.Object{
				rtesting.WithOwnership(walls, componentPrefix, house, assemblyScheme),
				rtesting.WithOwnership(fence, componentPrefix, house, assemblyScheme),
			},
			ExpectEvents: houseEvents(house, "Created", "Created ConfigMap default/fence",
				"CreateError", "Unable to create ConfigMap default/walls",
				"Error", "Unable to create ConfigMap default/walls: no bricks"),
			ExpectedErr: errors.New("unable to create ConfigMap default/walls: no bricks"),
		},
		"what belongs to another component is not taken": {
			Resource:     recorded.Object(),
			GivenObjects: append(recorded.Objects(), theirs),
			ExpectResource: recorded.With(
				conditionIs(apis.ComponentProcessing, metav1.ConditionUnknown, "Processing", notOurs),
				records(
					recordOf("walls", 0, apis.PhaseScheduledForApplication, apis.ObjectFailed, "it belongs to Assembly.test.espalier.dev default/castle; adoption-policy: always adopts it"),
					recordOf("roof", 1, apis.PhaseScheduledForApplication, apis.ObjectInProgress, ""),
				),
			).Object(),
			ExpectOrder:    []string{},
			ExpectEvents:   houseEvents(house, "Processing", notOurs),
			ExpectedResult: later(50500 * time.Microsecond),
		},
	}.run(t)
}
