package memserver

import (
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	clientgoapply "k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// converters gives each object the merge schema of the first converter that knows its type.
type converters []managedfields.TypeConverter

// builtInConverters know the built-in types by their published schemas and deduce a schema for all others from their
// JSON: there, a list is replaced as a whole. Parsing the schemas takes a while, so it is done once per process, and
// only if something is applied.
var builtInConverters = sync.OnceValue(func() managedfields.TypeConverter {
	builtIn := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(builtIn); err != nil {
		return converters{managedfields.NewDeducedTypeConverter()}
	}
	return converters{clientgoapply.NewTypeConverter(builtIn), managedfields.NewDeducedTypeConverter()}
})

// ObjectToTyped implements [managedfields.TypeConverter].
func (c converters) ObjectToTyped(obj runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	value, err := first(c, func(converter managedfields.TypeConverter) (*typed.TypedValue, error) {
		return converter.ObjectToTyped(obj, opts...)
	})
	if err != nil {
		return nil, fmt.Errorf("no merge schema fits %T: %w", obj, err)
	}
	return value, nil
}

// TypedToObject implements [managedfields.TypeConverter].
func (c converters) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	return first(c, func(converter managedfields.TypeConverter) (runtime.Object, error) {
		return converter.TypedToObject(value)
	})
}

// first returns the result of the first converter that returns no error, or all errors.
func first[T any](c converters, convert func(managedfields.TypeConverter) (T, error)) (result T, err error) {
	var errs []error
	for _, converter := range c {
		if result, err = convert(converter); err == nil {
			return result, nil
		}
		errs = append(errs, err)
	}
	return result, errors.Join(errs...)
}
