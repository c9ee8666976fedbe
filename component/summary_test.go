package component_test

import (
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A summary must not say that all is well while a component is not.
func TestSummaryOfAComponent(t *testing.T) {
	same := &reconcilers.ResourceReconciler[*resources.Assembly]{SummaryCondition: "Ready", Reconciler: assembling()}
	if err := same.Validate(t.Context()); err == nil || !strings.Contains(err.Error(), "sets the condition Ready") {
		t.Errorf("validation says %v, want that the component and the root set one condition", err)
	}

	house := resources.NewAssembly("default", "house", deployment("web", "0", 1))
	house.UID = "house-uid"
	node := assembling()
	node.Condition = "HouseReady"
	o := newOperated(t, node, house, nil)
	o.root.SummaryCondition = "Ready"
	o.untilIdle(t)
	conditions := o.house(t).Status.Conditions
	summary, component := meta.FindStatusCondition(conditions, "Ready"), meta.FindStatusCondition(conditions, "HouseReady")
	if summary == nil || component == nil || summary.Status == metav1.ConditionTrue ||
		summary.Status != component.Status || summary.Message != "HouseReady: "+component.Message {
		t.Errorf("the component says %v and the summary %v, want the message of the component and its status, not true",
			component, summary)
	}
}
