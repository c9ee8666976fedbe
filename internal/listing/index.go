package listing

import (
	"context"
	"reflect"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Field is the name under which objects are indexed in a cache by the UID of their controller. It is no field of any
// object; the cache only needs it to be unique.
const Field = ".espalier.dev/controller-uid"

// Index finds the objects that a resource controls in a cache, at a cost that does not depend on how many other objects
// there are. It has the types that were registered at set-up. Other types are found by listing their namespace. A nil
// Index has no type.
//
// The index of a type is added to the cache when its objects are listed first, not at set-up: the cache asks the API
// server for the type, and a missing CustomResourceDefinition must not keep the manager from starting.
type Index struct {
	indexer client.FieldIndexer

	mu    sync.Mutex
	types map[Key]status
}

// Type is a type as an informer of a cache has it: each representation of a kind has its own.
type Type struct {
	Kind schema.GroupVersionKind
	// Watched is an object for whose type there can be an informer.
	Watched client.Object
}

// Key identifies a type.
type Key struct {
	kind           schema.GroupVersionKind
	representation reflect.Type
}

// Kind returns the kind of the type.
func (k Key) Kind() schema.GroupVersionKind { return k.kind }

// Key returns the key of the type.
func (t Type) Key() Key { return Key{t.Kind, reflect.TypeOf(t.Watched)} }

type status int

const (
	// unused is the status of types that have no index: they were not registered, or the client does not read them from
	// the cache.
	unused status = iota
	registered
	ready
)

// NewIndex returns an index of the cache that indexer belongs to; it may be nil if there is none.
func NewIndex(indexer client.FieldIndexer) *Index {
	return &Index{indexer: indexer, types: map[Key]status{}}
}

// Register notes that objects of the type are to be indexed. It may be called again.
func (x *Index) Register(t Type) {
	if x == nil || x.indexer == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if key := t.Key(); x.types[key] == unused {
		x.types[key] = registered
	}
}

// Renew adds the index of a type again, whose informer is a new one.
func (x *Index) Renew(ctx context.Context, t Type) {
	if x == nil || x.indexer == nil {
		return
	}
	x.mu.Lock()
	x.types[t.Key()] = registered
	x.mu.Unlock()
	x.covers(ctx, t)
}

// Controlled returns the objects of the type, in lists of the type of list, that owner controls, from the namespace of
// owner. They are sorted, see [Sort].
func (x *Index) Controlled(
	ctx context.Context, reader client.Reader, t Type, list client.ObjectList, owner client.Object,
	opts ...client.ListOption,
) ([]client.Object, error) {
	controlled := func(obj client.Object) bool { return metav1.IsControlledBy(obj, owner) }
	opts = append(opts, client.InNamespace(owner.GetNamespace()))
	if !x.covers(ctx, t) {
		return List(ctx, reader, list, controlled, opts...)
	}
	indexed := client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector(Field, string(owner.GetUID()))}
	found, err := List(ctx, reader, list, controlled, append(opts, indexed)...)
	if err == nil {
		return found, nil
	}
	// The client may read the type past the cache, which alone has the index: by the options of the manager, or because
	// the author replaced the client of the config.
	found, listErr := List(ctx, reader, list, controlled, opts...)
	if listErr != nil {
		return nil, err
	}
	x.drop(t)
	return found, nil
}

// covers reports whether objects of the type are indexed. It adds the index if the type is registered. If that fails,
// the type counts as not indexed, and the next call tries again. The error is dropped, because the caller lists the
// type next and meets it again.
func (x *Index) covers(ctx context.Context, t Type) bool {
	if x == nil {
		return false
	}
	key := t.Key()
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.types[key] == registered {
		err := x.indexer.IndexField(ctx, t.Watched, Field, controllerUID)
		// Another controller of the same manager may have added the index. The cache has no error type for that, but
		// the text of its error has the name of the index.
		if err != nil && !strings.Contains(err.Error(), Field) {
			return false
		}
		x.types[key] = ready
	}
	return x.types[key] == ready
}

// drop forgets that objects of the type are indexed, because the client does not read them from the cache.
func (x *Index) drop(t Type) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.types, t.Key())
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
