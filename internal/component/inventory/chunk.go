package inventory

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// The kinds of objects that can have chunks.
const (
	KindSecret    = "Secret"
	KindConfigMap = "ConfigMap"
)

// dataKey is under which an object has its chunk.
const dataKey = "inventory"

// object returns an object with a chunk.
func (o *Options) object(meta metav1.ObjectMeta, payload []byte) client.Object {
	if o.Kind == KindConfigMap {
		return &corev1.ConfigMap{ObjectMeta: meta, BinaryData: map[string][]byte{dataKey: payload}}
	}
	return &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{dataKey: payload}}
}

// payloadOf returns the chunk that an object has.
func payloadOf(object client.Object) []byte {
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
	var meta metav1.ObjectMeta
	switch object := object.(type) {
	case *corev1.ConfigMap:
		meta = object.ObjectMeta
	case *corev1.Secret:
		meta = object.ObjectMeta
	}
	// An update without managed fields leaves them as they are.
	meta.ManagedFields = nil
	return meta
}

// list returns all objects that are selected by the labels.
func (o *Options) list(ctx context.Context) ([]client.Object, error) {
	var objects []client.Object
	selection := []client.ListOption{client.InNamespace(o.Namespace), client.MatchingLabels(o.Labels)}
	if o.Kind == KindConfigMap {
		var list corev1.ConfigMapList
		if err := o.Reader.List(ctx, &list, selection...); err != nil {
			return nil, err
		}
		for i := range list.Items {
			objects = append(objects, &list.Items[i])
		}
		return objects, nil
	}
	var list corev1.SecretList
	if err := o.Reader.List(ctx, &list, selection...); err != nil {
		return nil, err
	}
	for i := range list.Items {
		objects = append(objects, &list.Items[i])
	}
	return objects, nil
}

// complete adds to the metadata of a chunk what it needs.
func (o *Options) complete(meta metav1.ObjectMeta, chunk int) metav1.ObjectMeta {
	meta.Namespace, meta.Name = o.Namespace, o.chunkName(chunk)
	meta.Labels = maps.Clone(meta.Labels)
	if meta.Labels == nil {
		meta.Labels = map[string]string{}
	}
	maps.Copy(meta.Labels, o.Labels)
	object := &metav1.PartialObjectMetadata{ObjectMeta: *meta.DeepCopy()}
	if meta.DeletionTimestamp == nil {
		// The API server refuses new finalizers on what is being deleted.
		controllerutil.AddFinalizer(object, o.Finalizer)
	}
	if owner := o.OwnerReference; owner != nil && !isOwnedBy(object, owner) {
		object.OwnerReferences = append(object.OwnerReferences, *owner)
	}
	return object.ObjectMeta
}

func isOwnedBy(object client.Object, owner *metav1.OwnerReference) bool {
	for _, reference := range object.GetOwnerReferences() {
		if reference.UID == owner.UID {
			return true
		}
	}
	return false
}

// put writes one chunk: over the version that is known, or as a new object. It returns the metadata of what is there then. When
// somebody else wrote in between, the error is a conflict.
func (o *Options) put(ctx context.Context, chunk int, known *metav1.ObjectMeta, payload []byte) (metav1.ObjectMeta, error) {
	var object client.Object
	var err error
	if known != nil {
		object = o.object(o.complete(*known, chunk), payload)
		err = o.Client.Update(ctx, object)
	} else {
		object = o.object(o.complete(metav1.ObjectMeta{}, chunk), payload)
		err = o.Client.Create(ctx, object)
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		object, err = o.settle(ctx, chunk, payload)
	}
	if err != nil {
		return metav1.ObjectMeta{}, fmt.Errorf("cannot store %s of the inventory: %w", o.describe(chunk), err)
	}
	return metaOf(object), nil
}

// settle looks whether a write that was refused was ours all the same: the transport may send a request again whose answer got
// lost.
func (o *Options) settle(ctx context.Context, chunk int, payload []byte) (client.Object, error) {
	object := o.object(metav1.ObjectMeta{}, nil)
	err := o.Reader.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.chunkName(chunk)}, object)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if err != nil || !bytes.Equal(payloadOf(object), payload) {
		return nil, apierrors.NewConflict(o.resource(), o.chunkName(chunk), errWritten)
	}
	return object, nil
}

// drop takes the finalizer off a chunk and deletes it, if it is still what is known of it.
func (o *Options) drop(ctx context.Context, chunk int, known metav1.ObjectMeta) error {
	object := o.object(*known.DeepCopy(), nil)
	// Its deletion may have been asked for already, and then only waits for this.
	waits := object.GetDeletionTimestamp() != nil
	if controllerutil.RemoveFinalizer(object, o.Finalizer) {
		// Not an update, which would need the records: a crash before the deletion must leave a chunk that can be read.
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"resourceVersion": known.ResourceVersion,
			"finalizers":      object.GetFinalizers(),
		}})
		if err != nil {
			return o.cannotRemove(chunk, err)
		}
		if err := o.Client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch)); err != nil {
			return o.cannotRemove(chunk, client.IgnoreNotFound(err))
		}
	}
	if waits {
		return nil
	}
	uid, version := known.UID, object.GetResourceVersion()
	err := o.Client.Delete(ctx, object, client.Preconditions{UID: &uid, ResourceVersion: &version})
	return o.cannotRemove(chunk, client.IgnoreNotFound(err))
}

func (o *Options) cannotRemove(chunk int, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("cannot remove %s of the inventory: %w", o.describe(chunk), err)
}

// describe names the object that has a chunk.
func (o *Options) describe(chunk int) string {
	return o.Kind + " " + o.Namespace + "/" + o.chunkName(chunk)
}

func (o *Options) resource() schema.GroupResource {
	if o.Kind == KindConfigMap {
		return corev1.Resource("configmaps")
	}
	return corev1.Resource("secrets")
}
