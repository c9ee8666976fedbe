package reconcilers_test

import (
	"fmt"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A controller owns two settings of a ConfigMap, and people own others. No merge has to be written: what the controller does not
// mention stays, what it no longer mentions goes.
func ExampleApplyingObjectManager() {
	ctx, config := exampleCluster()
	config.Client.(rtesting.TestClient).PrependReactor("*", "ConfigMap", func(action rtesting.Action) (bool, runtime.Object, error) {
		if verb := action.GetVerb(); verb != "get" {
			fmt.Println(verb, "settings")
		}
		return false, nil, nil
	})
	manager := &reconcilers.ApplyingObjectManager[*corev1.ConfigMap]{FieldManager: "widget-controller"}
	gadget := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "gadget"}}
	key := types.NamespacedName{Namespace: "default", Name: "settings"}

	reconcile := func(settings map[string]string) {
		actual := &corev1.ConfigMap{}
		if err := config.Get(ctx, key, actual); err != nil {
			actual = nil
		}
		desired := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Data: settings}
		managed, err := manager.Manage(ctx, gadget, actual, desired)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("settings:", managed.Data)
	}
	reconcile(map[string]string{"color": "blue"})
	fmt.Println("- again")
	reconcile(map[string]string{"color": "blue"})

	fmt.Println("- another client has a setting too, and changes ours")
	other := &corev1.ConfigMap{}
	_ = config.Get(ctx, key, other)
	other.Data = map[string]string{"color": "red", "language": "en"}
	_ = config.Update(ctx, other, client.FieldOwner("other"))
	reconcile(map[string]string{"color": "blue", "size": "1"})

	fmt.Println("- the size is not ours any more")
	reconcile(map[string]string{"color": "blue"})
	// Output:
	// create settings
	// settings: map[color:blue]
	// - again
	// settings: map[color:blue]
	// - another client has a setting too, and changes ours
	// update settings
	// apply settings
	// settings: map[color:blue language:en size:1]
	// - the size is not ours any more
	// apply settings
	// settings: map[color:blue language:en]
}
