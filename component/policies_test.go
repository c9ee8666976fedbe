package component_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/message"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	rtesting "github.com/espalier-dev/espalier/testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Policies count where the resource says nothing, and by default each is its own default.
func TestPoliciesOfTheReconciler(t *testing.T) {
	all := generator.PolicySpec{
		AdoptionPolicy: "if-unowned", UpdatePolicy: "replace", DeletePolicy: "orphan-on-apply", PrunePolicy: "after",
	}
	for name, test := range map[string]struct {
		node, spec generator.PolicySpec
		want       apis.InventoryRecord
	}{
		"none": {want: apis.InventoryRecord{}},
		"of the node": {node: all, want: apis.InventoryRecord{
			AdoptionPolicy: apis.AdoptIfUnowned, UpdatePolicy: apis.UpdateReplace,
			DeletePolicy: apis.DeleteOrphanOnApply, PrunePolicy: apis.PruneAfter,
		}},
		"of both": {
			node: all,
			spec: generator.PolicySpec{
				AdoptionPolicy: "always", UpdatePolicy: "recreate", DeletePolicy: "orphan", PrunePolicy: "before",
			},
			want: apis.InventoryRecord{
				AdoptionPolicy: apis.AdoptAlways, UpdatePolicy: apis.UpdateRecreate, DeletePolicy: apis.DeleteOrphan,
				PrunePolicy: apis.PruneBefore,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			house := resources.NewAssembly("default", "house", partOf("default", "walls", "0"))
			house.Generation, house.Spec.PolicySpec = 1, test.spec
			root := component.NewComponentRoot(componentPrefix, resources.AssemblyGenerator(),
				assemblyOptions{Policies: test.node, FenceMargin: -1})
			done := rtesting.Rollout[*resources.Assembly]{
				Scheme: assemblyScheme, Resource: house, Reconciler: root.Reconciler, Requests: 2,
			}.Run(t)
			record := done.Object().Status.Inventory[0]
			got := apis.InventoryRecord{
				AdoptionPolicy: record.AdoptionPolicy, UpdatePolicy: record.UpdatePolicy,
				DeletePolicy: record.DeletePolicy, PrunePolicy: record.PrunePolicy,
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("the policies are %+v, want %+v", got, test.want)
			}
		})
	}
}

// Without the policy, the namespace would be created.
func TestMissingNamespacesPolicyOfTheReconciler(t *testing.T) {
	walls := partOf("elsewhere", "walls", "0")
	house := resources.NewAssembly("default", "house", walls)
	house.UID, house.Generation = "house-uid", 1
	recorded := rollOut(t, house, 1)
	const refused = "unable to create ConfigMap elsewhere/walls: the namespace elsewhere does not exist"
	record := recordOf("walls", 0, apis.PhaseScheduledForApplication, apis.ObjectInProgress, refused)
	record.Namespace = "elsewhere"
	assemblyRows{
		"the namespace is not created": {
			Resource:     recorded.Object(),
			GivenObjects: recorded.Objects(),
			ExpectResource: recorded.With(
				conditionIs(apis.ComponentError, metav1.ConditionFalse, "Error", message.Capitalize(refused)),
				records(record),
			).Object(),
			ExpectCreates: []client.Object{rtesting.WithOwnership(walls, componentPrefix, house, assemblyScheme)},
			ExpectEvents: houseEvents(house,
				"CreateError", "Unable to create ConfigMap elsewhere/walls", "Error", message.Capitalize(refused)),
			ShouldErr: true,
		},
	}.run(t, func(node *component.ComponentReconciler[*resources.Assembly]) {
		node.Policies.MissingNamespacesPolicy = apis.MissingNamespacesDoNotCreate
	})
}

// A policy that does not exist is refused at set-up.
func TestUnknownPolicyIsRefusedAtSetUp(t *testing.T) {
	node := assembling()
	node.Policies.DeletePolicy = "keep"
	err := setUpTree(t, &resources.Assembly{}, node)
	const want = `ComponentReconciler "ComponentReconciler" must have valid Policies: deletePolicy: `
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("set-up returned %v, want %s…", err, want)
	}
}
