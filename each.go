package espalier

import (
	"context"

	"github.com/espalier-dev/espalier/reconcilers"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Each returns a node that runs nodes in order for each item that a function returns, see [reconcilers.ForEach] with a
// Key. What the nodes have for one item has nothing to do with what they have for another: objects, values, conditions,
// and the records of features. The nodes get the item from [ItemOf]. The status of the resource has to embed
// [apis.ItemsStatus].
//
// Key returns what identifies an item for as long as it exists. When an item is gone, what the nodes have for it is
// deleted, and the functions of [Run.Finalizes] are called; [reconcilers.ItemKey] says for which key.
func Each[Type client.Object, Item any](
	name string, items func(ctx context.Context, resource Type) ([]Item, error), key func(item Item) string,
	nodes ...reconcilers.SubReconciler[Type],
) *reconcilers.ForEach[Type, Item] {
	return &reconcilers.ForEach[Type, Item]{Name: name, Items: items, Key: key, Reconciler: Steps(nodes...)}
}

// ItemOf returns the item that the nodes of ctx run for. It is empty for an item that is gone, see
// [reconcilers.IsItemGone], and outside of [Each]. For an item that is gone only the functions of [Run.Finalizes] are
// called.
func ItemOf[Item any](ctx context.Context) Item {
	return reconcilers.CursorStasher[Item]().RetrieveOrEmpty(ctx).Item
}
