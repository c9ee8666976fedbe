package store

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
		return deleteNamespace(r, next, now)
	case definitionKind:
		if live.GetDeletionTimestamp() == nil {
			terminateDefinition(next, now)
			return next, stored, nil
		}
	}
	next.SetFinalizers(finalizersAfterDelete(live.GetFinalizers(), options))
	grace, pending := gracePeriod(live, options)
	switch {
	case pending:
		return live, unchanged, nil
	case grace > 0 || len(next.GetFinalizers()) > 0:
		markAsDeleting(next, grace, now)
	default:
		return next, removed, nil
	}
	if same(live, next) {
		return next, unchanged, nil
	}
	return next, stored, nil
}

func checkPreconditions(r *resource, live client.Object, preconditions *metav1.Preconditions) error {
	if preconditions == nil {
		return nil
	}
	if uid := preconditions.UID; uid != nil && *uid != live.GetUID() {
		return conflict(r, live.GetName(), "the UID in the precondition (%s) does not match the UID in record (%s). "+
			"The object might have been deleted and then recreated", *uid, live.GetUID())
	}
	if version := preconditions.ResourceVersion; version != nil && *version != live.GetResourceVersion() {
		return conflict(r, live.GetName(), "the ResourceVersion in the precondition (%s) does not match the "+
			"ResourceVersion in record (%s). The object might have been modified", *version, live.GetResourceVersion())
	}
	return nil
}

// markAsDeleting lets an object wait for its finalizers, or for the end of its grace period in seconds.
func markAsDeleting(obj client.Object, grace int64, now metav1.Time) {
	if obj.GetDeletionTimestamp() == nil {
		if generation := obj.GetGeneration(); generation > 0 {
			obj.SetGeneration(generation + 1)
		}
		until := metav1.NewTime(now.Add(time.Duration(grace) * time.Second))
		obj.SetDeletionTimestamp(&until)
	}
	obj.SetDeletionGracePeriodSeconds(&grace)
}

// gracePeriod returns the seconds that an object has left. Only Pods on a node have any. Pending says that the object
// is already waiting for an end that is not later.
func gracePeriod(live client.Object, options *metav1.DeleteOptions) (seconds int64, pending bool) {
	pod, ok := live.(*corev1.Pod)
	if !ok || pod.Spec.NodeName == "" ||
		pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return 0, false
	}
	seconds = corev1.DefaultTerminationGracePeriodSeconds
	if pod.Spec.TerminationGracePeriodSeconds != nil {
		seconds = *pod.Spec.TerminationGracePeriodSeconds
	}
	if options.GracePeriodSeconds != nil {
		seconds = *options.GracePeriodSeconds
	}
	if left := pod.DeletionGracePeriodSeconds; pod.DeletionTimestamp != nil && left != nil {
		return seconds, *left > 0 && (options.GracePeriodSeconds == nil || seconds >= *left)
	}
	return seconds, false
}

// finalizersAfterDelete replaces the finalizers of the garbage collector by what the delete asks for. Without a policy
// they stay.
func finalizersAfterDelete(finalizers []string, options *metav1.DeleteOptions) []string {
	var policy metav1.DeletionPropagation
	switch {
	case options.PropagationPolicy != nil:
		policy = *options.PropagationPolicy
	//lint:ignore SA1019 clients may still send it
	case options.OrphanDependents != nil && *options.OrphanDependents:
		policy = metav1.DeletePropagationOrphan
	//lint:ignore SA1019 clients may still send it
	case options.OrphanDependents != nil:
		policy = metav1.DeletePropagationBackground
	default:
		return finalizers
	}
	wanted := ""
	switch policy {
	case metav1.DeletePropagationForeground:
		wanted = metav1.FinalizerDeleteDependents
	case metav1.DeletePropagationOrphan:
		wanted = metav1.FinalizerOrphanDependents
	}
	after := slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool {
		return f != wanted && (f == metav1.FinalizerDeleteDependents || f == metav1.FinalizerOrphanDependents)
	})
	if wanted != "" && !slices.Contains(after, wanted) {
		after = append(after, wanted)
	}
	return after
}

// deleteNamespace lets a namespace terminate. The control plane removes it when it is empty.
func deleteNamespace(r *resource, next client.Object, now metav1.Time) (client.Object, verdict, error) {
	if slices.Contains(immortalNamespaces, next.GetName()) {
		return nil, unchanged, apierrors.NewForbidden(r.resource, next.GetName(), errImmortal)
	}
	if next.GetDeletionTimestamp() != nil {
		return next, unchanged, nil
	}
	next.SetDeletionTimestamp(&now)
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
