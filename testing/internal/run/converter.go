package run

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

// typeConverter returns the converter of the built-in kinds, which has their published schemas, that deduces a schema
// for all others from their JSON: there, a list is replaced as a whole. All fake clients share it: to make one takes
// longer than most rows.
var typeConverter = sync.OnceValue(func() managedfields.TypeConverter {
	builtIn := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(builtIn))
	return either{clientgoapply.NewTypeConverter(builtIn), managedfields.NewDeducedTypeConverter()}
})

// either uses the schema of the first converter, and of the second for an object that the first does not know.
type either struct {
	first, second managedfields.TypeConverter
}

// ObjectToTyped implements [managedfields.TypeConverter].
func (c either) ObjectToTyped(obj runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	value, err := c.first.ObjectToTyped(obj, opts...)
	if err == nil {
		return value, nil
	}
	value, secondErr := c.second.ObjectToTyped(obj, opts...)
	if secondErr != nil {
		return nil, fmt.Errorf("no merge schema fits %T: %w", obj, errors.Join(err, secondErr))
	}
	return value, nil
}

// TypedToObject implements [managedfields.TypeConverter].
func (c either) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	if obj, err := c.first.TypedToObject(value); err == nil {
		return obj, nil
	}
	return c.second.TypedToObject(value)
}
