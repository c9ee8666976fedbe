// Package edit changes the parts of objects that are changed most: pod templates and their containers, metadata, ports
// of Services, data of ConfigMaps and Secrets, rules and subjects of roles. The functions are plain. They are called
// where a desired object is made, or by a [Change], which has a name and a gate.
//
//	err := edit.PodTemplate(deployment, func(pods *corev1.PodTemplateSpec) error {
//		return edit.Container(pods, "web", func(web *corev1.Container) error {
//			return edit.EnsureEnv(web, corev1.EnvVar{Name: "TRACING", Value: "true"})
//		})
//	})
//
// [Apply] makes a list of changes:
//
//	deployment, err := edit.Apply(baseline,
//		edit.When(nil, "replicas", func(d *appsv1.Deployment) error { d.Spec.Replicas = spec.Replicas; return nil }),
//		edit.ForPods[*appsv1.Deployment]("tracing", gate.When(spec.Tracing), trace),
//	)
//
// The baseline is the object as the newest version has it, with all defaults. Changes follow in this order: those that
// walk back to what older versions need, gated by [gate.Version]; those for optional features; what the user overrides.
// A change sees what the ones before it have done. It depends on the resource and on what is read for it, and on
// nothing else: no clock, no random numbers.
//
// A function whose name begins with Ensure makes an item be there: it takes the place of the one with the same key, as
// a whole, or is appended if there is none. A function whose name begins with Remove makes an item be absent, and does
// nothing if it is. So a function that is called twice does no more than once. The order of other items stays. Further
// items with the key of one that is ensured are removed.
//
// An item is copied. Maps and lists of an object that are changed are copied before: another object
// may have the same ones.
//
// Something that is nil, or has no key, is an error. An error names the part that it is about, never a value of a
// Secret. After an error, the part is as it was.
package edit

import (
	"errors"
	"fmt"
)

// missing returns the error for a part that is nil.
func missing(part string) error {
	return fmt.Errorf("the %s is nil", part)
}

var (
	errNoFunction = errors.New("the function that edits is nil")
	errNoKey      = errors.New("a key is empty")
)
