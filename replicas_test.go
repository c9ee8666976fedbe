package espalier_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	rtesting "github.com/espalier-dev/espalier/testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// An object whose number of replicas others choose gets it back when it is resumed.
func TestReplicasOverASuspension(t *testing.T) {
	scaled := func(n int32, edits ...func(*appsv1.Deployment)) rtesting.Fixture[*appsv1.Deployment] {
		return deployment.With(append(edits, func(d *appsv1.Deployment) { d.Spec.Replicas = &n })...)
	}
	had := func(n string) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) { d.Annotations = map[string]string{replicasAnnotation: n} }
	}
	uid := func(d *appsv1.Deployment) { d.UID = "gadget-child-uid" }
	given := func(n int32, edits ...func(*appsv1.Deployment)) []object {
		known := func(d *appsv1.Deployment) { d.ResourceVersion = "999" }
		return []object{scaled(n, append(edits, exists[*appsv1.Deployment], known)...)}
	}
	applied := func(d rtesting.Fixture[*appsv1.Deployment]) []rtesting.ApplyRef {
		return []rtesting.ApplyRef{{
			Group: "apps", Kind: "Deployment", Namespace: "default", Name: "gadget", FieldOwner: "widget-controller",
			ApplyConfiguration: rtesting.Applied(d.With(uid).Object()), Force: new(true),
		}}
	}
	givenBack := func(n int) []rtesting.PatchRef {
		return []rtesting.PatchRef{{
			Group: "apps", Kind: "Deployment", Namespace: "default", Name: "gadget", PatchType: types.MergePatchType,
			FieldOwner: "widget-controller-replicas",
			Patch: fmt.Appendf(nil, `{"metadata":{"annotations":{"espalier.dev/replicas":null},"resourceVersion":"999",`+
				`"uid":"gadget-child-uid"},"spec":{"replicas":%d}}`, n),
		}}
	}
	updated := event(corev1.EventTypeNormal, "Updated", `Updated Deployment "gadget"`)
	suspend := with("suspend")
	unscaled := func(d *appsv1.Deployment) { d.Spec.Replicas = nil }
	// The API server in memory does not say who owns which field.
	changesNothing := applied(scaled(0).With(unscaled))
	rolling := is("Part", metav1.ConditionFalse, "InProgress", "Deployment default/gadget: the roll-out is not finished")
	few := func(n string) func(*resources.Widget) {
		return is("Part", metav1.ConditionFalse, "InProgress", "Deployment default/gadget: 0 of "+n+" replicas available")
	}
	one := is("Part", metav1.ConditionFalse, "InProgress", "Deployment default/gadget: 0 of 1 replica available")
	seen := observed(`Part: Deployment "gadget"`)
	run(t, tests{
		"it is suspended": {
			Resource: widget.With(suspend).Object(), GivenObjects: given(5),
			ExpectApplies: applied(scaled(0, had("5"))), ExpectEvents: updated,
			ExpectResource: widget.With(suspend, rolling, seen).Object(),
		},
		"it had one replica": {
			Resource: widget.With(suspend).Object(), GivenObjects: given(1),
			ExpectApplies: applied(scaled(0)), ExpectEvents: updated,
			ExpectResource: widget.With(suspend, rolling, seen).Object(),
		},
		"it stays suspended": {
			Resource: widget.With(suspend).Object(), GivenObjects: given(0, had("5")),
			ExpectResource: widget.With(suspend, rolling, seen).Object(),
		},
		"it does not exist": {
			Resource: widget.With(suspend).Object(), ExpectCreates: []object{scaled(0)},
			ExpectEvents:   event(corev1.EventTypeNormal, "Created", `Created Deployment "gadget"`),
			ExpectResource: widget.With(suspend, rolling, seen).Object(),
		},
		"it is resumed": {
			Resource: widget.Object(), GivenObjects: given(0, had("5")), ExpectPatches: givenBack(5),
			ExpectApplies:  changesNothing,
			ExpectResource: widget.With(few("5"), seen).Object(),
		},
		"the number is none": {
			Resource: widget.Object(), GivenObjects: given(0, had("many")), ExpectApplies: changesNothing,
			ExpectResource: widget.With(rolling, seen).Object(),
		},
		"it is scaled by others": {
			Resource: widget.Object(), GivenObjects: given(7), ExpectApplies: changesNothing,
			ExpectResource: widget.With(few("7"), seen).Object(),
		},
		"it is resumed, and others have scaled it": {
			Resource: widget.Object(), GivenObjects: given(1, had("5")), ExpectApplies: changesNothing,
			ExpectResource: widget.With(one, seen).Object(),
		},
	}, func() node {
		return supervised{espalier.Owns("Part", func(context.Context, *resources.Widget) (*appsv1.Deployment, error) {
			return deployment.With(unscaled, func(d *appsv1.Deployment) { d.OwnerReferences = nil }).Object(), nil
		}).Reports("Part")}
	})
	run(t, tests{"the author desires a number": {
		Resource: widget.Object(), GivenObjects: given(0, had("5")),
		ExpectApplies: applied(scaled(3)), ExpectEvents: updated,
		ExpectResource: widget.With(few("3"), seen).Object(),
	}}, func() node { return supervised{espalier.Owns("Part", desiredDeployment).Reports("Part")} })
}
