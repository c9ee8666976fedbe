// Package objectname names objects in texts of errors.
package objectname

import (
	"cmp"
	"reflect"

	"github.com/espalier-dev/espalier/internal/gotype"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Of returns the kind of an object and, if they are known and not generated, its namespace and name, as in "Deployment
// shop/web". The kind of a Go type is its name. The text has nothing that changes from run to run.
func Of(object client.Object) string {
	if gotype.IsNil(object) {
		return "nil"
	}
	kind := object.GetObjectKind().GroupVersionKind().Kind
	return WithKind(cmp.Or(kind, gotype.Name(reflect.TypeOf(object))), object)
}

// WithKind is [Of] for an object whose kind is known.
func WithKind(kind string, object client.Object) string {
	name := object.GetName()
	if prefix := object.GetGenerateName(); prefix != "" {
		name = prefix + "*"
	}
	return Text(kind, object.GetNamespace(), name)
}

// Text is [Of] for the parts of a name.
func Text(kind, namespace, name string) string {
	switch {
	case name == "":
		return kind
	case namespace == "":
		return kind + " " + name
	default:
		return kind + " " + namespace + "/" + name
	}
}
