package manifest

import (
	"fmt"

	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/kinds"
)

// checkDuplicates reports objects that are the same as an earlier one. Objects of different versions may be the same.
func checkDuplicates(items []*item, report func(*item, error)) {
	first := make(map[plan.Key]*item, len(items))
	for _, i := range items {
		key := i.key()
		if other, ok := first[key]; ok {
			report(i, fmt.Errorf("it is the same object as %s", other.describe()))
			continue
		}
		first[key] = i
	}
}

// checkOrders reports objects that would be applied before their type or their namespace, or deleted after it.
func checkOrders(items []*item, t *types, report func(*item, error)) {
	namespaces := map[string]*item{}
	for _, i := range items {
		if i.kind.GroupKind() == kinds.Namespace {
			namespaces[i.name] = i
		}
	}
	for _, i := range items {
		crd, apiService := t.definers(i.kind)
		for _, definer := range []*item{crd, apiService} {
			checkOrder(i, definer, "its type", report)
		}
		if namespace := i.within(); namespace != "" {
			checkOrder(i, namespaces[namespace], "its namespace", report)
		}
	}
}

func checkOrder(i, needed *item, role string, report func(*item, error)) {
	if needed == nil || needed == i {
		return
	}
	own, other := &i.desired, &needed.desired
	if own.ApplyOrder < other.ApplyOrder {
		report(i, fmt.Errorf("its apply order %d is less than the apply order %d of %s, %s",
			own.ApplyOrder, other.ApplyOrder, role, needed.describe()))
	}
	if own.DeleteOrder > other.DeleteOrder {
		report(i, fmt.Errorf("its delete order %d is greater than the delete order %d of %s, %s",
			own.DeleteOrder, other.DeleteOrder, role, needed.describe()))
	}
}
