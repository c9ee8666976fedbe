package inventory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/plan"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// The kinds of objects that can be buckets.
const (
	KindSecret    = "Secret"
	KindConfigMap = "ConfigMap"
)

// dataKey is the key of the content of a bucket in the data of its object.
const dataKey = "inventory"

var errWritten = errors.New("another process has written it")

// bucket is one that is stored.
type bucket struct {
	header
	// count is the number of all buckets.
	count int
	// meta has what is needed to write the object again without a loss.
	meta metav1.ObjectMeta
	// unknown is what has to be written again, too.
	unknown unknown
	// content is what is to be written.
	content []byte
}

func isStored(b *bucket) bool { return b != nil }

// bucketOf returns the number of the bucket of a record. It must not change: records would be looked for elsewhere.
func bucketOf(record *apis.InventoryRecord, count int) int {
	hash := fnv.New64a()
	for _, part := range []string{record.Group, record.Kind, record.Namespace, record.Name} {
		_, _ = hash.Write(append([]byte(part), 0))
	}
	sum := hash.Sum64()
	// The low bits of this hash depend on nothing but the low bits of the text.
	return int((sum ^ sum>>32) % uint64(count))
}

// split returns the records of each bucket, in the order of their keys.
func split(records []apis.InventoryRecord, count int) [][]*apis.InventoryRecord {
	buckets := make([][]*apis.InventoryRecord, count)
	for i := range records {
		number := bucketOf(&records[i], count)
		buckets[number] = append(buckets[number], &records[i])
	}
	for _, bucket := range buckets {
		slices.SortFunc(bucket, ByKey)
	}
	return buckets
}

// object returns a bucket as an object.
func (o *Options) object(meta metav1.ObjectMeta, content []byte) client.Object {
	if o.Kind == KindConfigMap {
		return &corev1.ConfigMap{ObjectMeta: meta, BinaryData: map[string][]byte{dataKey: content}}
	}
	return &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{dataKey: content}}
}

// contentOf returns the content of a bucket.
func contentOf(object client.Object) []byte {
	switch object := object.(type) {
	case *corev1.ConfigMap:
		return object.BinaryData[dataKey]
	case *corev1.Secret:
		return object.Data[dataKey]
	}
	return nil
}

// metaOf returns what has to be remembered of an object to write it again without a loss.
func metaOf(object client.Object) metav1.ObjectMeta {
	known := *object.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta)
	// An update without managed fields leaves them as they are.
	known.ManagedFields = nil
	return known
}

// list returns all objects that are selected by the labels.
func (o *Options) list(ctx context.Context) ([]client.Object, error) {
	var list client.ObjectList = &corev1.SecretList{}
	if o.Kind == KindConfigMap {
		list = &corev1.ConfigMapList{}
	}
	if err := o.Reader.List(ctx, list, client.InNamespace(o.Namespace), client.MatchingLabels(o.Labels)); err != nil {
		return nil, err
	}
	var objects []client.Object
	err := meta.EachListItem(list, func(object runtime.Object) error {
		objects = append(objects, object.(client.Object))
		return nil
	})
	return objects, err
}

// checkNone refuses an inventory that exists and is not found by its labels. It costs a new component one request. An
// old component would lose all its records without it.
func (o *Options) checkNone(ctx context.Context) error {
	object, err := o.get(ctx, 0)
	if object == nil || err != nil {
		return err
	}
	// It was created after the list.
	return apierrors.NewConflict(o.resource(), object.GetName(), errWritten)
}

// get returns the object of a bucket, and nil if there is none. An object without the labels is an error.
func (o *Options) get(ctx context.Context, number int) (client.Object, error) {
	object := o.object(metav1.ObjectMeta{}, nil)
	err := o.Reader.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.bucketName(number)}, object)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if !labels.SelectorFromSet(o.Labels).Matches(labels.Set(object.GetLabels())) {
		return nil, fmt.Errorf("%s has lost the labels by which it is found", o.describe(number))
	}
	return object, nil
}

// open reads the bucket that an object is.
func (o *Options) open(object client.Object) (*bucket, []apis.InventoryRecord, error) {
	number, ok := o.bucketNumber(object.GetName())
	if !ok {
		return nil, nil, errors.New("it has the labels of the inventory, and not the name of a bucket")
	}
	label := object.GetLabels()[o.CountLabel]
	count, err := strconv.Atoi(label)
	if err != nil || count <= number || count > maxBuckets {
		return nil, nil, fmt.Errorf("its label %s is %q, which is not the number of buckets", o.CountLabel, label)
	}
	head, records, others, err := decode(contentOf(object))
	if err != nil {
		return nil, nil, err
	}
	if head.Owner != o.OwnerUID {
		return nil, nil, errors.New("it belongs to the inventory of another resource")
	}
	if head.Bucket != number {
		return nil, nil, fmt.Errorf("it has the content of %s", o.bucketName(head.Bucket))
	}
	if err := Validate(records); err != nil {
		return nil, nil, err
	}
	for i := range records {
		if of := bucketOf(&records[i], count); of != number {
			return nil, nil, fmt.Errorf("its record of %s belongs to %s", plan.KeyOf(records[i]), o.bucketName(of))
		}
	}
	return &bucket{header: head, count: count, meta: metaOf(object), unknown: others}, records, nil
}

// complete adds to the metadata of a bucket what it needs.
func (s *Objects) complete(meta metav1.ObjectMeta, number int) metav1.ObjectMeta {
	o := &s.options
	meta = *meta.DeepCopy()
	meta.Namespace, meta.Name = o.Namespace, o.bucketName(number)
	if meta.Labels == nil {
		meta.Labels = map[string]string{}
	}
	maps.Copy(meta.Labels, o.Labels)
	meta.Labels[o.CountLabel] = strconv.Itoa(len(s.buckets))
	object := &metav1.PartialObjectMetadata{ObjectMeta: meta}
	if meta.DeletionTimestamp == nil {
		// The API server refuses new finalizers on what is being deleted.
		controllerutil.AddFinalizer(object, o.Finalizer)
	}
	isOwner := func(r metav1.OwnerReference) bool { return r.UID == o.OwnerReference.UID }
	if o.OwnerReference != nil && !slices.ContainsFunc(object.OwnerReferences, isOwner) {
		object.OwnerReferences = append(object.OwnerReferences, *o.OwnerReference)
	}
	return object.ObjectMeta
}

// put writes one bucket: over the version that is known, or as a new object. If another process wrote in between, the
// error is a conflict.
func (s *Objects) put(ctx context.Context, b *bucket) error {
	object := s.options.object(s.complete(b.meta, b.Bucket), b.content)
	var err error
	if b.meta.ResourceVersion != "" {
		err = s.options.Client.Update(ctx, object)
	} else {
		err = s.options.Client.Create(ctx, object)
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		object, err = s.options.confirm(ctx, b)
	}
	if err != nil {
		return s.options.cannot("store", b.Bucket, err)
	}
	b.meta = metaOf(object)
	return nil
}

// confirm checks whether a write that was refused was ours all the same: the transport may send a request again whose
// answer got lost.
func (o *Options) confirm(ctx context.Context, b *bucket) (client.Object, error) {
	object, err := o.get(ctx, b.Bucket)
	if err == nil && (object == nil || !bytes.Equal(contentOf(object), b.content)) {
		err = apierrors.NewConflict(o.resource(), o.bucketName(b.Bucket), errWritten)
	}
	return object, err
}

// release prepares an empty bucket for its deletion: it does not say that all buckets exist, and it has no finalizer
// unless it is being deleted already.
func (s *Objects) release(ctx context.Context, b *bucket) error {
	waits := b.meta.DeletionTimestamp == nil && slices.Contains(b.meta.Finalizers, s.options.Finalizer)
	if !b.Complete && !waits {
		return nil
	}
	return s.writeEmpty(ctx, b, waits)
}

// drop deletes a bucket that was released, if it is still what is known of it.
func (s *Objects) drop(ctx context.Context, b *bucket) error {
	if b.meta.DeletionTimestamp != nil {
		// It is deleted already, and waits only for this.
		return s.writeEmpty(ctx, b, true)
	}
	err := s.options.Client.Delete(ctx, s.options.object(b.meta, nil),
		client.Preconditions{UID: &b.meta.UID, ResourceVersion: &b.meta.ResourceVersion})
	return s.options.cannot("remove", b.Bucket, client.IgnoreNotFound(err))
}

// writeEmpty writes a bucket without records.
func (s *Objects) writeEmpty(ctx context.Context, b *bucket, withoutFinalizer bool) error {
	b.Complete = false
	b.unknown = b.unknown.of(nil)
	content, err := encode(b.header, nil, b.unknown)
	if err != nil {
		return s.options.cannot("remove", b.Bucket, err)
	}
	object := s.options.object(s.complete(b.meta, b.Bucket), content)
	if withoutFinalizer {
		controllerutil.RemoveFinalizer(object, s.options.Finalizer)
	}
	err = s.options.Client.Update(ctx, object)
	b.meta = metaOf(object)
	return s.options.cannot("remove", b.Bucket, client.IgnoreNotFound(err))
}

// cannot says what cannot be done with a bucket.
func (o *Options) cannot(do string, number int, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("cannot %s %s of the inventory: %w", do, o.describe(number), err)
}

// describe names the object of a bucket.
func (o *Options) describe(number int) string {
	return o.Kind + " " + o.Namespace + "/" + o.bucketName(number)
}

func (o *Options) resource() schema.GroupResource {
	if o.Kind == KindConfigMap {
		return corev1.Resource("configmaps")
	}
	return corev1.Resource("secrets")
}
