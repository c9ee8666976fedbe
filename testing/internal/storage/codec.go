package storage

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/value"
)

// versioner reads and sets the resource versions of objects.
var versioner storage.Versioner = storage.APIObjectVersioner{}

// codec makes values of objects, and objects of values. A value is an encoded object, transformed if the resource has
// a transformer. It holds no resource version: that is the revision of its entry.
//
// To decode an object takes much longer than to copy one, so that entries keep what was decoded of them, unless there
// is a transformer, which may answer otherwise the next time.
type codec struct {
	// newFunc returns an empty object of the resource.
	newFunc     func() runtime.Object
	objects     runtime.Codec
	transformer value.Transformer
}

// encode returns an object in the form to compare with stored ones. It clears the resource version of the object.
func (c *codec) encode(obj runtime.Object) ([]byte, error) {
	if err := versioner.PrepareObjectForStorage(obj); err != nil {
		return nil, fmt.Errorf("cannot clear the resource version of %T: %w", obj, err)
	}
	return runtime.Encode(c.objects, obj)
}

// seal transforms what encode returned into a value.
func (c *codec) seal(ctx context.Context, key string, encoded []byte) ([]byte, error) {
	if c.transformer == nil {
		return encoded, nil
	}
	sealed, err := c.transformer.TransformToStorage(ctx, encoded, value.DefaultContext(key))
	if err != nil {
		return nil, storage.NewInternalError(err)
	}
	return sealed, nil
}

// open undoes seal. Stale says that the value should be written again even if the object does not change.
func (c *codec) open(ctx context.Context, e *Entry) (encoded []byte, stale bool, err error) {
	if c.transformer == nil {
		return e.Value, false, nil
	}
	encoded, stale, err = c.transformer.TransformFromStorage(ctx, e.Value, value.DefaultContext(e.Key))
	if err != nil {
		return nil, false, storage.NewInternalError(fmt.Errorf("unable to transform key %q: %w", e.Key, err))
	}
	return encoded, stale, nil
}

// decode fills into with what encode returned and sets its resource version.
func (c *codec) decode(encoded []byte, revision int64, into runtime.Object) error {
	if _, _, err := c.objects.Decode(encoded, nil, into); err != nil {
		return err
	}
	return versioner.UpdateObject(into, uint64(revision))
}

// object opens and decodes an entry into into.
func (c *codec) object(ctx context.Context, e *Entry, into runtime.Object) error {
	as := into.GetObjectKind().GroupVersionKind()
	if d := e.read.Load(); d.is(c, as) && reflect.TypeOf(d.object) == reflect.TypeOf(into) {
		reflect.ValueOf(into).Elem().Set(reflect.ValueOf(d.object.DeepCopyObject()).Elem())
		return nil
	}
	encoded, _, err := c.open(ctx, e)
	if err != nil {
		return err
	}
	if err := c.show(e, encoded, into); err != nil {
		return err
	}
	if c.transformer == nil {
		e.read.Store(&decoded{by: c, as: as, object: into.DeepCopyObject()})
	}
	return nil
}

// show decodes an entry for a reader, and sets its resource version.
func (c *codec) show(e *Entry, encoded []byte, into runtime.Object) error {
	if e.Show == nil {
		return c.decode(encoded, e.Revision, into)
	}
	if _, ok := into.(runtime.Unstructured); ok {
		into.GetObjectKind().SetGroupVersionKind(c.newFunc().GetObjectKind().GroupVersionKind())
	}
	if err := e.Show(encoded, into); err != nil {
		return err
	}
	return versioner.UpdateObject(into, uint64(e.Revision))
}

// event opens and decodes an entry into an object of the type and the version that it has.
func (c *codec) event(ctx context.Context, e *Entry) (runtime.Object, error) {
	if d := e.watched.Load(); d.is(c, schema.GroupVersionKind{}) {
		return d.object.DeepCopyObject(), nil
	}
	encoded, _, err := c.open(ctx, e)
	if err != nil {
		return nil, err
	}
	var object runtime.Object
	if e.Show == nil {
		object, err = runtime.Decode(c.objects, encoded)
	} else {
		object = c.newFunc()
		err = e.Show(encoded, object)
	}
	if err == nil && c.transformer == nil {
		e.watched.Store(&decoded{by: c, object: object.DeepCopyObject()})
	}
	return object, err
}
