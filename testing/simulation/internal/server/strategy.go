package server

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/espalier-dev/espalier/testing/internal/registry"
)

// strategy makes of the rules of a built-in kind what the library asks for.
type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
	kind        kind
	rules       registry.Strategy
	subresource string
}

var (
	_ rest.RESTCreateStrategy              = strategy{}
	_ rest.RESTUpdateStrategy              = strategy{}
	_ rest.RESTGracefulDeleteStrategy      = strategy{}
	_ rest.GarbageCollectionDeleteStrategy = strategy{}
	_ rest.ResetFieldsStrategy             = strategy{}
)

func newStrategy(k kind, subresource string, generator names.NameGenerator) strategy {
	return strategy{
		ObjectTyper: scheme(), NameGenerator: generator,
		kind: k, rules: k.versions[0].Strategy, subresource: subresource,
	}
}

// NamespaceScoped implements [rest.RESTCreateStrategy].
func (s strategy) NamespaceScoped() bool { return s.kind.Scope == registry.Namespaced }

// GetResetFields implements [rest.ResetFieldsStrategy].
func (s strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	t := s.kind.Type
	t.Versions = s.kind.versions
	return registry.ResetFields(t, s.subresource)
}

// PrepareForCreate implements [rest.RESTCreateStrategy].
func (s strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	s.rules.PrepareForCreate(obj.(client.Object))
}

// Validate implements [rest.RESTCreateStrategy].
func (s strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return s.rules.Validate(obj.(client.Object))
}

// WarningsOnCreate implements [rest.RESTCreateStrategy].
func (s strategy) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }

// Canonicalize implements [rest.RESTCreateStrategy].
func (s strategy) Canonicalize(runtime.Object) {}

// AllowCreateOnUpdate implements [rest.RESTUpdateStrategy].
func (s strategy) AllowCreateOnUpdate(context.Context) bool {
	return s.kind.AllowCreateOnUpdate && s.subresource == ""
}

// PrepareForUpdate implements [rest.RESTUpdateStrategy].
func (s strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	s.rules.PrepareForUpdate(obj.(client.Object), old.(client.Object), s.subresource)
}

// ValidateUpdate implements [rest.RESTUpdateStrategy].
func (s strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return s.rules.ValidateUpdate(obj.(client.Object), old.(client.Object), s.subresource)
}

// WarningsOnUpdate implements [rest.RESTUpdateStrategy].
func (s strategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// AllowUnconditionalUpdate implements [rest.RESTUpdateStrategy].
func (s strategy) AllowUnconditionalUpdate(context.Context) bool {
	return s.kind.AllowUnconditionalUpdate
}

// DefaultGarbageCollectionPolicy implements [rest.GarbageCollectionDeleteStrategy].
func (s strategy) DefaultGarbageCollectionPolicy(context.Context) rest.GarbageCollectionPolicy {
	if s.kind.OrphansDependents() {
		return rest.OrphanDependents
	}
	return rest.DeleteDependents
}

// CheckGracefulDelete implements [rest.RESTGracefulDeleteStrategy].
func (s strategy) CheckGracefulDelete(
	_ context.Context, obj runtime.Object, options *metav1.DeleteOptions,
) bool {
	pod, ok := obj.(*corev1.Pod)
	if !ok || options == nil {
		return false
	}
	period := registry.GracePeriod(pod, options.GracePeriodSeconds)
	options.GracePeriodSeconds = &period
	return true
}
