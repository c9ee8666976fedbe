package inventory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/espalier-dev/espalier/apis"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// DefaultBuckets is the number of buckets of a new inventory. 10,000 records that are ready make 4 buckets of 180
	// KiB. If all of them have a long message that does not compress, they make 4 buckets of 620 KiB.
	DefaultBuckets = 4
	// DefaultMaxBucket is the default of [Options.MaxBucket]. The API server accepts Secrets and ConfigMaps of 1 MiB.
	DefaultMaxBucket = 1000 << 10

	maxBuckets = 1024
)

var errNotLoaded = errors.New("cannot store the inventory: " +
	"it has to be loaded first, since what is stored is not known")

// Options say where an inventory is kept.
type Options struct {
	// Client writes without a cache. Required.
	Client client.Client
	// Reader reads without a cache. Required.
	Reader client.Reader
	// Kind is KindSecret or KindConfigMap. Default: KindSecret.
	Kind string
	// Namespace is where the objects are. Required.
	Namespace string
	// Name is the name of the inventory. The names of the objects begin with it; see [ObjectName]. It must not change
	// as long as there is an inventory, nor may Kind or Namespace. Required.
	Name string
	// Labels select the objects of this inventory, and no others. Required.
	Labels map[string]string
	// CountLabel is the key of the label that says how many buckets the inventory has. Required.
	CountLabel string
	// OwnerUID is the UID of the resource that has the inventory. An inventory of another resource is not changed.
	// Required.
	OwnerUID types.UID
	// OwnerReference makes the garbage collector delete objects without the finalizer once the resource is gone.
	// Optional; it needs a resource in the same namespace, or a cluster-scoped one.
	OwnerReference *metav1.OwnerReference
	// Finalizer keeps the objects until Remove. Without it the inventory would be the first to go when the resource is
	// deleted with its dependents in the foreground, or when the namespace is. Required.
	Finalizer string
	// Buckets is how many buckets a new inventory gets, at most 1024. An existing inventory keeps its number. Default:
	// DefaultBuckets.
	Buckets int
	// MaxBucket is how large the data of one object may get, in bytes, at most 1000 KiB. A bucket beyond it loses its
	// messages. A bucket that is too large without them is an error. Default: DefaultMaxBucket.
	MaxBucket int
	// Parallel is how many buckets are written at the same time. Default: 4.
	Parallel int
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
	require("a label for the number of its buckets", o.CountLabel != "")
	require("the UID of its owner", o.OwnerUID != "")
	require("a finalizer", o.Finalizer != "")
	require("the kind Secret or ConfigMap", o.Kind == KindSecret || o.Kind == KindConfigMap)
	require("1 to 1024 buckets", o.Buckets > 0 && o.Buckets <= maxBuckets)
	require("buckets of at most 1000 KiB", o.MaxBucket > 0 && o.MaxBucket <= 1000<<10)
	return errors.Join(errs...)
}

var _ Store = (*Objects)(nil)

// Objects keeps an inventory in Secrets or ConfigMaps, its buckets. The bucket of a record is the hash of its key
// modulo the number of buckets, so a record never moves. Each bucket is complete in itself, so buckets are written in
// any order. See [NewObjects].
//
// The number of buckets is chosen when the inventory is created. Each bucket has it as a label, so it is known as soon
// as there is one bucket. The first save creates all buckets, the empty ones too, and as long as it is not through,
// buckets may be missing. A bucket that is written later says that all exist; from then on a missing bucket is an
// error. Another process cannot add a record while the inventory is removed, because there is no bucket left to create.
// Nor does it create a bucket that is missing as long as it has no record to keep.
//
// Objects lives across requests and remembers what is stored. Only the first request reads. A save writes only the
// buckets that changed, one request each. What is stored may lag behind in the digest and the generation of records of
// objects that are ready: the objects themselves show both, so that a change of the content of an object costs no
// request here.
//
// If a save is interrupted, at any moment, each record is as before or as it was to be. A record is missing only if it
// was not there before, or was to go.
//
// After an error of a write, what is stored is not known, and the caller has to start over with Load. If another
// process has written in between, the error is a conflict, and what it wrote is not overwritten.
//
// Members of a record that only a later release knows are kept for as long as the record is, also when it changes.
//
// Load refuses an inventory if a bucket is missing, damaged, of another owner, or of an unknown format; the error names
// the object. To do without such an inventory, delete all objects with the labels by hand.
type Objects struct {
	options Options

	// known reports whether the rest is what is stored.
	known bool
	// version counts how often known has become true.
	version uint64
	// records are compact, in the order of the last save.
	records []packed
	// buckets has nil for a bucket that is not stored.
	buckets []*bucket
}

// NewObjects returns the store for the inventory of one resource. It makes no request.
func NewObjects(options Options) (*Objects, error) {
	options.Kind = cmp.Or(options.Kind, KindSecret)
	options.Buckets = cmp.Or(options.Buckets, DefaultBuckets)
	options.MaxBucket = cmp.Or(options.MaxBucket, DefaultMaxBucket)
	options.Parallel = cmp.Or(max(options.Parallel, 0), 4)
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
	return unpack(s.records), nil
}

// read finds out what is stored.
func (s *Objects) read(ctx context.Context) error {
	objects, err := s.options.list(ctx)
	if err != nil {
		return err
	}
	if len(objects) == 0 {
		if err := s.options.checkNone(ctx); err != nil {
			return err
		}
	}
	buckets := make([]*bucket, s.options.Buckets)
	var records []apis.InventoryRecord
	for i, object := range objects {
		b, found, err := s.options.open(object)
		switch {
		case err != nil:
		case i == 0:
			buckets = make([]*bucket, b.count)
		case b.count != len(buckets):
			err = fmt.Errorf("it is one of %d buckets, and another is one of %d", b.count, len(buckets))
		}
		if err != nil {
			return fmt.Errorf("%s %s cannot be used: %w", s.options.Kind, client.ObjectKeyFromObject(object), err)
		}
		buckets[b.Bucket] = b
		records = append(records, found...)
	}
	missing := slices.Index(buckets, nil)
	if missing >= 0 && slices.ContainsFunc(buckets, func(b *bucket) bool { return b != nil && b.Complete }) {
		return fmt.Errorf("%s is missing", s.options.describe(missing))
	}
	slices.SortFunc(records, func(a, b apis.InventoryRecord) int { return ByKey(&a, &b) })
	s.records, s.buckets, s.known = pack(records), buckets, true
	s.version++
	return nil
}

// Save implements [Store]. The records are durable once it returns without an error. It makes no request if they are
// stored already.
func (s *Objects) Save(ctx context.Context, records []apis.InventoryRecord) (bool, error) {
	if !s.known {
		return false, errNotLoaded
	}
	// Without records, it may be that another process removes the buckets.
	incomplete := len(records) > 0 && slices.Contains(s.buckets, nil) && slices.ContainsFunc(s.buckets, isStored)
	if !incomplete && equalPacked(s.records, records) {
		return true, nil
	}
	records = compactAll(records)
	if err := Validate(records); err != nil {
		return false, fmt.Errorf("cannot store the inventory: %w", err)
	}
	before := split(unpack(s.records), len(s.buckets))
	var changed []*bucket
	for number, of := range split(records, len(s.buckets)) {
		if len(records) == 0 && s.buckets[number] == nil {
			continue
		}
		b, err := s.change(number, before[number], of)
		if err != nil {
			return false, err
		}
		if b != nil {
			changed = append(changed, b)
		}
	}
	s.known = false
	if err := s.each(changed, func(b *bucket) error { return s.put(ctx, b) }); err != nil {
		return false, err
	}
	for _, b := range changed {
		b.content = nil
		s.buckets[b.Bucket] = b
	}
	s.records, s.known = pack(records), true
	s.version++
	return true, nil
}

// change returns a bucket as it is to be written, and nil if it need not be written. It drops the messages of records
// that are too large with them. What is stored lags behind before at most as mayLag allows.
func (s *Objects) change(number int, before, records []*apis.InventoryRecord) (*bucket, error) {
	known := s.buckets[number]
	unchanged := func() bool { return known != nil && slices.EqualFunc(before, records, mayLag) }
	if unchanged() {
		return nil, nil
	}
	b := &bucket{header: header{
		Owner: s.options.OwnerUID, Bucket: number, Complete: !slices.Contains(s.buckets, nil),
	}}
	if known != nil {
		b.meta, b.unknown = known.meta, known.unknown.of(records)
	}
	var err error
	b.content, err = encode(b.header, records, b.unknown)
	if err == nil && len(b.content) > s.options.MaxBucket {
		for _, record := range records {
			record.Message = ""
		}
		if unchanged() {
			return nil, nil
		}
		b.content, err = encode(b.header, records, b.unknown)
	}
	if err == nil && len(b.content) > s.options.MaxBucket {
		err = fmt.Errorf("its %d records make %d KiB, and at most %d KiB fit",
			len(records), len(b.content)>>10, s.options.MaxBucket>>10)
	}
	return b, s.options.cannot("store", number, err)
}

// Remove implements [Store]. It needs two requests for each bucket.
func (s *Objects) Remove(ctx context.Context) error {
	// What is left after an error has to be read again.
	defer func() { s.known = false }()
	if _, err := s.Load(ctx); err != nil {
		return err
	}
	if n := len(s.records); n > 0 {
		return stillThere(n)
	}
	stored := slices.DeleteFunc(slices.Clone(s.buckets), func(b *bucket) bool { return !isStored(b) })
	// No bucket may say that all exist once the first of them is gone.
	if err := s.each(stored, func(b *bucket) error { return s.release(ctx, b) }); err != nil {
		return err
	}
	return s.each(stored, func(b *bucket) error { return s.drop(ctx, b) })
}

// each calls do for all buckets, some at the same time, and returns the errors in the order of buckets. An error does
// not keep the others from being tried.
func (s *Objects) each(buckets []*bucket, do func(b *bucket) error) error {
	errs := make([]error, len(buckets))
	workqueue.ParallelizeUntil(context.Background(), s.options.Parallel, len(buckets), func(i int) {
		errs[i] = do(buckets[i])
	})
	return errors.Join(errs...)
}

// Version implements [Store]. It counts how often the store has read and written.
func (s *Objects) Version() uint64 {
	if !s.known {
		return 0
	}
	return s.version
}
