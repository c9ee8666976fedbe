// Package edit changes desired objects. A [Change] has a name and a gate. Its function is plain Go on the object. The
// other functions find the place to change: the pod template of a workload of any kind, a container, a variable of its
// environment, a document in a ConfigMap, the Go type of an unstructured object. They may be called without a Change,
// too, where a desired object is made.
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
// A function of this package that is called twice does no more than once. It copies a map or a list before it changes
// it: another object may have the same one.
//
// Something that is nil, or has no key, is an error. An error names the part that it is about. After an error, the
// part is as it was.
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
