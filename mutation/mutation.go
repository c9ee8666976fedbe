// Package mutation changes desired objects by a list of named, gated mutations.
//
//	deployment, err := mutation.Apply(baseline,
//		mutation.Mutation[*appsv1.Deployment]{
//			Name:   "replicas",
//			Mutate: func(d *appsv1.Deployment) error { d.Spec.Replicas = resource.Spec.Replicas; return nil },
//		},
//		mutation.ForPods[*appsv1.Deployment]("tracing", feature.When(resource.Spec.Tracing), trace),
//	)
//
// The baseline is the object as the newest version has it, with all defaults. Mutations follow in this order: those
// that walk back to what older versions need, gated by [feature.Version]; those for optional features; what the user
// overrides. A mutation sees what the ones before it have done. It depends on the resource and on what is read for it,
// and on nothing else: no clock, no random numbers.
//
// Package edit has functions for what mutations do most.
package mutation

import (
	"errors"
	"fmt"

	"github.com/espalier-dev/espalier/edit"
	"github.com/espalier-dev/espalier/feature"
	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/jsonmerge"
	"github.com/espalier-dev/espalier/internal/objectname"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Mutation is one change of a desired object, typed or unstructured.
type Mutation[T client.Object] struct {
	// Name identifies the mutation in errors and in previews. It is unique in a list. Required.
	Name string
	// Gate says whether the mutation is run. Default: on.
	Gate feature.Gate
	// Mutate changes the object. It is called once, unless the gate is off. Required.
	Mutate func(object T) error
}

// ForPods returns a mutation of the pod template of a workload, whatever its kind, typed or unstructured. See
// [edit.PodTemplate] for the kinds; an object of another kind is an error of the mutation.
func ForPods[T client.Object](
	name string, gate feature.Gate, mutate func(pods *corev1.PodTemplateSpec) error,
) Mutation[T] {
	m := Mutation[T]{Name: name, Gate: gate}
	if mutate != nil {
		m.Mutate = func(object T) error { return edit.PodTemplate(object, mutate) }
	}
	return m
}

// Apply returns a copy of the baseline that the mutations have changed: each one whose gate is on is run once, in
// order. The baseline stays as it is, so it may be used again.
//
// Before anything runs, all gates are asked. It is an error if the baseline is nil, if a mutation has no name, the name
// of another one, or no function, and if a gate returns an error. Errors name the object and the mutation. After an
// error the result is the zero value.
func Apply[T client.Object](baseline T, mutations ...Mutation[T]) (T, error) {
	var none T
	if gotype.IsNil(baseline) {
		return none, errNoBaseline
	}
	enabled, err := enabledOf(mutations)
	if err != nil {
		return none, fmt.Errorf("mutate %s: %w", objectname.Of(baseline), err)
	}
	object, err := copyOf(baseline)
	if err != nil {
		return none, fmt.Errorf("mutate %s: %w", objectname.Of(baseline), err)
	}
	for _, m := range enabled {
		if err := m.Mutate(object); err != nil {
			return none, fmt.Errorf("mutate %s: mutation %q: %w", objectname.Of(baseline), m.Name, err)
		}
	}
	return object, nil
}

// Enabled returns the names of the mutations that Apply would run, in order. Its errors are those of Apply.
func Enabled[T client.Object](mutations ...Mutation[T]) ([]string, error) {
	enabled, err := enabledOf(mutations)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(enabled))
	for i, m := range enabled {
		names[i] = m.Name
	}
	return names, nil
}

var (
	errNoBaseline = errors.New("mutate: the baseline is nil")
	errCopyType   = errors.New("the copy of the object has another type")
)

// enabledOf returns the mutations to run.
func enabledOf[T client.Object](mutations []Mutation[T]) ([]Mutation[T], error) {
	if err := validate(mutations); err != nil {
		return nil, err
	}
	var enabled []Mutation[T]
	for _, m := range mutations {
		on, err := feature.Enabled(m.Gate)
		if err != nil {
			return nil, fmt.Errorf("gate of mutation %q: %w", m.Name, err)
		}
		if on {
			enabled = append(enabled, m)
		}
	}
	return enabled, nil
}

// validate returns all that is wrong with the list.
func validate[T client.Object](mutations []Mutation[T]) error {
	var errs []error
	first := map[string]int{}
	for i, m := range mutations {
		if at, ok := first[m.Name]; ok && m.Name != "" {
			errs = append(errs, fmt.Errorf("mutations %d and %d have the same name %q", at, i, m.Name))
		} else {
			first[m.Name] = i
		}
		if m.Name == "" {
			errs = append(errs, fmt.Errorf("mutation %d has no Name", i))
		}
		if m.Mutate == nil {
			errs = append(errs, fmt.Errorf("mutation %d %q has no Mutate", i, m.Name))
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
