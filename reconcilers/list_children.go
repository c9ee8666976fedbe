package reconcilers

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/resourcestate"
	rtime "github.com/espalier-dev/espalier/time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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
		candidates, err = listObjects(ctx, config.APIReader, k.listType, nil, k.listOptions(ctx, resource)...)
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
		if !gotype.IsNil(child) {
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
	now := rtime.RetrieveNow(ctx)
	writes, _ := resourcestate.Load[*resourcestate.OwnWrites](request.resource, key)
	objects := make([]client.Object, 0, len(listed))
	kind := kindOf(config.Client, k.childType)
	for _, cached := range listed {
		obj := cached
		if writes != nil {
			obj = writes.Resolve(cached, now)
		}
		if obj == nil {
			continue
		}
		if obj == cached {
			obj = cached.DeepCopyObject().(client.Object)
		}
		if carried := obj.GetObjectKind(); carried.GroupVersionKind().Empty() {
			// A cache sets the kind only on its copies.
			carried.SetGroupVersionKind(kind)
		}
		objects = append(objects, obj)
	}
	if writes != nil {
		unseen, err := writes.Unseen(ctx, config.APIReader, listed, now)
		if err != nil {
			return nil, err
		}
		if len(unseen) > 0 {
			objects = append(objects, unseen...)
			sortObjects(objects)
		}
	}
	request.setChildList(key, objects)
	return objects, nil
}

// recordWrite notes in the lists of the request what a call of Manage did: before is the object that Manage was called
// with, and written what it returned, nil if the object was deleted.
func (k *children[T, CT, CLT]) recordWrite(ctx context.Context, config Config, before, written CT) {
	request := listKeeper(ctx)
	deleted, absent := gotype.IsNil(written), isAbsent(before)
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
		sortObjects(objects)
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
// controls: by the owner index if the type has one, else from the namespace of the resource. With list options, the
// objects that are no children of the node are left out, so that they are not kept.
func (k *children[T, CT, CLT]) list(
	ctx context.Context, config Config, resource T, opts ...client.ListOption,
) ([]client.Object, error) {
	if k.listOptions != nil {
		mayBeOwn := func(obj client.Object) bool { return k.mayBeOwn(resource, obj) }
		opts = slices.Concat(k.listOptions(ctx, resource), opts)
		return listObjects(ctx, config.Client, k.listType, mayBeOwn, opts...)
	}
	controlled := func(obj client.Object) bool { return metav1.IsControlledBy(obj, resource) }
	opts = append(opts, client.InNamespace(resource.GetNamespace()))
	if !config.owners.covers(ctx, config.Client, k.childType) {
		return listObjects(ctx, config.Client, k.listType, controlled, opts...)
	}
	found, err := listObjects(ctx, config.Client, k.listType, controlled, append(opts, owned(resource))...)
	if err == nil {
		return found, nil
	}
	// The client may read the type past the cache, which alone has the index: by the options of the manager, or because
	// the author replaced the client of the config.
	found, listErr := listObjects(ctx, config.Client, k.listType, controlled, opts...)
	if listErr != nil {
		return nil, err
	}
	config.owners.drop(config.Client, k.childType)
	return found, nil
}

// listObjects lists into a new list of the type of list, and returns the objects for which keep, which may be nil,
// returns true. They are sorted by namespace and name.
func listObjects(
	ctx context.Context, reader client.Reader, list client.ObjectList, keep func(client.Object) bool,
	opts ...client.ListOption,
) ([]client.Object, error) {
	list = list.DeepCopyObject().(client.ObjectList)
	if err := reader.List(ctx, list, opts...); err != nil {
		return nil, err
	}
	objects := make([]client.Object, 0, meta.LenList(list))
	err := meta.EachListItem(list, func(item runtime.Object) error {
		if obj, ok := item.(client.Object); ok && (keep == nil || keep(obj)) {
			objects = append(objects, obj)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	sortObjects(objects)
	return objects, nil
}

func sortObjects(objects []client.Object) {
	slices.SortFunc(objects, func(a, b client.Object) int {
		if order := strings.Compare(a.GetNamespace(), b.GetNamespace()); order != 0 {
			return order
		}
		return strings.Compare(a.GetName(), b.GetName())
	})
}

// ownerIndexField is the name under which objects are indexed in the cache by the UID of their controller. It is no
// field of any object; the cache only needs it to be unique.
const ownerIndexField = ".espalier.dev/controller-uid"

// ownerIndex finds the children of an owner in a cache, at a cost that does not depend on how many other objects there
// are. It has the types that were registered at set-up. Other types are found by listing their namespace.
//
// The index of a type is added to the cache when its children are listed first, not at set-up: the cache asks the API
// server for the type, and a missing CustomResourceDefinition must not keep the manager from starting.
type ownerIndex struct {
	indexer client.FieldIndexer

	mu    sync.Mutex
	types map[indexedType]indexStatus
}

// indexedType identifies an informer of a cache: each representation of a kind has its own.
type indexedType struct {
	kind           schema.GroupVersionKind
	representation reflect.Type
}

type indexStatus int

const (
	// indexUnused is the status of types that have no index: they were not registered, or the client does not read them
	// from the cache.
	indexUnused indexStatus = iota
	indexRegistered
	indexReady
)

func newOwnerIndex(indexer client.FieldIndexer) *ownerIndex {
	return &ownerIndex{indexer: indexer, types: map[indexedType]indexStatus{}}
}

func indexedTypeOf(c client.Client, obj client.Object) indexedType {
	return indexedType{kind: kindOf(c, obj), representation: reflect.TypeOf(watchable(obj, c.Scheme()))}
}

// register notes that objects of the type of obj are to be indexed. It may be called again.
func (x *ownerIndex) register(c client.Client, obj client.Object) {
	if x == nil || x.indexer == nil {
		return
	}
	t := indexedTypeOf(c, obj)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.types[t] == indexUnused {
		x.types[t] = indexRegistered
	}
}

// covers reports whether objects of the type of obj are indexed. It adds the index if the type is registered. If that
// fails, the type counts as not indexed, and the next call tries again. The error is dropped, because the caller lists
// the type next and meets it again.
func (x *ownerIndex) covers(ctx context.Context, c client.Client, obj client.Object) bool {
	if x == nil {
		return false
	}
	t := indexedTypeOf(c, obj)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.types[t] == indexRegistered {
		err := x.indexer.IndexField(ctx, watchable(obj, c.Scheme()), ownerIndexField, controllerUID)
		// Another controller of the same manager may have added the index. The cache has no error type for that, but
		// the text of its error has the name of the index.
		if err != nil && !strings.Contains(err.Error(), ownerIndexField) {
			return false
		}
		x.types[t] = indexReady
	}
	return x.types[t] == indexReady
}

// drop forgets that objects of the type of obj are indexed, because the client does not read them from the cache.
func (x *ownerIndex) drop(c client.Client, obj client.Object) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.types, indexedTypeOf(c, obj))
}

// controllerUID is the value that an object is indexed by.
func controllerUID(obj client.Object) []string {
	owner := metav1.GetControllerOfNoCopy(obj)
	if owner == nil {
		return nil
	}
	return []string{string(owner.UID)}
}

var _ client.IndexerFunc = controllerUID

// owned is the list option for the children of owner.
func owned(owner client.Object) client.ListOption {
	return client.MatchingFields{ownerIndexField: string(owner.GetUID())}
}
