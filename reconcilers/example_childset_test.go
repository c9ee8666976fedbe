package reconcilers_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A set has as many children as the resource says. Each is known by an identity that it carries as a label.
func ExampleChildSetReconciler() {
	node := &reconcilers.ChildSetReconciler[*resources.Widget, *corev1.ConfigMap, *corev1.ConfigMapList]{
		DesiredChildren: func(ctx context.Context, widget *resources.Widget) ([]*corev1.ConfigMap, error) {
			known := len(reconcilers.RetrieveKnownChildren[*corev1.ConfigMap](ctx))
			fmt.Printf("desired are %s, known are %d\n", widget.Spec.Fields["zones"], known)
			var desired []*corev1.ConfigMap
			for zone := range strings.FieldsSeq(widget.Spec.Fields["zones"]) {
				desired = append(desired, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
					Namespace: widget.Namespace,
					Name:      widget.Name + "-" + zone,
					Labels:    map[string]string{"zone": zone},
				}})
			}
			return desired, nil
		},
		IdentifyChild: func(child *corev1.ConfigMap) string { return child.Labels["zone"] },
		MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) {
			current.Labels, current.Data = desired.Labels, desired.Data
		},
		ReflectChildrenStatusOnParent: func(_ context.Context, _ *resources.Widget, result reconcilers.ChildSetResult[*corev1.ConfigMap]) {
			for _, child := range result.Children {
				fmt.Printf("  %s is there: %t\n", child.Id, child.Child != nil)
			}
		},
	}
	gadget := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "gadget", UID: "u"}}
	ctx, config := exampleCluster(gadget)
	for _, zones := range []string{"east west", "west south"} {
		gadget.Spec.Fields = map[string]string{"zones": zones}
		if _, err := node.Reconcile(ctx, gadget); err != nil {
			fmt.Println(err)
		}
	}

	var list corev1.ConfigMapList
	if err := config.List(ctx, &list, client.InNamespace("default")); err != nil {
		fmt.Println(err)
	}
	for _, child := range list.Items {
		fmt.Println("left is", child.Name)
	}
	// Output:
	// desired are east west, known are 0
	//   east is there: true
	//   west is there: true
	// desired are west south, known are 2
	//   east is there: false
	//   south is there: true
	//   west is there: true
	// left is gadget-south
	// left is gadget-west
}
