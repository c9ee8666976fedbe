package component_test

import (
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	rtesting "github.com/espalier-dev/espalier/testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A component that brought a type is not deleted while another owner has an instance, and fences the type off before it
// goes.
func TestComponentRowsOfTypes(t *testing.T) {
	definition := resources.CRD()
	definition.TypeMeta = metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}
	house, walls, _ := newHouse()
	house.SetObjects(definition, walls)
	deployed := rollOut(t, house, 0)
	foreign := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "gadget", UID: "gadget-uid"}}
	mark := componentPrefix + "/owner-id=" + deployed.Find(walls).GetLabels()[componentPrefix+"/owner-id"]
	stored := deployed.Find(definition)
	fence := `[
		{"op": "replace", "path": "/metadata/resourceVersion", "value": "` + stored.GetResourceVersion() + `"},
		{"op": "add", "path": "/metadata/annotations/assembly.espalier.test~1fence",
			"value": "fenced/` + string(stored.GetUID()) + `/"},
		{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/x-kubernetes-validations", "value": [{
			"rule": "oldSelf.hasValue() // fence of ` + mark + `", "reason": "FieldValueForbidden", "optionalOldSelf": true,
			"message": "the type is being removed by ` + mark + `, no more instances can be created"
		}]}
	]`
	tried := fencePatch(fence)
	tried.DryRun = new(true)
	own := rtesting.WithOwnership(foreign, componentPrefix, house, assemblyScheme)

	const (
		blocked = "Deletion blocked: deletion has not begun, blocked: CustomResourceDefinition widgets.test.espalier.dev: in use by Widget other/gadget" +
			"; the annotation assembly.espalier.test/abandon: house-uid gives up 2 objects (CustomResourceDefinition widgets.test.espalier.dev, ConfigMap default/walls)"
		waiting = "Deletion has not begun, waiting for CustomResourceDefinition widgets.test.espalier.dev: no instance can be " +
			"created any more, and creations that began before get time to end"
	)

	assemblyRows{
		"while others have instances nothing is deleted": {
			Resource:     deployed.With(going).Object(),
			GivenObjects: append(deployed.Objects(), foreign),
			ExpectResource: deployed.With(going,
				conditionIs(apis.ComponentDeleting, metav1.ConditionUnknown, "DeletionBlocked", blocked),
			).Object(),
			ExpectOrder:    []string{},
			ExpectEvents:   houseEvents(house, "DeletionBlocked", blocked),
			ExpectedResult: later(1060500 * time.Microsecond),
		},
		"the type is fenced off, and waits for creations that began before": {
			VirtualTime:  true,
			Resource:     deployed.With(going).Object(),
			GivenObjects: append(deployed.Objects(), own),
			ExpectResource: deployed.With(going,
				conditionIs(apis.ComponentDeleting, metav1.ConditionUnknown, "DeletionProcessing", waiting),
			).Object(),
			ExpectOrder: []string{
				"patch CustomResourceDefinition widgets.test.espalier.dev (dry run)",
				"patch CustomResourceDefinition widgets.test.espalier.dev",
				"create Widget default/espalier-fence-probe (dry run)",
				"patch CustomResourceDefinition widgets.test.espalier.dev",
			},
			ExpectCreates: []client.Object{rtesting.WithOptions(
				&resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "espalier-fence-probe"}},
				rtesting.WriteOptions{DryRun: new(true)},
			)},
			ExpectPatches: []rtesting.PatchRef{tried, fencePatch(fence), fencePatch(`[
				{"op": "replace", "path": "/metadata/resourceVersion", "value": "1005"},
				{"op": "add", "path": "/metadata/annotations/assembly.espalier.test~1fence",
					"value": "proven/` + string(stored.GetUID()) + `/2/2000-01-01T00:00:02Z"}
			]`)},
			ExpectEvents:   houseEvents(house, "DeletionProcessing", waiting),
			ExpectedResult: later(2020 * time.Millisecond),
		},
	}.run(t)
}

func fencePatch(patch string) rtesting.PatchRef {
	return rtesting.PatchRef{
		Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "widgets.test.espalier.dev",
		PatchType: "application/json-patch+json", Patch: []byte(patch), FieldOwner: componentPrefix + "-fence",
	}
}

// An additional managed type is found by discovery.
func TestComponentRowsOfPatterns(t *testing.T) {
	definition := resources.CRD()
	definition.TypeMeta = metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}
	house, _, _ := newHouse()
	house.Spec.AdditionalManagedTypes = []generator.TypePattern{{Group: "*.espalier.dev", Kind: "Widget"}}
	deployed := rollOut(t, house, 0, definition)
	foreign := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "gadget", UID: "gadget-uid"}}
	const blocked = "Deletion blocked: deletion has not begun, blocked: types Widget of *.espalier.dev: in use by Widget other/gadget" +
		"; the annotation assembly.espalier.test/abandon: house-uid gives up 2 objects (ConfigMap default/walls, ConfigMap default/roof)"

	assemblyRows{
		"while others have instances nothing is deleted": {
			Resource:     deployed.With(going).Object(),
			GivenObjects: append(deployed.Objects(), foreign),
			ExpectResource: deployed.With(going,
				conditionIs(apis.ComponentDeleting, metav1.ConditionUnknown, "DeletionBlocked", blocked),
			).Object(),
			ExpectOrder:    []string{},
			ExpectEvents:   houseEvents(house, "DeletionBlocked", blocked),
			ExpectedResult: later(1060500 * time.Microsecond),
		},
	}.run(t)
}

func TestComponentRowsOfInventories(t *testing.T) {
	const inventory = "assembly-house-inventory-avawxstp4txe3dw556ib-"
	house, walls, roof := newHouse()
	fresh := rtesting.NewFixture(house)
	inSecret := func(node *component.ComponentReconciler[*resources.Assembly]) {
		node.Inventory = component.Inventory{Kind: "Secret"}
	}
	node := assembling()
	inSecret(node)
	deployed := rtesting.Rollout[*resources.Assembly]{Scheme: assemblyScheme, Resource: house, Reconciler: node}.Run(t)
	secret := func(bucket string, records ...apis.InventoryRecord) client.Object {
		return &rtesting.Inventory{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: inventory + bucket}, Kind: "Secret", Records: records,
		}
	}
	const scheduled, inProgress = apis.PhaseScheduledForApplication, apis.ObjectInProgress
	assemblyRows{
		"records and creates in one pass": {
			Resource: house,
			// Some records have a digest of what was applied once more.
			Replays: rtesting.Replays{Ignore: []string{"Secret default/" + inventory + "*: data.inventory"}},
			ExpectResource: fresh.With(
				conditionIs(apis.ComponentReady, metav1.ConditionTrue, "Ready", "All objects are as desired, and ready"),
				func(a *resources.Assembly) {
					a.Finalizers, a.Status.Revision = []string{componentFinalizer}, 1
					a.Status.InventoryKind = "Secret"
				},
			).Object(),
			ExpectOrder: []string{
				"patch Assembly default/house",
				"create Secret default/" + inventory + "0",
				"create Secret default/" + inventory + "1",
				"create Secret default/" + inventory + "2",
				"create Secret default/" + inventory + "3",
				"create ConfigMap default/walls",
				"create ConfigMap default/roof",
				"update Secret default/" + inventory + "0",
				"update Secret default/" + inventory + "3",
			},
			ExpectPatches: []rtesting.PatchRef{houseFinalizers(house, "999", `["`+componentFinalizer+`"]`)},
			ExpectCreates: []client.Object{
				secret("0", recordOf("walls", 0, scheduled, inProgress, "")),
				secret("1"),
				secret("2"),
				secret("3", recordOf("roof", 1, scheduled, inProgress, "")),
				rtesting.WithOwnership(walls, componentPrefix, house, assemblyScheme),
				rtesting.WithOwnership(roof, componentPrefix, house, assemblyScheme),
			},
			ExpectUpdates: []client.Object{
				secret("0", recordOf("walls", 0, apis.PhaseReady, "", "")),
				secret("3", recordOf("roof", 1, apis.PhaseReady, "", "")),
			},
			ExpectEvents: houseEvents(house,
				"FinalizerPatched", `Patched finalizer "`+componentFinalizer+`"`,
				"Created", "Created ConfigMap default/walls", "Created", "Created ConfigMap default/roof",
				"Ready", "All objects are as desired, and ready"),
			ExpectedResult: later(606 * time.Second),
		},
		// The inventory is read past the cache.
		"finds its inventory": {
			Resource:        deployed.Object(),
			GivenObjects:    deployed.Objects(),
			APIGivenObjects: deployed.Objects(),
			ExpectOrder:     []string{},
			ExpectedResult:  later(606 * time.Second),
		},
	}.run(t, inSecret)

	found, err := rtesting.InventoryOf(deployed.Objects()...)
	if err != nil || len(found) != 2 || found[0].Name != "roof" || found[0].UID != deployed.Find(roof).GetUID() {
		t.Errorf("found %v with the error %v, want the roof, then the walls", found, err)
	}
}
