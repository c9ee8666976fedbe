package server

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
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
	// others returns all Services but one. It is nil for other kinds.
	others func(ctx context.Context, but *corev1.Service) []corev1.Service
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
func (s strategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	s.claims(ctx, obj, nil, func() { s.rules.PrepareForCreate(obj.(client.Object)) })
}

// claims has what prepares a Service allocate an address and node ports that no other has.
func (s strategy) claims(ctx context.Context, obj, old runtime.Object, prepare func()) {
	service, ok := obj.(*corev1.Service)
	if !ok {
		prepare()
		return
	}
	asked, ports := service.Spec.ClusterIP, registry.NodePorts(service)
	prepare()
	others := s.others(ctx, service)
	if !keepsAddress(service, old) {
		registry.ClaimAddress(service, asked, others)
	}
	registry.ClaimNodePorts(service, ports, usedPorts(others))
}

// keepsAddress reports whether a Service has the address that it had before.
func keepsAddress(service *corev1.Service, old runtime.Object) bool {
	before, ok := old.(*corev1.Service)
	return ok && slices.Equal(before.Spec.ClusterIPs, service.Spec.ClusterIPs)
}

func usedPorts(services []corev1.Service) sets.Set[int32] {
	used := sets.New[int32]()
	for i := range services {
		used.Insert(registry.NodePorts(&services[i])...)
	}
	used.Delete(0)
	return used
}

// refusesClaims returns an error for the address of a Service, unless it had that before, and for each of its node
// ports, if another has it or none can have it.
func (s strategy) refusesClaims(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	service, ok := obj.(*corev1.Service)
	if !ok {
		return nil
	}
	others := s.others(ctx, service)
	errs := registry.ClaimNodePorts(service, registry.NodePorts(service), usedPorts(others))
	if keepsAddress(service, old) {
		return errs
	}
	return append(errs, registry.ClaimAddress(service, service.Spec.ClusterIP, others)...)
}

// Validate implements [rest.RESTCreateStrategy].
func (s strategy) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	return append(s.rules.Validate(obj.(client.Object)), s.refusesClaims(ctx, obj, nil)...)
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
func (s strategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	s.claims(ctx, obj, old, func() {
		s.rules.PrepareForUpdate(obj.(client.Object), old.(client.Object), s.subresource)
	})
}

// ValidateUpdate implements [rest.RESTUpdateStrategy].
func (s strategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	errs := s.rules.ValidateUpdate(obj.(client.Object), old.(client.Object), s.subresource)
	return append(errs, s.refusesClaims(ctx, obj, old)...)
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
