package component

import (
	"cmp"
	"context"
	"slices"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/statusfield"
	"github.com/espalier-dev/espalier/reconcilers"

	"k8s.io/apimachinery/pkg/api/meta"
)

// statusOf returns the status of the component, which may be that of an item of the resource. It is nil if the resource
// has no place for it.
func (r *ComponentReconciler[T]) statusOf(ctx context.Context, resource T) *apis.ComponentStatus {
	if !reconcilers.HasItem(ctx) {
		return r.Status(resource)
	}
	items := statusfield.PartOf[apis.ItemsStatus](resource)
	if items == nil {
		return nil
	}
	name := reconcilers.ItemName(ctx, r.Name)
	// The slice may be shared with what the status was before.
	items.ItemComponents = slices.Clone(items.ItemComponents)
	i, found := slices.BinarySearchFunc(items.ItemComponents, name, compareItemComponent)
	if !found {
		items.ItemComponents = slices.Insert(items.ItemComponents, i, apis.ItemComponentStatus{Name: name})
	}
	return &items.ItemComponents[i].ComponentStatus
}

func compareItemComponent(status apis.ItemComponentStatus, name string) int {
	return cmp.Compare(status.Name, name)
}

// reportItem sets the condition of the component of an item on the resource, where those of all items are summed up. It
// removes the status of a component that is gone with its item.
func (r *request[T]) reportItem(ctx context.Context) {
	if c := meta.FindStatusCondition(r.status.Conditions, r.Condition); c != nil {
		reconcilers.SetCondition(ctx, r.resource, *c)
	}
	if !r.facts.withdrawn || r.facts.err != nil {
		return
	}
	items := statusfield.PartOf[apis.ItemsStatus](r.resource)
	if i, found := slices.BinarySearchFunc(
		items.ItemComponents, reconcilers.ItemName(ctx, r.Name), compareItemComponent); found {
		items.ItemComponents = slices.Delete(slices.Clone(items.ItemComponents), i, i+1)
	}
}
