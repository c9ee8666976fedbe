package reconcilers_test

import (
	"fmt"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A node gives its object manager what is there and what is desired. What agrees is not written again, and what
// others have set stays.
func ExampleUpdatingObjectManager() {
	gadget := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "gadget"}}
	ctx, config := exampleCluster(gadget)
	manager := &reconcilers.UpdatingObjectManager[*corev1.ConfigMap]{
		MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) {
			current.Data["color"] = desired.Data["color"]
		},
	}
	var actual *corev1.ConfigMap
	manage := func(desired *corev1.ConfigMap) {
		var err error
		if actual, err = manager.Manage(ctx, gadget, actual, desired); err != nil {
			fmt.Println(err)
		}
		if actual == nil {
			fmt.Println("there is none")
			return
		}
		fmt.Println("version", actual.ResourceVersion, "has", actual.Data)
	}
	paint := func(color string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "paint"},
			Data:       map[string]string{"color": color},
		}
	}
	manage(paint("red"))
	manage(paint("red"))

	actual.Data["gloss"] = "high"
	if err := config.Update(ctx, actual); err != nil {
		fmt.Println(err)
	}
	manage(paint("red"))
	manage(paint("blue"))
	manage(nil)
	// Output:
	// version 1 has map[color:red]
	// version 1 has map[color:red]
	// version 2 has map[color:red gloss:high]
	// version 3 has map[color:blue gloss:high]
	// there is none
}
