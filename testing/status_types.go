package testing

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/testing/internal/objects"
)

// typesWithStatus returns an object of each type among objs that has a status, besides the built-in types. Objects that
// cannot be given are left out.
func typesWithStatus(objs []client.Object, scheme *runtime.Scheme) []client.Object {
	var types []client.Object
	known := sets.New[schema.GroupVersionKind]()
	for _, obj := range objs {
		if gotype.IsNil(obj) || scheme == nil {
			continue
		}
		obj = objects.Copy(obj)
		if !hasStatus(obj) {
			continue
		}
		stored, err := given(obj, scheme)
		if err != nil {
			continue
		}
		kind, err := apiutil.GVKForObject(stored, scheme)
		if err != nil || clientgoscheme.Scheme.Recognizes(kind) || known.Has(kind) {
			continue
		}
		known.Insert(kind)
		types = append(types, stored)
	}
	return types
}

// hasStatus reports whether an object has a status: a field of its Go type, or content of an unstructured object.
func hasStatus(obj client.Object) bool {
	if u, ok := obj.(runtime.Unstructured); ok {
		_, ok := u.UnstructuredContent()["status"]
		return ok
	}
	t := reflect.TypeOf(obj)
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return false
	}
	_, ok := t.Elem().FieldByName("Status")
	return ok
}
