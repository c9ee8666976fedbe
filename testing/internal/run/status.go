package run

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/testing/internal/objects"
)

// TypesWithStatus returns an object of each type among objs that has a status, besides the built-in types. Objects that
// cannot be given are left out.
func TypesWithStatus(objs []client.Object, scheme *runtime.Scheme) []client.Object {
	var types []client.Object
	known := sets.New[schema.GroupVersionKind]()
	for _, obj := range objs {
		if gotype.IsNil(obj) || scheme == nil {
			continue
		}
		obj = objects.Copy(obj)
		if !objects.HasStatus(obj) {
			continue
		}
		stored, err := Stored(obj, scheme)
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
