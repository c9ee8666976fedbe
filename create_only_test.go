package espalier_test

import (
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	rtesting "github.com/espalier-dev/espalier/testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestCreateOnly(t *testing.T) {
	none := widget.With(with("none"))
	runBoth(t, tests{
		"it is created": {
			Resource: widget.Object(), ExpectCreates: []object{configMap}, ExpectEvents: makes,
			ExpectResource: widget.With(isReady).Object(),
		},
		"it is not updated": {
			Resource:       widget.Object(),
			GivenObjects:   []object{configMap.With(exists, func(c *corev1.ConfigMap) { c.Data["color"] = "red" })},
			ExpectResource: widget.With(isReady).Object(),
		},
		"it is deleted": {
			Resource: none.Object(), GivenObjects: []object{configMap.With(exists)},
			ExpectDeletes: deletes, ExpectEvents: deleted, ExpectResource: none.With(isNone).Object(),
		},
	}, (*child).CreateOnly, (*children).CreateOnly)
}

// What is only created, and what waits, is suspended and resumed all the same, and is written for nothing else. It must
// not stay without replicas because what it waits for is still missing.
func TestWhatIsNotWrittenIsSuspendedAndResumed(t *testing.T) {
	replicas := func(n int32, edits ...func(*appsv1.Deployment)) rtesting.Fixture[*appsv1.Deployment] {
		return deployment.With(append(edits, func(d *appsv1.Deployment) { d.Spec.Replicas = &n })...)
	}
	marked := func(d *appsv1.Deployment) {
		d.Annotations = map[string]string{suspendedAnnotation: "true"}
	}
	applied := func(d rtesting.Fixture[*appsv1.Deployment]) []rtesting.ApplyRef {
		return []rtesting.ApplyRef{{
			Group: "apps", Kind: "Deployment", Namespace: "default", Name: "gadget", FieldOwner: "widget-controller",
			ApplyConfiguration: rtesting.Applied(d.With(func(d *appsv1.Deployment) { d.UID = "gadget-child-uid" }).Object()),
			Force:              new(true),
		}}
	}
	given := func(n int32, edits ...func(*appsv1.Deployment)) []object {
		return []object{replicas(n, append(edits, exists[*appsv1.Deployment])...)}
	}
	updated := event(corev1.EventTypeNormal, "Updated", `Updated Deployment "gadget"`)
	creating := is("Part", metav1.ConditionFalse, "InProgress", "Deployment default/gadget: the roll-out is not finished")
	rolling := is("Part", metav1.ConditionFalse, "InProgress", "Deployment default/gadget: 0 of 3 replicas available")
	suspend := with("suspend", "closed")
	const path = `Part: Deployment "gadget"`

	type part = espalier.Child[*resources.Widget, *appsv1.Deployment]
	missing := waits("Part", `waiting for data "test.espalier.dev/color"`)
	for name, tc := range map[string]struct {
		use func(*part) *part
		// waits is the condition of the node while nothing is suspended, and health what the supervisor is told then.
		waits  func(*resources.Widget)
		health string
	}{
		"it is only created": {(*part).CreateOnly, nil, ""},
		"a value is missing": {func(c *part) *part { return c.Needs(color) }, missing,
			`, Blocked: waiting for data "test.espalier.dev/color"`},
		"a guard is closed": {func(c *part) *part { return c.Guard(guard) },
			is("Part", metav1.ConditionFalse, "Blocked", "the shop is closed"), ", Blocked: the shop is closed"},
	} {
		says := func(otherwise func(*resources.Widget), edits ...func(*resources.Widget)) *resources.Widget {
			if tc.waits != nil {
				otherwise = tc.waits
			}
			return widget.With(append(edits, otherwise, observed(path+tc.health))...).Object()
		}
		t.Run(name, func(t *testing.T) {
			run(t, tests{
				"it is scaled to zero": {
					Resource: widget.With(suspend).Object(), GivenObjects: given(3),
					ExpectApplies: applied(replicas(0, marked)), ExpectEvents: updated,
					ExpectResource: widget.With(suspend, creating, observed(path)).Object(),
				},
				"it was told": {
					Resource: widget.With(suspend).Object(), GivenObjects: given(0, marked),
					ExpectResource: widget.With(suspend, creating, observed(path)).Object(),
				},
				"it is resumed": {
					Resource: widget.With(with("closed")).Object(), GivenObjects: given(0, marked),
					ExpectApplies: applied(replicas(3)), ExpectEvents: updated,
					ExpectResource: says(rolling, with("closed")),
				},
				"others have scaled it": {
					Resource: widget.With(with("closed")).Object(), GivenObjects: given(1),
					ExpectResource: says(is("Part", metav1.ConditionFalse, "InProgress", "Deployment default/gadget: 0 of 1 replica available"),
						with("closed")),
				},
			}, func() node { return supervised{tc.use(espalier.Owns("Part", desiredDeployment).Reports("Part"))} })
		})
	}
}
