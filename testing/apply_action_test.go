package testing_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rtesting "github.com/espalier-dev/espalier/testing"
)

func TestApplyActionsAreComparable(t *testing.T) {
	ac := corev1ac.ConfigMap("settings", "default")
	seen := map[rtesting.ApplyActionImpl]bool{}
	seen[rtesting.NewApplyAction(ac).(rtesting.ApplyActionImpl)] = true
	if !seen[rtesting.NewApplyAction(ac).(rtesting.ApplyActionImpl)] {
		t.Error("the same action is not equal")
	}
	if rtesting.NewApplyAction(ac) == rtesting.NewApplySubresourceAction(ac, "status") {
		t.Error("an action on a subresource is equal to one on the object")
	}

	c := (&rtesting.ExpectConfig{Scheme: scheme, WithReactors: []rtesting.ReactionFunc{
		func(action rtesting.Action) (bool, runtime.Object, error) {
			if action.GetVerb() == "apply" && seen[action.(rtesting.ApplyActionImpl)] {
				t.Error("an action with options is equal to one without")
			}
			if a := action.(rtesting.ApplyActionImpl); a.FieldManager != "me" || !a.Force || !a.DryRun {
				t.Errorf("the options are %q, %v, %v", a.FieldManager, a.Force, a.DryRun)
			}
			return false, nil, nil
		},
	}}).Config()
	if err := c.Apply(t.Context(), ac, client.FieldOwner("me"), client.ForceOwnership, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
}
