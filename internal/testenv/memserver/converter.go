package memserver

import (
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoapply "k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// converters gives each object the merge schema of its built-in type, or one that is deduced from its JSON.
type converters struct {
	builtIn, deduced managedfields.TypeConverter
}

// builtInConverters know the built-in types by their published schemas and deduce a schema for all others from their
// JSON: there, a list is replaced as a whole. Parsing the schemas takes a while, so it is done once per process, and
// only if something is applied.
var builtInConverters = sync.OnceValue(func() managedfields.TypeConverter {
	builtIn := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(builtIn))
	return converters{clientgoapply.NewTypeConverter(builtIn), managedfields.NewDeducedTypeConverter()}
})

// ObjectToTyped implements [managedfields.TypeConverter].
func (c converters) ObjectToTyped(obj runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	value, err := c.builtIn.ObjectToTyped(obj, opts...)
	if err == nil {
		return value, nil
	}
	value, deducedErr := c.deduced.ObjectToTyped(obj, opts...)
	if deducedErr != nil {
		return nil, fmt.Errorf("no merge schema fits %T: %w", obj, errors.Join(err, deducedErr))
	}
	return value, nil
}

// TypedToObject implements [managedfields.TypeConverter].
func (c converters) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	if obj, err := c.builtIn.TypedToObject(value); err == nil {
		return obj, nil
	}
	return c.deduced.TypedToObject(value)
}
