package plan_test

import (
	"testing"

	"github.com/espalier-dev/espalier/internal/component/plan"
)

func TestOwnershipOf(t *testing.T) {
	const ourID, ourOwner = "our-id", "Shop.example.com/default/shop/uid-1"
	for name, test := range map[string]struct {
		label, annotation string
		want              plan.Ownership
	}{
		"no marks":                         {"", "", plan.Unowned},
		"annotation without label":         {"", ourOwner, plan.Unowned},
		"ours":                             {ourID, ourOwner, plan.Ours},
		"the label decides":                {ourID, "Other.example.com/a/b/c", plan.Ours},
		"another UID":                      {"other", "Shop.example.com/default/shop/uid-0", plan.Predecessor},
		"another name":                     {"other", "Shop.example.com/default/shop2/uid-0", plan.Foreign},
		"another namespace":                {"other", "Shop.example.com/default2/shop/uid-0", plan.Foreign},
		"another kind":                     {"other", "Stop.example.com/default/shop/uid-0", plan.Foreign},
		"another label with our own owner": {"other", ourOwner, plan.Foreign},
		"no annotation":                    {"other", "", plan.Foreign},
		"no UID":                           {"other", "Shop.example.com/default/shop/", plan.Foreign},
		"no slash":                         {"other", "shop", plan.Foreign},
	} {
		t.Run(name, func(t *testing.T) {
			if got := plan.OwnershipOf(test.label, test.annotation, ourID, ourOwner); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
	if got := plan.OwnershipOf("other", "", "", ""); got != plan.Foreign {
		t.Errorf("without an owner of our own, got %v", got)
	}
}
