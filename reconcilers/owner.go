package reconcilers

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

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

	mu    sync.RWMutex
	types map[indexedType]indexStatus
}

// indexedType is a type as a cache tells types apart: each representation of a kind has an informer of its own.
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
// fails, the type counts as not indexed, and the next call tries again: the caller's own listing will tell what is
// wrong with the type.
func (x *ownerIndex) covers(ctx context.Context, c client.Client, obj client.Object) bool {
	if x == nil {
		return false
	}
	t := indexedTypeOf(c, obj)
	x.mu.RLock()
	status := x.types[t]
	x.mu.RUnlock()
	if status != indexRegistered {
		return status == indexReady
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.types[t] != indexRegistered {
		return x.types[t] == indexReady
	}
	err := x.indexer.IndexField(ctx, watchable(obj, c.Scheme()), ownerIndexField, controllerUID)
	if err != nil && !isIndexConflict(err) {
		return false
	}
	x.types[t] = indexReady
	return true
}

// isIndexConflict reports whether the index was there already, because another controller of the same manager added it.
// The cache has no error type for that, but its error names the index, and the name is ours.
func isIndexConflict(err error) bool {
	return strings.Contains(err.Error(), ownerIndexField)
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

// setController makes owner the controller of child by ref, which refers to owner. A controller that child names
// already is respected as given.
//
// The rules are those of Kubernetes garbage collection: an owner is cluster-scoped or in the namespace of the child.
func setController(owner client.Object, ref metav1.OwnerReference, child client.Object) error {
	if metav1.GetControllerOfNoCopy(child) != nil {
		return nil
	}
	if err := validateOwner(owner.GetNamespace(), child.GetNamespace()); err != nil {
		return err
	}
	refs := child.GetOwnerReferences()
	if slices.ContainsFunc(refs, func(r metav1.OwnerReference) bool { return r.UID == ref.UID }) {
		refs = slices.DeleteFunc(slices.Clone(refs), func(r metav1.OwnerReference) bool { return r.UID == ref.UID })
	}
	child.SetOwnerReferences(append(slices.Clip(refs), ref))
	return nil
}

// ownerIdentity is what an owner reference is made of.
type ownerIdentity struct {
	uid    types.UID
	object reflect.Type
	reader client.Client
}

// controllerRef returns a reference to owner as controller, or an error if the kind of owner is not known. Below a root
// it is made once in a request.
func controllerRef(ctx context.Context, config Config, owner client.Object) (metav1.OwnerReference, error) {
	owner, _ = resourceBehindCast(ctx, owner)
	p := contextOf(ctx).state
	if p == nil || !contextOf(ctx).comparable {
		return newControllerRef(config, owner)
	}
	identity := ownerIdentity{uid: owner.GetUID(), object: reflect.TypeOf(owner), reader: config.Client}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.owner != identity {
		ref, err := newControllerRef(config, owner)
		if err != nil {
			return metav1.OwnerReference{}, err
		}
		p.owner, p.ownerRef = identity, ref
	}
	return p.ownerRef, nil
}

func newControllerRef(config Config, owner client.Object) (metav1.OwnerReference, error) {
	kind, err := config.GroupVersionKindFor(owner)
	if err != nil {
		return metav1.OwnerReference{}, err
	}
	return *metav1.NewControllerRef(owner, kind), nil
}

func validateOwner(ownerNamespace, namespace string) error {
	switch {
	case ownerNamespace == "" || ownerNamespace == namespace:
		return nil
	case namespace == "":
		return fmt.Errorf("cluster-scoped resource must not have a namespace-scoped owner, owner's namespace %s", ownerNamespace)
	default:
		return fmt.Errorf("cross-namespace owner references are disallowed, owner's namespace %s, obj's namespace %s", ownerNamespace, namespace)
	}
}
