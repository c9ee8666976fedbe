package differential

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/store"
)

// List implements [client.Client].
func (t *tee) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	other := list.DeepCopyObject().(client.ObjectList)
	options := (&client.ListOptions{}).ApplyOptions(opts)
	return t.make(call{
		Call:     store.Call{Verb: store.List, Kind: t.kindOf(list), Namespace: options.Namespace},
		memory:   func() error { return t.WithWatch.List(ctx, list, opts...) },
		server:   func() error { return t.page(ctx, list.GetContinue(), other, options) },
		inMemory: list, onServer: other,
	})
}

// page fills list with a page of what the server lists; next is the token of memory for the next page. A token of
// memory says nothing to the server, and a page of the server may end earlier, since others have objects there. So the
// server lists everything for the first page. The caller holds the lock.
func (t *tee) page(ctx context.Context, next string, list client.ObjectList, options *client.ListOptions) error {
	items, known := t.comparison.rests[options.Continue]
	if !known {
		whole := *options
		if whole.Continue == "" {
			whole.Limit = 0
		}
		if err := t.server.List(ctx, list, &whole); err != nil {
			return err
		}
		var err error
		if items, err = meta.ExtractList(list); err != nil {
			return err
		}
	}
	if limit := int(options.Limit); 0 < limit && limit < len(items) {
		if next != "" {
			t.comparison.rests[next] = items[limit:]
		}
		items = items[:limit]
	}
	return meta.SetList(list, items)
}
