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
// JSON: there, a list is replaced as a whole. Parsing the schemas takes a while, so it is done once per process, and only
// if something is applied.
var builtInConverters = sync.OnceValue(func() managedfields.TypeConverter {
	builtIn := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(builtIn); err != nil {
		return converters{managedfields.NewDeducedTypeConverter()}
	}
	return converters{clientgoapply.NewTypeConverter(builtIn), managedfields.NewDeducedTypeConverter()}
})

// ObjectToTyped implements [managedfields.TypeConverter].
func (c converters) ObjectToTyped(obj runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	var errs []error
	for _, converter := range c {
		value, err := converter.ObjectToTyped(obj, opts...)
		if err == nil {
			return value, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("no merge schema fits %T: %w", obj, errors.Join(errs...))
}

// TypedToObject implements [managedfields.TypeConverter].
func (c converters) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	var errs []error
	for _, converter := range c {
		obj, err := converter.TypedToObject(value)
		if err == nil {
			return obj, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("cannot make an object of a merged value: %w", errors.Join(errs...))
}
