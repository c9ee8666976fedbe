package memserver

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/fieldmanager"
)

// record is one stored object. The object is never changed once stored, only replaced.
type record struct {
	object client.Object
	// version counts the writes to the object's resource; a watch resumes from it.
	version int64
	// history has the writes since the managed fields were computed; the last one wrote object. It is empty if and only
	// if the managed fields of object are current.
	history []revision
	// fields are the managed fields of object if they are current.
	fields *fieldmanager.Fields
}

// table holds the objects of one resource.
type table map[types.NamespacedName]*record

// in returns the records of a namespace, or all if it is empty, by namespace and name.
func (t table) in(namespace string) []*record {
	records := make([]*record, 0, len(t))
	for key, r := range t {
		if namespace == "" || key.Namespace == namespace {
			records = append(records, r)
		}
	}
	slices.SortFunc(records, func(a, b *record) int {
		return cmp.Or(
			cmp.Compare(a.object.GetNamespace(), b.object.GetNamespace()),
			cmp.Compare(a.object.GetName(), b.object.GetName()),
		)
	})
	return records
}

// asObject returns obj as an object with metadata.
func asObject(obj runtime.Object) (client.Object, error) {
	if o, ok := obj.(client.Object); ok {
		return o, nil
	}
	return nil, fmt.Errorf("%T has no object metadata", obj)
}

// copyOf returns a deep copy. The copy of an object with metadata has metadata too.
func copyOf(obj client.Object) client.Object {
	return obj.DeepCopyObject().(client.Object)
}

// withManagedFields gives obj, which must not be stored yet, its kind and managed fields.
func withManagedFields(obj client.Object, kind schema.GroupVersionKind, fields *fieldmanager.Fields) {
	obj.GetObjectKind().SetGroupVersionKind(kind)
	obj.SetManagedFields(fields.Entries())
}
