package inventory

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/espalier-dev/espalier/apis"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DefaultMaxChunk is how large a chunk may get, in bytes. The API server takes Secrets and ConfigMaps of 1 MiB.
const DefaultMaxChunk = 512 << 10

var (
	errWritten   = errors.New("somebody else has written it")
	errNotLoaded = errors.New("cannot store the inventory: it has to be loaded first, since what is stored is not known")
)

// Options say where an inventory is kept.
type Options struct {
	// Client writes, past any cache. Required.
	Client client.Client
	// Reader reads, past any cache. Required.
	Reader client.Reader
	// Kind is KindSecret or KindConfigMap. Default: KindSecret.
	Kind string
	// Namespace is where the objects are. Required.
	Namespace string
	// Name is that of the inventory, which the names of the objects begin with; see [ObjectName]. It must not change as long as
	// there is an inventory, nor may Kind or Namespace. Required.
	Name string
	// Labels select the objects of this inventory, and no others. Required.
	Labels map[string]string
	// OwnerUID is the UID of the resource whose inventory it is. An inventory of another is not touched. Required.
	OwnerUID types.UID
	// OwnerReference makes the garbage collector take objects that somebody took the finalizer off, once the resource is gone.
	// Optional; it needs a resource in the same namespace, or a cluster-scoped one.
	OwnerReference *metav1.OwnerReference
	// Finalizer keeps the objects until Remove. Without it the inventory would be the first to go when the resource is
	// deleted with its dependents in the foreground, or when the namespace is. Required.
	Finalizer string
	// MaxChunk is how large the data of one object may get, in bytes, at most 1000 KiB. Default: DefaultMaxChunk.
	MaxChunk int
}

func (o *Options) check() error {
	var errs []error
	require := func(what string, given bool) {
		if !given {
			errs = append(errs, fmt.Errorf("an inventory in objects of its own needs %s", what))
		}
	}
	require("a client", o.Client != nil)
	require("a reader", o.Reader != nil)
	require("a namespace", o.Namespace != "")
	require("a name", o.Name != "")
	require("a name that fits", len(o.Name) <= maxName)
	require("labels", len(o.Labels) > 0)
	require("the UID of its owner", o.OwnerUID != "")
	require("a finalizer", o.Finalizer != "")
	require("the kind Secret or ConfigMap", o.Kind == KindSecret || o.Kind == KindConfigMap)
	require("chunks of at most 1000 KiB", o.MaxChunk > 0 && o.MaxChunk <= 1000<<10)
	return errors.Join(errs...)
}

var _ Store = (*Objects)(nil)

// Objects keeps an inventory in objects of its own, in chunks. It lives across requests and remembers what is stored: only the
// first request reads, and a save writes only the chunks that changed, one request each. See [NewObjects].
//
// Whatever moment a save is broken off at, the objects have all records that were there before and were to stay. A record
// may then be found that was to go, or one that the caller was never told to be durable.
//
// After an error of any write, and when somebody else has written (the error is then a conflict), what is stored is not known, and
// the caller has to start over with Load. Nothing that somebody else wrote is overwritten.
//
// Load refuses an inventory of which a part is missing, damaged, of another owner, or of a format that is not known; the error
// names the object. Whoever wants to make do without deletes all objects with the labels by hand.
type Objects struct {
	options Options
	// generation is the highest that was seen or used. It survives what is known, so that a late write cannot pass for a
	// newer one.
	generation int64

	// known tells that the rest is what is stored.
	known bool
	// metas are those of the stored objects, by the number of the chunk.
	metas map[int]metav1.ObjectMeta
	// listed are the chunks that the root lists.
	listed []int
	// stale are the chunks with records that another chunk has newer.
	stale  map[int]bool
	layout layout
}

// NewObjects returns the store for the inventory of one resource. It makes no request.
func NewObjects(options Options) (*Objects, error) {
	if options.Kind == "" {
		options.Kind = KindSecret
	}
	if options.MaxChunk == 0 {
		options.MaxChunk = DefaultMaxChunk
	}
	if err := options.check(); err != nil {
		return nil, err
	}
	return &Objects{options: options}, nil
}

// Load implements [Store]. It makes requests only if what is stored is not known.
func (s *Objects) Load(ctx context.Context) ([]apis.InventoryRecord, error) {
	if !s.known {
		if err := s.read(ctx); err != nil {
			return nil, fmt.Errorf("cannot load the inventory: %w", err)
		}
	}
	// What is remembered is what a save compares with, so nobody else may have it.
	return slices.Clone(s.layout.records), nil
}

// Save implements [Store]. The records are durable once it returns without an error. It makes no request if they are stored
// already.
func (s *Objects) Save(ctx context.Context, records []apis.InventoryRecord) (bool, error) {
	if !s.known {
		return false, errNotLoaded
	}
	if err := s.mend(ctx); err != nil {
		return false, err
	}
	if len(s.layout.records) == len(records) && s.inOrder(records) {
		return true, nil
	}
	records = compactAll(records)
	if err := Validate(records); err != nil {
		return false, fmt.Errorf("cannot store the inventory: %w", err)
	}
	next, changed := s.layout.changeTo(records, s.chunks(), s.options.MaxChunk)
	if err := s.write(ctx, next, changed); err != nil {
		return false, err
	}
	return true, nil
}

// inOrder tells whether records are those stored, in the same order, which is how they usually are.
func (s *Objects) inOrder(records []apis.InventoryRecord) bool {
	for i := range records {
		if record := Compact(records[i]); !same(&s.layout.records[i], &record) {
			return false
		}
	}
	return true
}
