package reconcilers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/espalier-dev/espalier/internal/conditionlog"
	"github.com/espalier-dev/espalier/internal/resourcestate"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ItemLabel is the key of the label that says which item an object was made for, below a [ForEach] with a Key. Its
// value begins with the key as far as a label can have it, and ends with a digest of the keys and of the names of the
// loops around the node.
const ItemLabel = "espalier.dev/item"

// item is the item that the nodes below a [ForEach] with a Key run for.
type item struct {
	key string
	// id identifies it in a tree: the names of the loops around, each with its key, such as Regions[eu]/Databases[a].
	id string
	// keys are those of the loops around and its own, such as [eu][a].
	keys string
	// label is the value of [ItemLabel].
	label string
	// gone is true if the item itself is not known any more, or that around it.
	gone bool

	// state is what is kept for the item from request to request.
	state *resourcestate.State
	// conditions are those that were set for the item in the request.
	conditions conditionlog.Log
	// cleared are the finalizers that a node does not need for the item any more. They are on the resource, and the
	// nodes do not see them.
	cleared []string
}

// newItem returns the item with that key of a loop. Outer is the item around the loop, or nil.
func newItem(outer *item, loop, key string) *item {
	i := &item{key: key, keys: "[" + key + "]", id: loop + "[" + key + "]"}
	if outer != nil {
		i.keys, i.id, i.gone = outer.keys+i.keys, outer.id+"/"+i.id, outer.gone
	}
	sum := sha256.Sum256([]byte(i.id))
	i.label = labelPrefix(key) + hex.EncodeToString(sum[:6])
	i.conditions.Start()
	return i
}

// labelPrefix returns as much of a key as the value of a label may begin with, and a hyphen. It is empty if that is
// nothing.
func labelPrefix(key string) string {
	const longest = 40
	readable := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '-'
	}, key)
	readable = strings.Trim(readable[:min(len(readable), longest)], "-_.")
	if readable == "" {
		return ""
	}
	return readable + "-"
}

func itemOf(ctx context.Context) *item { return contextOf(ctx).item }

// ItemKey returns the key of the item that the nodes of ctx run for: that of the innermost [ForEach] with a Key. It is
// empty outside of one.
func ItemKey(ctx context.Context) string {
	if i := itemOf(ctx); i != nil {
		return i.key
	}
	return ""
}

// HasItem reports whether the nodes of ctx run for an item of a [ForEach] with a Key. In the set-up it reports whether
// they will.
func HasItem(ctx context.Context) bool { return itemOf(ctx) != nil }

// IsItemGone reports whether the item that the nodes of ctx run for is gone, so that only its key is known. A function
// that reads the item gets an empty one then.
func IsItemGone(ctx context.Context) bool {
	i := itemOf(ctx)
	return i != nil && i.gone
}

// ItemName returns a name that is a different one for each item that the nodes of ctx run for: name followed by the
// keys of the items, each in brackets. It is name itself outside of a [ForEach] with a Key. A node uses it for what it
// records about itself in the resource.
func ItemName(ctx context.Context, name string) string {
	if i := itemOf(ctx); i != nil {
		return name + i.keys
	}
	return name
}

// ItemLabelOf returns the value of [ItemLabel] for the item that the nodes of ctx run for. It is empty outside of a
// [ForEach] with a Key.
func ItemLabelOf(ctx context.Context) string { return itemOf(ctx).labelled() }

// labelled returns the value of [ItemLabel] for objects of the item. It is empty for nil.
func (i *item) labelled() string {
	if i == nil {
		return ""
	}
	return i.label
}

// itemNode is a node that runs for an item.
type itemNode struct {
	node any
	item string
}

// of returns what stands for a node in a request. It differs from item to item.
func (i *item) of(node any) any {
	if i == nil {
		return node
	}
	return itemNode{node, i.id}
}

// clear notes that the nodes of the item do not need a finalizer any more.
func (i *item) clear(resource client.Object, finalizer string) {
	i.cleared = append(i.cleared, finalizer)
	resource.SetFinalizers(without(resource.GetFinalizers(), finalizer))
}
