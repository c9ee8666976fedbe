package server

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	storeerrors "k8s.io/apiserver/pkg/storage/errors"
	"k8s.io/apiserver/pkg/util/dryrun"
)

// evictionREST deletes Pods by the subresource eviction. Disruption budgets are not looked at.
type evictionREST struct{ store *genericregistry.Store }

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
	if err := validate(ctx, eviction.DeepCopy()); err != nil {
		return nil, err
	}
	how := &metav1.DeleteOptions{}
	if eviction.DeleteOptions != nil {
		how = eviction.DeleteOptions
	}
	how.DryRun = options.DryRun
	if _, _, err := r.store.Delete(ctx, name, rest.ValidateAllObjectFunc, how); err != nil {
		return nil, err
	}
	return &metav1.Status{Status: metav1.StatusSuccess}, nil
}

// bindingREST puts Pods on nodes by the subresource binding, as a scheduler does.
type bindingREST struct{ store *genericregistry.Store }

var _ rest.NamedCreater = bindingREST{}

// New implements [rest.Storage].
func (bindingREST) New() runtime.Object { return &corev1.Binding{} }

// Destroy implements [rest.Storage].
func (bindingREST) Destroy() {}

// Create implements [rest.NamedCreater].
func (r bindingREST) Create(
	ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc,
	options *metav1.CreateOptions,
) (runtime.Object, error) {
	binding, ok := obj.(*corev1.Binding)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a Binding: %T", obj))
	}
	if err := validate(ctx, binding.DeepCopy()); err != nil {
		return nil, err
	}
	key, err := r.store.KeyFunc(ctx, name)
	if err != nil {
		return nil, err
	}
	err = r.store.Storage.GuaranteedUpdate(ctx, key, r.store.NewFunc(), false, nil,
		storage.SimpleUpdate(func(live runtime.Object) (runtime.Object, error) {
			return live, bind(live.(*corev1.Pod), binding.Target.Name, timeOf(ctx))
		}), dryrun.IsDryRun(options.DryRun), nil)
	if err != nil {
		return nil, storeerrors.InterpretUpdateError(err, r.store.DefaultQualifiedResource, name)
	}
	return &metav1.Status{Status: metav1.StatusSuccess}, nil
}

// bind puts a Pod on a node.
func bind(pod *corev1.Pod, node string, now metav1.Time) error {
	var problem error
	switch {
	case pod.DeletionTimestamp != nil:
		problem = fmt.Errorf("pod %s is being deleted, cannot be assigned to a host", pod.Name)
	case pod.Spec.NodeName != "":
		problem = fmt.Errorf("pod %s is already assigned to node %q", pod.Name, pod.Spec.NodeName)
	}
	if problem != nil {
		return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, pod.Name, problem)
	}
	pod.Spec.NodeName = node
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodScheduled {
			pod.Status.Conditions[i].Status = corev1.ConditionTrue
			pod.Status.Conditions[i].LastTransitionTime = now
			return nil
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: now,
	})
	return nil
}
