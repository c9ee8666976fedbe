package server

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	storeerrors "k8s.io/apiserver/pkg/storage/errors"
	"k8s.io/apiserver/pkg/util/dryrun"
)

// bindingREST puts Pods on nodes by the subresource binding, as a scheduler does.
type bindingREST struct{ store *genericregistry.Store }

var (
	_ rest.NamedCreater                   = bindingREST{}
	_ rest.SubresourceObjectMetaPreserver = bindingREST{}
)

// New implements [rest.Storage].
func (bindingREST) New() runtime.Object { return &corev1.Binding{} }

// Destroy implements [rest.Storage].
func (bindingREST) Destroy() {}

// PreserveRequestObjectMetaSystemFieldsOnSubresourceCreate implements [rest.SubresourceObjectMetaPreserver]: a binding
// says by its UID which Pod it is for.
func (bindingREST) PreserveRequestObjectMetaSystemFieldsOnSubresourceCreate() bool { return true }

// Create implements [rest.NamedCreater].
func (r bindingREST) Create(
	ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc,
	options *metav1.CreateOptions,
) (runtime.Object, error) {
	binding, ok := obj.(*corev1.Binding)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a Binding: %T", obj))
	}
	if name != binding.Name {
		return nil, apierrors.NewBadRequest("name in URL does not match name in Binding object")
	}
	if errs := validateBinding(binding); len(errs) > 0 {
		// An API server answers with an internal error.
		return nil, errs.ToAggregate()
	}
	if err := validate(ctx, binding.DeepCopy()); err != nil {
		return nil, err
	}
	key, err := r.store.KeyFunc(ctx, name)
	if err != nil {
		return nil, err
	}
	must := &storage.Preconditions{}
	if binding.UID != "" {
		must.UID = &binding.UID
	}
	if binding.ResourceVersion != "" {
		must.ResourceVersion = &binding.ResourceVersion
	}
	err = r.store.Storage.GuaranteedUpdate(ctx, key, r.store.NewFunc(), false, must,
		storage.SimpleUpdate(func(live runtime.Object) (runtime.Object, error) {
			return live, bind(live.(*corev1.Pod), binding, timeOf(ctx))
		}), dryrun.IsDryRun(options.DryRun), nil)
	if err != nil {
		err = storeerrors.InterpretGetError(err, r.store.DefaultQualifiedResource, name)
		return nil, storeerrors.InterpretUpdateError(err, r.store.DefaultQualifiedResource, name)
	}
	return &metav1.Status{Status: metav1.StatusSuccess}, nil
}

// validateBinding requires a node.
func validateBinding(binding *corev1.Binding) field.ErrorList {
	var errs field.ErrorList
	target, at := binding.Target, field.NewPath("target")
	if target.Kind != "" && target.Kind != "Node" {
		return append(errs, field.NotSupported(at.Child("kind"), target.Kind, []string{"Node", "<empty>"}))
	}
	if target.Name == "" {
		return append(errs, field.Required(at.Child("name"), ""))
	}
	for _, message := range apivalidation.NameIsDNSSubdomain(target.Name, false) {
		errs = append(errs, field.Invalid(at.Child("name"), target.Name, message))
	}
	return errs
}

// bind puts a Pod on a node, with the labels and annotations of the binding.
func bind(pod *corev1.Pod, binding *corev1.Binding, now metav1.Time) error {
	var problem error
	switch {
	case pod.DeletionTimestamp != nil:
		problem = fmt.Errorf("pod %s is being deleted, cannot be assigned to a host", pod.Name)
	case pod.Spec.NodeName != "":
		problem = fmt.Errorf("pod %s is already assigned to node %q", pod.Name, pod.Spec.NodeName)
	case len(pod.Spec.SchedulingGates) > 0:
		problem = fmt.Errorf("pod %s has non-empty .spec.schedulingGates", pod.Name)
	}
	if problem != nil {
		return apierrors.NewConflict(schema.GroupResource{Resource: "pods/binding"}, pod.Name, problem)
	}
	pod.Spec.NodeName, pod.Status.NominatedNodeName = binding.Target.Name, ""
	pod.Labels = merged(pod.Labels, binding.Labels)
	pod.Annotations = merged(pod.Annotations, binding.Annotations)
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

// merged returns a map with the entries of another one, which prevail.
func merged(m, by map[string]string) map[string]string {
	if len(by) == 0 {
		return m
	}
	if m = maps.Clone(m); m == nil {
		m = map[string]string{}
	}
	maps.Copy(m, by)
	return m
}
