package edit

import (
	"errors"
	"fmt"

	"github.com/espalier-dev/espalier/feature/gate"
	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/jsonmerge"
	"github.com/espalier-dev/espalier/internal/objectname"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Change is one named change of a desired object, typed or unstructured. [Apply] makes changes in order.
type Change[T client.Object] struct {
	// Name identifies the change in errors and in previews. It is unique in a list. Required.
	Name string
	// Gate says whether the change is made. Default: on.
	Gate gate.Gate
	// Edit changes the object. It is called once, unless the gate is off. Required.
	Edit func(object T) error
}

// When returns a change that is made if the gate is on. A nil gate is on.
func When[T client.Object](gate gate.Gate, name string, edit func(object T) error) Change[T] {
	return Change[T]{Name: name, Gate: gate, Edit: edit}
}

// ForPods returns a change of the pod template of a workload, whatever its kind, typed or unstructured. See
// [PodTemplate] for the kinds; an object of another kind is an error of the change.
func ForPods[T client.Object](
	name string, gate gate.Gate, edit func(pods *corev1.PodTemplateSpec) error,
) Change[T] {
	if edit == nil {
		return When[T](gate, name, nil)
	}
	return When(gate, name, func(object T) error { return PodTemplate(object, edit) })
}

// Apply returns a copy of the baseline with the changes: each one whose gate is on is made once, in order. The baseline
// stays as it is, so it may be used again.
//
// Before anything is changed, all gates are asked. It is an error if the baseline is nil, if a change has no name, the
// name of another one, or no function, and if a gate returns an error. Errors name the object and the change. After an
// error the result is the zero value.
func Apply[T client.Object](baseline T, changes ...Change[T]) (T, error) {
	var none T
	if gotype.IsNil(baseline) {
		return none, errNoBaseline
	}
	enabled, err := enabledOf(changes)
	if err != nil {
		return none, fmt.Errorf("edit %s: %w", objectname.Of(baseline), err)
	}
	object, err := copyOf(baseline)
	if err != nil {
		return none, fmt.Errorf("edit %s: %w", objectname.Of(baseline), err)
	}
	for _, c := range enabled {
		if err := c.Edit(object); err != nil {
			return none, fmt.Errorf("edit %s: change %q: %w", objectname.Of(baseline), c.Name, err)
		}
	}
	return object, nil
}

// Enabled returns the names of the changes that Apply would make, in order. Its errors are those of Apply.
func Enabled[T client.Object](changes ...Change[T]) ([]string, error) {
	enabled, err := enabledOf(changes)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(enabled))
	for i, c := range enabled {
		names[i] = c.Name
	}
	return names, nil
}

var (
	errNoBaseline = errors.New("edit: the baseline is nil")
	errCopyType   = errors.New("the copy of the object has another type")
)

// enabledOf returns the changes to make.
func enabledOf[T client.Object](changes []Change[T]) ([]Change[T], error) {
	if err := validate(changes); err != nil {
		return nil, err
	}
	var enabled []Change[T]
	for _, c := range changes {
		on, err := gate.Enabled(c.Gate)
		if err != nil {
			return nil, fmt.Errorf("gate of change %q: %w", c.Name, err)
		}
		if on {
			enabled = append(enabled, c)
		}
	}
	return enabled, nil
}

// validate returns all that is wrong with the list.
func validate[T client.Object](changes []Change[T]) error {
	var errs []error
	first := map[string]int{}
	for i, c := range changes {
		if at, ok := first[c.Name]; ok && c.Name != "" {
			errs = append(errs, fmt.Errorf("changes %d and %d have the same name %q", at, i, c.Name))
		} else {
			first[c.Name] = i
		}
		if c.Name == "" {
			errs = append(errs, fmt.Errorf("change %d has no Name", i))
		}
		if c.Edit == nil {
			errs = append(errs, fmt.Errorf("change %d %q has no Edit", i, c.Name))
		}
	}
	return errors.Join(errs...)
}

// copyOf returns a deep copy. Unstructured content that is written in Go may have types that decoded JSON does not
// have, such as int. A deep copy panics with these.
func copyOf[T client.Object](object T) (T, error) {
	var source client.Object = object
	if u, ok := source.(*unstructured.Unstructured); ok {
		content, err := jsonmerge.Normalize(u.Object)
		if err != nil {
			var none T
			return none, fmt.Errorf("copy the object: %w", err)
		}
		source = &unstructured.Unstructured{Object: content}
	}
	copied, ok := source.DeepCopyObject().(T)
	if !ok {
		return copied, errCopyType
	}
	return copied, nil
}
