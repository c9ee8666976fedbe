package server

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	storeerrors "k8s.io/apiserver/pkg/storage/errors"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/utils/ptr"
)

// namespaceREST serves namespaces. A delete lets one terminate: what is in it is deleted by whoever collects garbage,
// who removes the finalizer of the specification by the subresource finalize. See "Namespaces Walkthrough" and the
// Kubernetes API reference, Namespace v1 core.
type namespaceREST struct {
	namespaceStore
	store *genericregistry.Store
}

// ShortNames implements [rest.ShortNamesProvider].
func (namespaceREST) ShortNames() []string { return []string{"ns"} }

// namespaceStore is what is as for other kinds. A collection of namespaces is not deleted.
type namespaceStore interface {
	rest.Lister
	rest.Watcher
	rest.Getter
	rest.CreaterUpdater
	rest.Scoper
	rest.SingularNameProvider
	rest.ResetFieldsStrategy
	rest.StorageVersionProvider
	Destroy()
}

var (
	_ rest.GracefulDeleter    = namespaceREST{}
	_ rest.Patcher            = namespaceREST{}
	_ rest.ShortNamesProvider = namespaceREST{}
)

func newNamespaces(store *genericregistry.Store) resources {
	// A namespace is there until it has no finalizers, neither in its metadata nor in its specification.
	store.ShouldDeleteDuringUpdate = func(ctx context.Context, key string, obj, old runtime.Object) bool {
		namespace, ok := obj.(*corev1.Namespace)
		return ok && len(namespace.Spec.Finalizers) == 0 && genericregistry.ShouldDeleteDuringUpdate(ctx, key, obj, old)
	}
	status := newStatus(store, "status")
	finalize := newStatus(store, "")
	finalize.store.UpdateStrategy = finalizeStrategy{finalize.store.UpdateStrategy.(strategy)}
	return resources{
		"namespaces":          namespaceREST{store, store},
		"namespaces/status":   status,
		"namespaces/finalize": finalizeREST{finalize},
	}
}

// Delete implements [rest.GracefulDeleter].
func (r namespaceREST) Delete(
	ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions,
) (runtime.Object, bool, error) {
	found, err := r.store.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, false, err
	}
	// A namespace that terminates goes with its last finalizer.
	if found.(*corev1.Namespace).DeletionTimestamp != nil {
		return found, false, nil
	}
	terminating, err := r.terminate(ctx, name, validate, options)
	return terminating, false, err
}

func (r namespaceREST) terminate(
	ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions,
) (runtime.Object, error) {
	key, err := r.store.KeyFunc(ctx, name)
	if err != nil {
		return nil, err
	}
	after := r.store.NewFunc()
	err = r.store.Storage.GuaranteedUpdate(ctx, key, after, false, nil,
		storage.SimpleUpdate(func(live runtime.Object) (runtime.Object, error) {
			if err := validate(ctx, live); err != nil {
				return nil, err
			}
			// It checks the preconditions.
			if _, _, err := rest.BeforeDelete(r.store.DeleteStrategy, ctx, live, options); err != nil {
				return nil, err
			}
			namespace := live.(*corev1.Namespace)
			if namespace.DeletionTimestamp == nil {
				now := metav1.Now()
				namespace.DeletionTimestamp = &now
			}
			namespace.Status.Phase = corev1.NamespaceTerminating
			namespace.Finalizers = finalizersAfterDelete(namespace.Finalizers, options)
			return namespace, nil
		}), dryrun.IsDryRun(options.DryRun), nil)
	if err != nil {
		return nil, storeerrors.InterpretUpdateError(err, r.store.DefaultQualifiedResource, name)
	}
	return after, nil
}

// finalizersAfterDelete replaces the finalizers of the garbage collector by the one that a delete asks for. They stay
// if it asks for nothing.
func finalizersAfterDelete(finalizers []string, options *metav1.DeleteOptions) []string {
	policy := options.PropagationPolicy
	//lint:ignore SA1019 clients may still send it
	if orphan := options.OrphanDependents; policy == nil && orphan != nil {
		policy = ptr.To(metav1.DeletePropagationBackground)
		if *orphan {
			policy = ptr.To(metav1.DeletePropagationOrphan)
		}
	}
	if policy == nil {
		return finalizers
	}
	after := slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool {
		return f == metav1.FinalizerDeleteDependents || f == metav1.FinalizerOrphanDependents
	})
	switch *policy {
	case metav1.DeletePropagationForeground:
		return append(after, metav1.FinalizerDeleteDependents)
	case metav1.DeletePropagationOrphan:
		return append(after, metav1.FinalizerOrphanDependents)
	}
	return after
}

// finalizeREST serves the subresource finalize, which can be updated and nothing else.
type finalizeREST struct{ updatedAlone }

type updatedAlone interface {
	rest.Storage
	rest.Updater
	rest.ResetFieldsStrategy
}

// finalizeStrategy updates the finalizers of the specification alone.
type finalizeStrategy struct{ strategy }

// PrepareForUpdate implements [rest.RESTUpdateStrategy].
func (finalizeStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	next, live := obj.(*corev1.Namespace), old.(*corev1.Namespace)
	finalizers, version, managed := next.Spec.Finalizers, next.ResourceVersion, next.ManagedFields
	live.DeepCopyInto(next)
	next.Spec.Finalizers, next.ResourceVersion, next.ManagedFields = finalizers, version, managed
}

// ValidateUpdate implements [rest.RESTUpdateStrategy].
func (finalizeStrategy) ValidateUpdate(context.Context, runtime.Object, runtime.Object) field.ErrorList {
	return nil
}

// AllowUnconditionalUpdate implements [rest.RESTUpdateStrategy].
func (finalizeStrategy) AllowUnconditionalUpdate(context.Context) bool { return true }
