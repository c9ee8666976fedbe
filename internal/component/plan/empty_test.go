package plan_test

import (
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/plan"
)

// An input that is lost looks like a set without objects, and only that is held.
func TestEmptySet(t *testing.T) {
	d := configMap("c")
	gone, leaves := asIs(d), asIs(d)
	gone.Phase, leaves.Digest = apis.PhaseCompleted, ""
	something := []apis.InventoryRecord{asIs(d)}
	leaving := map[plan.Key]apis.DeletePolicy{d.Key: apis.DeleteDelete}
	read := with(configMap("input"), func(d *plan.Desired) { d.ReadOnly = true })
	for name, test := range map[string]struct {
		in   plan.Input
		held bool
	}{
		"nothing was there":         {plan.Input{}, false},
		"all is gone for good":      {plan.Input{Inventory: []apis.InventoryRecord{gone}}, false},
		"something exists":          {plan.Input{Inventory: []apis.InventoryRecord{gone, asIs(configMap("e"))}}, true},
		"it is pruned already":      {plan.Input{Inventory: []apis.InventoryRecord{leaves}}, true},
		"it is allowed":             {plan.Input{Inventory: something, AllowEmpty: true}, false},
		"the resource is deleted":   {plan.Input{Inventory: something, Deleting: true}, false},
		"the objects are to go":     {plan.Input{Inventory: something, Leaving: leaving}, false},
		"an object is only read":    {plan.Input{Inventory: something, Desired: []plan.Desired{read}}, false},
		"the objects are suspended": {plan.Input{Inventory: something, Suspended: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			test.in.Observed, test.in.Now = map[plan.Key]plan.Observed{d.Key: live(d)}, start
			p := plan.Make(test.in)
			if violation := held(test.in, p); violation != "" {
				t.Error(violation)
			}
			if p.Empty != test.held {
				t.Errorf("it is held: %t, want %t\n%s", p.Empty, test.held, p)
			}
		})
	}
}
