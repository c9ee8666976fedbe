package store

import (
	"fmt"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/fieldmanager"
)

// record is one stored object. It never changes.
type record struct {
	gvk             schema.GroupVersionKind
	namespace, name string
	// object has the form in which its kind is stored, with its kind and without managed fields.
	object client.Object
	// outdated is what is stored if it is not what is read, because the definition has changed since; else nil.
	outdated client.Object
	// fields are the managed fields, which are computed when they are wanted. ShowFields says that answers have them.
	fields     *fieldmanager.Fields
	showFields bool

	mu    sync.Mutex
	forms map[form]client.Object
}

// form is a Go type and a version in which an object is asked for.
type form struct {
	goType  reflect.Type
	version schema.GroupVersion
}

var (
	unstructuredType = reflect.TypeFor[*unstructured.Unstructured]()
	partialType      = reflect.TypeFor[*metav1.PartialObjectMetadata]()
)

// newRecord takes over the object.
func newRecord(gvk schema.GroupVersionKind, obj client.Object) *record {
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	return &record{gvk: gvk, namespace: obj.GetNamespace(), name: obj.GetName(), object: obj}
}

func (r *record) key() Key { return newKey(r.gvk.GroupKind(), r.namespace, r.name) }

// as returns the object in a form. It must not be changed.
func (r *record) as(f form) (client.Object, error) {
	if f.goType == reflect.TypeOf(r.object) && f.version == r.gvk.GroupVersion() {
		return r.object, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if obj, ok := r.forms[f]; ok {
		return obj, nil
	}
	obj, err := convert(r.object, f)
	if err != nil {
		return nil, err
	}
	if r.forms == nil {
		r.forms = map[form]client.Object{}
	}
	r.forms[f] = obj
	return obj, nil
}

// content returns the JSON of the object in a version. It must not be changed.
func (r *record) content(version schema.GroupVersion) (map[string]any, error) {
	obj, err := r.as(form{unstructuredType, version})
	if err != nil {
		return nil, err
	}
	return obj.(*unstructured.Unstructured).Object, nil
}

// copyTo makes obj a copy of the object.
func (r *record) copyTo(obj client.Object, version schema.GroupVersion) error {
	shown, err := r.as(form{reflect.TypeOf(obj), version})
	if err != nil {
		return err
	}
	if err := assign(obj, shown.DeepCopyObject()); err != nil {
		return err
	}
	if r.showFields {
		obj.SetManagedFields(r.managedFields())
	}
	return nil
}

// managedFields returns a copy of the managed fields.
func (r *record) managedFields() []metav1.ManagedFieldsEntry {
	entries := slices.Clone(r.fields.Entries())
	for i := range entries {
		entries[i] = *entries[i].DeepCopy()
	}
	return entries
}

// assign gives the object behind one pointer the value of that behind another. A Go type that embeds an object may
// have no copies but those of the embedded object, which is an error.
func assign(target, value runtime.Object) error {
	if reflect.TypeOf(target) != reflect.TypeOf(value) {
		return errCopy(reflect.TypeOf(target), value)
	}
	reflect.ValueOf(target).Elem().Set(reflect.ValueOf(value).Elem())
	return nil
}

func errCopy(goType reflect.Type, value runtime.Object) error {
	return fmt.Errorf("the copy of a %s is a %T: it needs a method DeepCopyObject of its own", goType, value)
}

// convert returns an object in another form. It does not change the object, but may share parts with it.
func convert(obj client.Object, f form) (client.Object, error) {
	kind := obj.GetObjectKind().GroupVersionKind().Kind
	gvk := f.version.WithKind(kind)
	if f.goType == partialType {
		return partial(obj, gvk), nil
	}
	content, err := contentOf(obj)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	if f.goType == unstructuredType {
		return u, nil
	}
	typed, ok := reflect.New(f.goType.Elem()).Interface().(client.Object)
	if !ok {
		return nil, fmt.Errorf("%s is no object", f.goType)
	}
	if err := fill(content, typed); err != nil {
		return nil, fmt.Errorf("cannot convert %s %q to %s: %w", kind, obj.GetName(), f.goType, err)
	}
	return typed, nil
}

// sameStatus reports whether two objects of the same Go type have the same status.
func sameStatus(a, b client.Object) bool {
	statusOf := func(obj client.Object) map[string]any {
		content, _ := contentOf(obj)
		status, _ := content["status"].(map[string]any)
		return status
	}
	return equality.Semantic.DeepEqual(statusOf(a), statusOf(b))
}

// partial returns the metadata of an object.
func partial(obj client.Object, gvk schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	p := &metav1.PartialObjectMetadata{}
	p.SetGroupVersionKind(gvk)
	if accessor, ok := obj.(metav1.ObjectMetaAccessor); ok {
		if m, ok := accessor.GetObjectMeta().(*metav1.ObjectMeta); ok {
			p.ObjectMeta = *m
			return p
		}
	}
	p.ObjectMeta = metav1.ObjectMeta{
		Name: obj.GetName(), GenerateName: obj.GetGenerateName(), Namespace: obj.GetNamespace(),
		UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion(), Generation: obj.GetGeneration(),
		CreationTimestamp: obj.GetCreationTimestamp(), DeletionTimestamp: obj.GetDeletionTimestamp(),
		DeletionGracePeriodSeconds: obj.GetDeletionGracePeriodSeconds(),
		Labels:                     obj.GetLabels(), Annotations: obj.GetAnnotations(),
		OwnerReferences: obj.GetOwnerReferences(), Finalizers: obj.GetFinalizers(),
	}
	return p
}
