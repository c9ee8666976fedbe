package reconcilers

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/espalier-dev/espalier/internal/listing"
	"github.com/espalier-dev/espalier/internal/resourcestate"
	rtime "github.com/espalier-dev/espalier/time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A request keeps the lists of children that its nodes asked for: what the cache shows, corrected by what the
// controller wrote and the cache does not show yet. The nodes share the lists, so that the cache is asked once for each
// type. The objects are copies that belong to the request, sorted by namespace and name. A list is replaced and never
// changed.

// childListKey identifies a list. The same type in another cluster is another list. A node with list options has a list
// of its own.
type childListKey struct {
	reader client.Client
	listed reflect.Type
	kind   schema.GroupVersionKind
	// node is nil for the children that the resource controls. Nodes share these.
	node any
}

func (k *children[T, CT, CLT]) listKey(config Config) childListKey {
	key := childListKey{
		reader: config.Client,
		listed: reflect.TypeOf(k.listType),
		kind:   k.listType.GetObjectKind().GroupVersionKind(),
	}
	if k.listOptions != nil {
		key.node = k.node
	}
	return key
}

// listKeeper returns the state of the request that keeps lists of children. It returns nil if there is none: outside of
// a root, and for a client that cannot be the key of a map.
func listKeeper(ctx context.Context) *requestState {
	if s := contextOf(ctx); s.state != nil && s.state.resource != nil && s.comparable {
		return s.state
	}
	return nil
}

// find returns the current config, and the objects that are the node's children, sorted by namespace and name. They are
// for reading.
//
// If the resource is terminating, the node must not overlook a child that garbage collection does not delete. So if the
// cache shows none, the API server is asked. If the children are withdrawn, that is done before their finalizer is
// taken off the resource.
func (k *children[T, CT, CLT]) find(ctx context.Context, resource T) (config Config, found []CT, err error) {
	if config, err = RetrieveConfig(ctx); err != nil {
		return config, nil, fmt.Errorf("%s %q: %w", k.kind, k.name, err)
	}
	if err := k.completeListType(config); err != nil {
		return config, nil, err
	}
	candidates, err := k.candidates(ctx, config, resource)
	found = k.ownOf(resource, candidates)
	asks := err == nil && k.unowned && len(found) == 0 && config.APIReader != nil
	if asks && (resource.GetDeletionTimestamp() != nil ||
		SupervisionOf(ctx, resource) == Withdraw && k.holdsFinalizer(resource)) {
		candidates, err = listing.List(ctx, config.APIReader, k.listType, nil, k.listOptions(ctx, resource)...)
		found = k.ownOf(resource, candidates)
		if apierrs.IsBadRequest(err) {
			// Only the cache understands these options.
			err = nil
		}
	}
	if err != nil {
		recordFailure(ctx, typeName(k.childType), err)
	}
	return config, found, err
}

func (k *children[T, CT, CLT]) ownOf(resource T, objects []client.Object) []CT {
	own := make([]CT, 0, len(objects))
	for _, obj := range objects {
		if k.isOwn(resource, obj) {
			own = append(own, obj.(CT))
		}
	}
	return own
}

// isOwn reports whether an object is a child of the node.
func (k *children[T, CT, CLT]) isOwn(resource T, obj client.Object) bool {
	return k.mayBeOwn(resource, obj) && (k.label == "" || obj.GetLabels()[NodeLabel] == k.label)
}

// mayBeOwn reports whether an object is a child of the node, whatever its label.
func (k *children[T, CT, CLT]) mayBeOwn(resource T, obj client.Object) bool {
	child, ok := obj.(CT)
	if !ok || !k.unowned && !metav1.IsControlledBy(child, resource) {
		return false
	}
	return k.ourChild == nil || k.ourChild(resource, child)
}

// isUnlabelled reports whether an object is a child of the node if it is desired: it was made before the children were
// labelled, or has lost its label.
func (k *children[T, CT, CLT]) isUnlabelled(resource T, obj client.Object) bool {
	return k.label != "" && obj.GetLabels()[NodeLabel] == "" && k.mayBeOwn(resource, obj)
}

// withUnlabelled returns found together with the unlabelled children that have the name of a desired one.
func (k *children[T, CT, CLT]) withUnlabelled(
	ctx context.Context, config Config, resource T, found []CT, desired ...CT,
) ([]CT, error) {
	if k.label == "" {
		return found, nil
	}
	names := map[client.ObjectKey]bool{}
	for _, child := range desired {
		if !isNil(child) {
			names[client.ObjectKeyFromObject(child)] = true
		}
	}
	for _, child := range found {
		delete(names, client.ObjectKeyFromObject(child))
	}
	if len(names) == 0 {
		return found, nil
	}
	candidates, err := k.candidates(ctx, config, resource)
	if err != nil {
		return nil, err
	}
	for _, obj := range candidates {
		if names[client.ObjectKeyFromObject(obj)] && k.isUnlabelled(resource, obj) {
			found = append(found, obj.(CT))
		}
	}
	return found, nil
}

// candidates returns the objects among which the children are: what the cache shows, corrected by what the controller
// wrote. Outside of a root there is no request to keep them in, and each call lists.
func (k *children[T, CT, CLT]) candidates(ctx context.Context, config Config, resource T) ([]client.Object, error) {
	request := listKeeper(ctx)
	if request == nil {
		return k.list(ctx, config, resource)
	}
	key := k.listKey(config)
	if known, ok := request.childList(key); ok && key.node == nil {
		return known, nil
	}
	// References into the cache are enough, because they are copied below.
	listed, err := k.list(ctx, config, resource, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, err
	}
	writes, _ := resourcestate.Load[*resourcestate.OwnWrites](request.resource, key)
	objects, err := writes.Believed(ctx, config.APIReader, listed, rtime.RetrieveNow(ctx))
	if err != nil {
		return nil, err
	}
	for _, obj := range objects {
		if carried := obj.GetObjectKind(); carried.GroupVersionKind().Empty() {
			// A cache sets the kind only on its copies.
			carried.SetGroupVersionKind(k.indexed.Kind)
		}
	}
	request.setChildList(key, objects)
	return objects, nil
}

// recordWrite notes in the lists of the request what a call of Manage did: before is the object that Manage was called
// with, and written what it returned, nil if the object was deleted.
func (k *children[T, CT, CLT]) recordWrite(ctx context.Context, config Config, before, written CT) {
	request := listKeeper(ctx)
	deleted, absent := isNil(written), isAbsent(before)
	same := !deleted && !absent && (client.Object(written) == client.Object(before) || sameVersion(written, before))
	if request == nil || same || deleted && absent {
		return
	}
	key := k.listKey(config)
	known, ok := request.childList(key)
	if !ok {
		return
	}
	writes := resourcestate.LoadOrStore(request.resource, key, func() *resourcestate.OwnWrites {
		return &resourcestate.OwnWrites{}
	})
	now := rtime.RetrieveNow(ctx)
	isBefore := func(obj client.Object) bool { return obj == client.Object(before) }
	objects := slices.DeleteFunc(slices.Clone(known), isBefore)
	if deleted {
		writes.Deleted(before, now)
	} else {
		// The functions of the author get the object, and may change it.
		writes.Wrote(written.DeepCopyObject().(client.Object), absent, now)
		objects = append(objects, written)
		listing.Sort(objects)
	}
	request.setChildList(key, objects)
}

func (s *requestState) childList(key childListKey) ([]client.Object, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.children[key]
	return known, ok
}

func (s *requestState) setChildList(key childListKey, list []client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.children == nil {
		s.children = map[childListKey][]client.Object{}
	}
	s.children[key] = list
}

// list returns what the cache has. Without list options of the author, these are the objects that the resource
// controls. With list options, the objects that are no children of the node are left out, so that they are not kept.
func (k *children[T, CT, CLT]) list(
	ctx context.Context, config Config, resource T, opts ...client.ListOption,
) ([]client.Object, error) {
	if k.listOptions == nil {
		return config.owners.Controlled(ctx, config.Client, k.indexed, k.listType, resource, opts...)
	}
	mayBeOwn := func(obj client.Object) bool { return k.mayBeOwn(resource, obj) }
	opts = slices.Concat(k.listOptions(ctx, resource), opts)
	return listing.List(ctx, config.Client, k.listType, mayBeOwn, opts...)
}

// indexedType returns the type of obj as the index by owner has it.
func indexedType(c client.Client, obj client.Object) listing.Type {
	return listing.Type{Kind: kindOf(c, obj), Watched: watchable(obj, c.Scheme())}
}
