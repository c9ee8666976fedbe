package reconcilers_test

import (
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A component that brought a type is not deleted while somebody else has an instance, and fences the type off before it goes.
func TestComponentRowsOfTypes(t *testing.T) {
	definition := resources.CRD()
	definition.TypeMeta = metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}
	house, walls, _ := newHouse()
	house.SetObjects(definition, walls)
	deployed := rollOut(t, house, 0)
	foreign := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "gadget", UID: "gadget-uid"}}
	own := rtesting.Marked(foreign, componentPrefix, house, widgetScheme)

	assemblyRows{
		"blocked": {
			Resource:     deployed.With(going).Object(),
			GivenObjects: append(deployed.Objects(), foreign),
			ExpectResource: deployed.With(going,
				tells(apis.ComponentDeleting, metav1.ConditionUnknown, "DeletionBlocked", "?"),
			).Object(),
			ExpectOrder:    []string{},
			ExpectedResult: later(1),
		},
		"free": {
			Resource:     deployed.With(going).Object(),
			GivenObjects: append(deployed.Objects(), own),
			ExpectResource: deployed.With(going,
				tells(apis.ComponentDeleting, metav1.ConditionUnknown, "DeletionBlocked", "?"),
			).Object(),
			ExpectOrder:    []string{},
			ExpectedResult: later(time.Second),
		},
	}.run(t)
}

func TestComponentRowsOfInventories(t *testing.T) {
	house, _, _ := newHouse()
	inSecret := func(node *reconcilers.ComponentReconciler[*resources.Assembly]) {
		node.Inventory = reconcilers.ComponentInventory{Kind: "Secret"}
	}
	assemblyRows{
		"records": {
			Resource:     house,
			WithReactors: []rtesting.ReactionFunc{rtesting.AssignUIDs()},
			ExpectCreates: []client.Object{
				&rtesting.Inventory{ObjectMeta: metav1.ObjectMeta{Namespace: "default"}, Kind: "Secret"},
			},
		},
	}.run(t, inSecret)
}
