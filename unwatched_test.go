package espalier_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The cache shows nothing of what is not watched, and does not matter: only the API server has the objects.
func TestUnwatched(t *testing.T) {
	soon := reconcilers.Result{RequeueAfter: time.Minute}
	red := configMap.With(exists, func(c *corev1.ConfigMap) { c.Data["color"] = "red" })
	unlabeled := configMap.With(exists)
	foreign := configMap.With(exists, func(c *corev1.ConfigMap) {
		c.OwnerReferences = []metav1.OwnerReference{controlledByAnother}
	})
	taken := `configmaps "gadget" already exists and is controlled by ReplicaSet web`
	both := func(row rtesting.SubReconcilerTestCase[*resources.Widget], live object) rtesting.SubReconcilerTestCase[*resources.Widget] {
		row.GivenObjects, row.APIGivenObjects = []object{live}, []object{live}
		return row
	}
	runBoth(t, tests{
		"it is created": {
			Resource: widget.Object(), ExpectCreates: []object{configMap}, ExpectEvents: makes,
			ExpectResource: widget.With(isReady).Object(),
		},
		"nothing to do": both(rtesting.SubReconcilerTestCase[*resources.Widget]{
			Resource: widget.Object(), ExpectResource: widget.With(isReady).Object(),
		}, unlabeled),
		"it is corrected": both(rtesting.SubReconcilerTestCase[*resources.Widget]{
			Resource: widget.Object(), ExpectResource: widget.With(isReady).Object(),
			ExpectApplies: []rtesting.ApplyRef{{
				Kind: "ConfigMap", Namespace: "default", Name: "gadget", FieldOwner: "widget-controller", Force: new(true),
				ApplyConfiguration: rtesting.Applied(configMap.With(func(c *corev1.ConfigMap) { c.UID = "gadget-child-uid" }).Object()),
			}},
			ExpectEvents: event(corev1.EventTypeNormal, "Updated", `Updated ConfigMap "gadget"`),
		}, red),
		"the gate is off": both(rtesting.SubReconcilerTestCase[*resources.Widget]{
			Resource: widget.With(with("off")).Object(), ExpectDeletes: deletes, ExpectEvents: deleted,
			ExpectResource: widget.With(with("off"), isNone).Object(),
		}, unlabeled),
		"the gate is off, and it is not ours": both(rtesting.SubReconcilerTestCase[*resources.Widget]{
			Resource: widget.With(with("off")).Object(), ExpectResource: widget.With(with("off"), isNone).Object(),
		}, foreign),
		"the name is taken": both(rtesting.SubReconcilerTestCase[*resources.Widget]{
			Resource: widget.Object(), ExpectCreates: []object{configMap}, ExpectedResult: soon,
			ExpectEvents: event(corev1.EventTypeWarning, "CreationFailed",
				`Failed to create ConfigMap "gadget": `+taken),
			ExpectResource: widget.With(is("Ready", metav1.ConditionFalse, "AlreadyExists", taken)).Object(),
		}, foreign),
		"no name is known, so it stays": both(rtesting.SubReconcilerTestCase[*resources.Widget]{
			Resource: widget.With(with("none")).Object(), ExpectResource: widget.With(with("none"), isNone).Object(),
		}, unlabeled),
		"the name is not known yet": both(rtesting.SubReconcilerTestCase[*resources.Widget]{
			Resource: widget.With(with("not ready")).Object(), ExpectedResult: soon, ExpectResource: widget.With(
				with("not ready"), is("Ready", metav1.ConditionFalse, "NoColor", "there is no color in stock")).Object(),
		}, unlabeled),
		"the name cannot be told": {
			Resource: widget.With(with("error")).Object(), ExpectedErr: errBoom, ExpectedResult: soon,
		},
		"the resource is terminating": both(rtesting.SubReconcilerTestCase[*resources.Widget]{
			Resource: terminating.Object(),
		}, unlabeled),
	}, func(c *child) *child { return c.Unwatched().Gate(gateOf) },
		func(c *children) *children { return c.Unwatched().Gate(gateOf) })

	runBoth(t, tests{
		"it is only read": both(rtesting.SubReconcilerTestCase[*resources.Widget]{
			Resource: widget.Object(), ExpectResource: widget.With(isReady).Object(),
		}, red),
		"it is missing": {
			Resource: widget.Object(), ExpectedResult: soon, ExpectResource: widget.With(
				is("Ready", metav1.ConditionFalse, "NotFound", "waiting for ConfigMap default/gadget")).Object(),
		},
	}, func(c *child) *child { return c.Unwatched().ReadOnly() },
		func(c *children) *children { return c.ReadOnly().Unwatched() })

	runBoth(t, tests{"it is to be absent": both(rtesting.SubReconcilerTestCase[*resources.Widget]{
		Resource: widget.Object(), ExpectDeletes: deletes, ExpectEvents: deleted,
		ExpectResource: widget.With(isNone).Object(),
	}, unlabeled)}, func(c *child) *child { return c.Unwatched().Absent() },
		func(c *children) *children { return c.Unwatched().Absent() })
}

// The role of a node that does not watch its type has no right to list and watch it.
func TestUnwatchedNeedsNoListAndNoWatch(t *testing.T) {
	for _, tc := range []struct {
		node describer
		want string
	}{
		{owns().Unwatched(), "[get] [create patch delete] finalizers [update]"},
		{ownsEach().Unwatched(), "[get] [create patch delete] finalizers [update]"},
		{owns().Unwatched().ReadOnly(), "[get]"},
	} {
		var uses []string
		for _, access := range tc.node.Describe().Uses {
			uses = append(uses, strings.TrimSpace(fmt.Sprint(access.Subresource, " ", access.Verbs)))
		}
		if got := strings.Join(uses, " "); got != tc.want {
			t.Errorf("%s uses %s, want %s", tc.node.Describe().Detail, got, tc.want)
		}
	}
}

type describer interface {
	Describe() reconcilers.Description
}
