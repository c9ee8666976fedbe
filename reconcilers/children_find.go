package reconcilers

import (
	"context"
	"slices"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// find returns the objects that are the node's children, sorted by namespace and name. They are for reading.
func (k *children[T, CT, CLT]) find(ctx context.Context, config Config, resource T) ([]CT, error) {
	candidates, err := k.candidates(ctx, config, resource)
	if err != nil {
		return nil, err
	}
	found := make([]CT, 0, len(candidates))
	for _, candidate := range candidates {
		if child, ok := candidate.(CT); ok && k.ours(resource, child) {
			found = append(found, child)
		}
	}
	return found, nil
}

// candidates returns the objects among which the children are.
func (k *children[T, CT, CLT]) candidates(ctx context.Context, config Config, resource T) ([]client.Object, error) {
	candidates, err := k.remembered(ctx, config, resource)
	if err != nil || !k.mustBeSure(config, resource) || slices.ContainsFunc(candidates, k.isOurs(resource)) {
		return candidates, err
	}
	live, err := readList(ctx, config.APIReader, k.listType, k.listOptions(ctx, resource)...)
	if apierrs.IsBadRequest(err) {
		// The options are such that only the cache understands them.
		return candidates, nil
	}
	return live, err
}

// remembered returns the objects among which the children are, by what the cache shows and by what is remembered of our own
// writes. In a node called by itself there is no memory, and each call lists.
func (k *children[T, CT, CLT]) remembered(ctx context.Context, config Config, resource T) ([]client.Object, error) {
	if !remembersChildren(ctx) {
		return k.read(ctx, config, resource)
	}
	key := k.family(config)
	if known, ok := knownChildren(ctx, key); ok && key.node == nil {
		return known, nil
	}
	return listChildren(ctx, config, key, k.childType, func(opts ...client.ListOption) ([]client.Object, error) {
		return k.read(ctx, config, resource, opts...)
	})
}

// family identifies the children of the node: those that the resource controls, or those that it finds in its own way.
func (k *children[T, CT, CLT]) family(config Config) familyKey {
	if k.listOptions == nil {
		return familyOf(config, k.listType, nil)
	}
	return familyOf(config, k.listType, k.node)
}

// read returns what the cache has. With options of the author's it is narrowed down to the node's own children, so that nobody
// else's are remembered.
func (k *children[T, CT, CLT]) read(ctx context.Context, config Config, resource T, opts ...client.ListOption) ([]client.Object, error) {
	if k.listOptions == nil {
		return readChildren(ctx, config, resource, k.childType, k.listType, opts...)
	}
	listed, err := readList(ctx, config.Client, k.listType, k.listOptions(ctx, resource)...)
	if err != nil {
		return nil, err
	}
	ours := k.isOurs(resource)
	return slices.DeleteFunc(listed, func(obj client.Object) bool { return !ours(obj) }), nil
}

// mustBeSure tells whether a child that the cache does not show would be left behind: the resource is about to go, and the
// child does not go with it.
func (k *children[T, CT, CLT]) mustBeSure(config Config, resource T) bool {
	return k.unowned && resource.GetDeletionTimestamp() != nil && config.APIReader != nil
}

func (k *children[T, CT, CLT]) isOurs(resource T) func(client.Object) bool {
	return func(obj client.Object) bool {
		child, ok := obj.(CT)
		return ok && k.ours(resource, child)
	}
}

func (k *children[T, CT, CLT]) ours(resource T, child CT) bool {
	if !k.unowned && !metav1.IsControlledBy(child, resource) {
		return false
	}
	return k.ourChild == nil || k.ourChild(resource, child)
}
