// Package objectname names objects in texts of errors.
package objectname

import (
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Of returns the kind of an object and, if they are known and not generated, its namespace and name, as in "Deployment
// shop/web". The kind of a Go type is its name. The text has nothing that changes from run to run.
func Of(object client.Object) string {
	if IsNil(object) {
		return "nil"
	}
	kind := object.GetObjectKind().GroupVersionKind().Kind
	if kind == "" {
		kind = reflect.Indirect(reflect.ValueOf(object)).Type().Name()
	}
	name := object.GetName()
	if prefix := object.GetGenerateName(); prefix != "" {
		name = prefix + "*"
	}
	switch namespace := object.GetNamespace(); {
	case name == "":
		return kind
	case namespace == "":
		return kind + " " + name
	default:
		return kind + " " + namespace + "/" + name
	}
}

// IsNil reports whether there is no object: nil, or a nil pointer.
func IsNil(object any) bool {
	if object == nil {
		return true
	}
	v := reflect.ValueOf(object)
	return v.Kind() == reflect.Pointer && v.IsNil()
}
