package feature_test

import (
	"testing"

	"github.com/espalier-dev/espalier/feature"
	"github.com/espalier-dev/espalier/reconcilers"
)

// TestPrerequisitesThatAreNeverMet shows that the validation of a root refuses features that wait for ever.
func TestPrerequisitesThatAreNeverMet(t *testing.T) {
	waits := func(name, condition string, nested node) *featureOf {
		f := &featureOf{Name: name, Reconciler: nested}
		if condition != "" {
			f.Prerequisites = []feature.Prerequisite[*Shop]{feature.DependsOn[*Shop](condition)}
		}
		return f
	}
	none := reconcilers.Sequence[*Shop]{}
	for name, test := range map[string]struct {
		nodes []node
		want  string
	}{
		"an earlier feature":         {nodes: []node{waits("A", "", none), waits("B", "AReady", none)}},
		"a node of a later feature":  {nodes: []node{waits("A", "CashReady", none), waits("B", "", scripted{})}},
		"a chain":                    {nodes: []node{waits("A", "BReady", none), waits("B", "CReady", none), waits("C", "", none)}},
		"a sibling below a feature":  {nodes: []node{waits("A", "", reconcilers.Sequence[*Shop]{waits("B", "CReady", none), waits("C", "", none)})}},
		"a custom check, of nothing": {nodes: []node{till(none)}},
		"itself": {nodes: []node{waits("A", "AReady", none)},
			want: `ResourceReconciler "Market" has node 0/A, which must not wait for its own condition AReady`},
		"the summary": {nodes: []node{waits("A", "Ready", none)},
			want: `ResourceReconciler "Market" sets the condition Ready itself, so node 0/A must not wait for it`},
		"a condition that no node sets": {nodes: []node{waits("A", "BRaedy", none), waits("B", "", none)},
			want: `ResourceReconciler "Market" has no node that sets the condition BRaedy, for which node 0/A waits`},
		"each other": {nodes: []node{waits("A", "BReady", none), waits("B", "AReady", none)},
			want: `ResourceReconciler "Market" has nodes that wait for each other: 0/A must not wait for the ` +
				`condition BReady of 1/B, which waits for it in turn`},
		"a node below one that waits for it": {nodes: []node{waits("A", "CashReady", none), waits("B", "AReady", scripted{})},
			want: `ResourceReconciler "Market" has nodes that wait for each other: 0/A must not wait for the ` +
				`condition CashReady of 1/B/Scripted, which waits for it in turn`},
		"the feature around it": {nodes: []node{waits("A", "", waits("B", "AReady", none))},
			want: `ResourceReconciler "Market" has nodes that wait for each other: 0/A/B must not wait for the ` +
				`condition AReady of 0/A, which waits for it in turn`},
	} {
		t.Run(name, func(t *testing.T) {
			root := &reconcilers.ResourceReconciler[*Shop]{
				Name: "Market", SummaryCondition: "Ready", Reconciler: reconcilers.Sequence[*Shop](test.nodes),
			}
			err := root.Validate(t.Context())
			if got := errorOf(err); got != test.want {
				t.Errorf("the error is\n\t%s\nwant\n\t%s", got, test.want)
			}
		})
	}
}

func errorOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
