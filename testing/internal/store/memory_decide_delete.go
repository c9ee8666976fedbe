package store

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/registry"
)

// decideDelete says what a delete makes of an object. Next is the object after it.
func decideDelete(
	r *resource, live client.Object, options *metav1.DeleteOptions, now metav1.Time,
) (next client.Object, v verdict, err error) {
	if err := checkPreconditions(r, live, options.Preconditions); err != nil {
		return nil, unchanged, err
	}
	next = live.DeepCopyObject().(client.Object)
	switch r.gvk.GroupKind() {
	case namespaceKind:
		return deleteNamespace(r, next, options, now)
	case definitionKind:
		if live.GetDeletionTimestamp() == nil {
			terminateDefinition(next, now)
			return next, stored, nil
		}
	}
	grace, pending := gracePeriod(live, options)
	if pending {
		return live, unchanged, nil
	}
	next.SetFinalizers(r.finalizersAfterDelete(live.GetFinalizers(), options))
	if grace == 0 && len(next.GetFinalizers()) == 0 {
		return next, removed, nil
	}
	markAsDeleting(next, grace, now)
	if equality.Semantic.DeepEqual(live, next) {
		return next, unchanged, nil
	}
	return next, stored, nil
}

func checkPreconditions(r *resource, live client.Object, preconditions *metav1.Preconditions) error {
	if preconditions == nil {
		return nil
	}
	if uid := preconditions.UID; uid != nil && *uid != live.GetUID() {
		return conflictOfKind(r, live.GetName(), "the UID in the precondition (%s) does not match the UID in record "+
			"(%s). The object might have been deleted and then recreated", *uid, live.GetUID())
	}
	if version := preconditions.ResourceVersion; version != nil && *version != live.GetResourceVersion() {
		return conflictOfKind(r, live.GetName(), "the ResourceVersion in the precondition (%s) does not match the "+
			"ResourceVersion in record (%s). The object might have been modified", *version, live.GetResourceVersion())
	}
	return nil
}

// conflictOfKind is the error for a precondition, which names the kind where others name the resource.
func conflictOfKind(r *resource, name, format string, args ...any) error {
	kind := schema.GroupResource{Group: r.gvk.Group, Resource: r.gvk.Kind}
	return apierrors.NewConflict(kind, name, fmt.Errorf(format, args...))
}

// markAsDeleting lets an object wait for its finalizers, or for the end of its grace period in seconds. That of an
// object that waits already began with the first delete.
func markAsDeleting(obj client.Object, grace int64, now metav1.Time) {
	begin := now.Time
	if end := obj.GetDeletionTimestamp(); end != nil {
		begin = end.Add(-seconds(ptr.Deref(obj.GetDeletionGracePeriodSeconds(), 0)))
	} else if generation := obj.GetGeneration(); generation > 0 {
		obj.SetGeneration(generation + 1)
	}
	end := metav1.NewTime(begin.Add(seconds(grace)))
	obj.SetDeletionTimestamp(&end)
	obj.SetDeletionGracePeriodSeconds(&grace)
}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

// gracePeriod returns the seconds that a delete leaves an object. Pending says that the object is already waiting for
// an end that is not later.
func gracePeriod(live client.Object, options *metav1.DeleteOptions) (period int64, pending bool) {
	if _, ok := live.(*corev1.Pod); !ok || live.GetDeletionTimestamp() == nil {
		return registry.GracePeriod(live, options.GracePeriodSeconds), false
	}
	left := live.GetDeletionGracePeriodSeconds()
	if left == nil {
		return 0, false
	}
	if period = ptr.Deref(options.GracePeriodSeconds, *left); period < 0 {
		period = 1
	}
	return period, period >= *left
}

// finalizersAfterDelete replaces the finalizers of the garbage collector by what the delete asks for. Without a policy
// they stay; an object without any gets that of the default policy of its kind.
func (r *resource) finalizersAfterDelete(finalizers []string, options *metav1.DeleteOptions) []string {
	wanted := ""
	switch r.propagationPolicy(finalizers, options) {
	case "":
		return finalizers
	case metav1.DeletePropagationForeground:
		wanted = metav1.FinalizerDeleteDependents
	case metav1.DeletePropagationOrphan:
		wanted = metav1.FinalizerOrphanDependents
	}
	after := slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool {
		return f != wanted && collectorFinalizer(f)
	})
	if wanted != "" && !slices.Contains(after, wanted) {
		after = append(after, wanted)
	}
	return after
}

// propagationPolicy is how a delete concerns dependents; empty leaves it to the finalizers of the object.
func (r *resource) propagationPolicy(finalizers []string, options *metav1.DeleteOptions) metav1.DeletionPropagation {
	switch {
	case options.PropagationPolicy != nil:
		return *options.PropagationPolicy
	//lint:ignore SA1019 clients may still send it
	case options.OrphanDependents != nil && *options.OrphanDependents:
		return metav1.DeletePropagationOrphan
	//lint:ignore SA1019 clients may still send it
	case options.OrphanDependents != nil:
		return metav1.DeletePropagationBackground
	case r.kind.OrphansDependents() && !slices.ContainsFunc(finalizers, collectorFinalizer):
		return metav1.DeletePropagationOrphan
	}
	return ""
}

// collectorFinalizer reports whether the garbage collector removes a finalizer.
func collectorFinalizer(f string) bool {
	return f == metav1.FinalizerDeleteDependents || f == metav1.FinalizerOrphanDependents
}

// deleteNamespace lets a namespace terminate. The control plane removes it when it is empty.
func deleteNamespace(
	r *resource, next client.Object, options *metav1.DeleteOptions, now metav1.Time,
) (client.Object, verdict, error) {
	if slices.Contains(immortalNamespaces, next.GetName()) {
		return nil, unchanged, apierrors.NewForbidden(r.resource, next.GetName(), errImmortal)
	}
	if next.GetDeletionTimestamp() != nil {
		return next, unchanged, nil
	}
	next.SetDeletionTimestamp(&now)
	next.SetFinalizers(r.finalizersAfterDelete(next.GetFinalizers(), options))
	if ns, ok := next.(*corev1.Namespace); ok {
		ns.Status.Phase = corev1.NamespaceTerminating
	}
	return next, stored, nil
}

// terminateDefinition lets a definition wait until its objects are gone.
func terminateDefinition(next client.Object, now metav1.Time) {
	next.SetDeletionTimestamp(&now)
	if !slices.Contains(next.GetFinalizers(), apiextensionsv1.CustomResourceCleanupFinalizer) {
		next.SetFinalizers(append(next.GetFinalizers(), apiextensionsv1.CustomResourceCleanupFinalizer))
	}
	d, ok := next.(*apiextensionsv1.CustomResourceDefinition)
	if !ok {
		return
	}
	d.Status.Conditions = append(d.Status.Conditions, apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.Terminating, Status: apiextensionsv1.ConditionTrue, LastTransitionTime: now,
		Reason:  "InstanceDeletionPending",
		Message: "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
	})
}
