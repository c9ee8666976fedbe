package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	storeerrors "k8s.io/apiserver/pkg/storage/errors"
	"k8s.io/apiserver/pkg/util/dryrun"
)

// evictionREST deletes Pods by the subresource eviction, unless a disruption budget does not allow it. See
// "API-initiated Eviction" in the Kubernetes documentation.
type evictionREST struct{ pods, budgets *genericregistry.Store }

var (
	_ rest.NamedCreater             = evictionREST{}
	_ rest.GroupVersionKindProvider = evictionREST{}
)

// New implements [rest.Storage].
func (evictionREST) New() runtime.Object { return &policyv1.Eviction{} }

// Destroy implements [rest.Storage].
func (evictionREST) Destroy() {}

// GroupVersionKind implements [rest.GroupVersionKindProvider].
func (evictionREST) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return policyv1.SchemeGroupVersion.WithKind("Eviction")
}

// Create implements [rest.NamedCreater].
func (r evictionREST) Create(
	ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc,
	options *metav1.CreateOptions,
) (runtime.Object, error) {
	eviction, ok := obj.(*policyv1.Eviction)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not an Eviction: %T", obj))
	}
	if name != eviction.Name {
		return nil, apierrors.NewBadRequest("name in URL does not match name in Eviction object")
	}
	how := &metav1.DeleteOptions{}
	if eviction.DeleteOptions != nil {
		how = eviction.DeleteOptions.DeepCopy()
	}
	switch {
	case len(how.DryRun) == 0:
		how.DryRun = options.DryRun
	case len(options.DryRun) > 0 && !slices.Equal(how.DryRun, options.DryRun):
		return nil, fmt.Errorf("dry-run options %v of the request do not match %v of the eviction", options.DryRun,
			how.DryRun)
	}
	if err := validate(ctx, eviction.DeepCopy()); err != nil {
		return nil, err
	}
	if err := r.evict(ctx, name, how); err != nil {
		return nil, err
	}
	return &metav1.Status{Status: metav1.StatusSuccess}, nil
}

// evict deletes a Pod if its disruption budget allows it.
func (r evictionREST) evict(ctx context.Context, name string, how *metav1.DeleteOptions) error {
	found, err := r.pods.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return err
	}
	pod := found.(*corev1.Pod)
	budget, err := r.budgetOf(ctx, pod)
	switch {
	case err != nil:
		return err
	case budget == nil:
	case isUnhealthySurplus(pod, budget):
		// A Pod that has become ready since counts.
		if how.Preconditions == nil {
			how.Preconditions = &metav1.Preconditions{}
		}
		if how.Preconditions.ResourceVersion == nil {
			how.Preconditions.ResourceVersion = &pod.ResourceVersion
		}
	default:
		if err := r.spend(ctx, budget.Name, name, dryrun.IsDryRun(how.DryRun)); err != nil {
			return err
		}
	}
	if !dryrun.IsDryRun(how.DryRun) {
		if err := r.mark(ctx, name, how); err != nil {
			return err
		}
	}
	_, _, err = r.pods.Delete(ctx, name, rest.ValidateAllObjectFunc, how)
	return err
}

// budgetOf returns the disruption budget of a Pod, nil if the Pod has none, or if its deletion disrupts nothing.
func (r evictionREST) budgetOf(ctx context.Context, pod *corev1.Pod) (*policyv1.PodDisruptionBudget, error) {
	switch phase := pod.Status.Phase; {
	case pod.DeletionTimestamp != nil, phase == corev1.PodPending, phase == corev1.PodSucceeded,
		phase == corev1.PodFailed:
		return nil, nil
	}
	list, err := r.budgets.List(ctx, nil)
	if err != nil {
		return nil, err
	}
	var budget *policyv1.PodDisruptionBudget
	all := list.(*policyv1.PodDisruptionBudgetList).Items
	for i := range all {
		selector, err := metav1.LabelSelectorAsSelector(all[i].Spec.Selector)
		if err != nil || !selector.Matches(labels.Set(pod.Labels)) {
			continue // An invalid selector selects nothing.
		}
		if budget != nil {
			return nil, &apierrors.StatusError{ErrStatus: metav1.Status{
				Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
				Message: fmt.Sprintf("pod %s has the disruption budgets %s and %s: an eviction supports one", pod.Name,
					budget.Name, all[i].Name),
			}}
		}
		budget = &all[i]
	}
	return budget, nil
}

// isUnhealthySurplus reports whether a Pod does not count for its budget: it is not ready, and the budget allows such
// ones to be evicted.
func isUnhealthySurplus(pod *corev1.Pod, budget *policyv1.PodDisruptionBudget) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			return false
		}
	}
	if policy := budget.Spec.UnhealthyPodEvictionPolicy; policy != nil && *policy == policyv1.AlwaysAllow {
		return true
	}
	return budget.Status.CurrentHealthy >= budget.Status.DesiredHealthy && budget.Status.DesiredHealthy > 0
}

// spend takes a disruption off a budget.
func (r evictionREST) spend(ctx context.Context, budget, pod string, isDryRun bool) error {
	key, err := r.budgets.KeyFunc(ctx, budget)
	if err != nil {
		return err
	}
	err = r.budgets.Storage.GuaranteedUpdate(ctx, key, r.budgets.NewFunc(), false, nil,
		storage.SimpleUpdate(func(live runtime.Object) (runtime.Object, error) {
			b := live.(*policyv1.PodDisruptionBudget)
			if err := allowsDisruption(b); err != nil {
				return nil, err
			}
			if b.Status.DisruptionsAllowed--; b.Status.DisruptionsAllowed == 0 {
				meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{
					Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse,
					Reason: policyv1.InsufficientPodsReason, ObservedGeneration: b.Status.ObservedGeneration,
					LastTransitionTime: timeOf(ctx),
				})
			}
			if b.Status.DisruptedPods == nil {
				b.Status.DisruptedPods = map[string]metav1.Time{}
			}
			b.Status.DisruptedPods[pod] = timeOf(ctx)
			return b, nil
		}), isDryRun, nil)
	return storeerrors.InterpretUpdateError(err, r.budgets.DefaultQualifiedResource, budget)
}

// allowsDisruption returns an error if a budget allows none now.
func allowsDisruption(b *policyv1.PodDisruptionBudget) error {
	const refused = "Cannot evict pod as it would violate the pod's disruption budget."
	seconds, why := 0, ""
	switch {
	case b.Status.ObservedGeneration < b.Generation:
		seconds, why = 10, fmt.Sprintf("The disruption budget %s is still being processed by the server.", b.Name)
	case b.Status.DisruptionsAllowed > 0:
		return nil
	default:
		why = fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently", b.Name,
			b.Status.DesiredHealthy, b.Status.CurrentHealthy)
	}
	err := apierrors.NewTooManyRequests(refused, seconds)
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: policyv1.DisruptionBudgetCause, Message: why,
	})
	return err
}

// mark sets the condition of a Pod that is about to be evicted. A version in the options becomes that of the Pod after
// it.
func (r evictionREST) mark(ctx context.Context, name string, how *metav1.DeleteOptions) error {
	key, err := r.pods.KeyFunc(ctx, name)
	if err != nil {
		return err
	}
	must := &storage.Preconditions{}
	if how.Preconditions != nil {
		must.UID, must.ResourceVersion = how.Preconditions.UID, how.Preconditions.ResourceVersion
	}
	pod := r.pods.NewFunc().(*corev1.Pod)
	err = r.pods.Storage.GuaranteedUpdate(ctx, key, pod, false, must,
		storage.SimpleUpdate(func(live runtime.Object) (runtime.Object, error) {
			setDisruptionTarget(&live.(*corev1.Pod).Status, timeOf(ctx))
			return live, nil
		}), false, nil)
	if err != nil {
		err = storeerrors.InterpretGetError(err, r.pods.DefaultQualifiedResource, name)
		return storeerrors.InterpretUpdateError(err, r.pods.DefaultQualifiedResource, name)
	}
	if must.ResourceVersion != nil {
		how.Preconditions.ResourceVersion = &pod.ResourceVersion
	}
	return nil
}

func setDisruptionTarget(status *corev1.PodStatus, now metav1.Time) {
	c := corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI",
		Message: "Eviction API: evicting", LastTransitionTime: now,
	}
	i := slices.IndexFunc(status.Conditions, func(known corev1.PodCondition) bool { return known.Type == c.Type })
	switch {
	case i < 0:
		status.Conditions = append(status.Conditions, c)
	case status.Conditions[i].Status != c.Status:
		status.Conditions[i] = c
	}
}
