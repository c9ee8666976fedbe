package server

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"
)

// podPlugin is the name of the plug-in that does what two of a kube-apiserver do: Priority and
// DefaultTolerationSeconds.
const podPlugin = "PodDefaults"

// podDefaults completes Pods that are created, see "Admission Control in Kubernetes" in the Kubernetes documentation.
type podDefaults struct {
	*admission.Handler
	classes rest.Lister
}

var _ admission.MutationInterface = podDefaults{}

func newPodDefaults(classes rest.Lister) podDefaults {
	return podDefaults{admission.NewHandler(admission.Create), classes}
}

// Admit implements [admission.MutationInterface].
func (d podDefaults) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, ok := a.GetObject().(*corev1.Pod)
	if !ok || a.GetSubresource() != "" {
		return nil
	}
	if err := d.prioritize(ctx, &pod.Spec); err != nil {
		return admission.NewForbidden(a, err)
	}
	for _, taint := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		tolerate(&pod.Spec, taint)
	}
	return nil
}

// systemPriorities are those of the classes that each cluster has, see "Guaranteed Scheduling For Critical Add-On Pods"
// in the Kubernetes documentation.
var systemPriorities = map[string]int32{
	"system-cluster-critical": 2_000_000_000,
	"system-node-critical":    2_000_001_000,
}

// prioritize sets the priority of the class, see "Pod Priority and Preemption" in the Kubernetes documentation.
func (d podDefaults) prioritize(ctx context.Context, spec *corev1.PodSpec) error {
	class, err := d.classOf(ctx, spec.PriorityClassName)
	if err != nil {
		return err
	}
	if spec.Priority != nil && *spec.Priority != class.Value {
		return fmt.Errorf("the integer value of priority (%d) must not be provided in pod spec; "+
			"priority admission controller computed %d from the given PriorityClass name", *spec.Priority, class.Value)
	}
	policy := ptr.Deref(class.PreemptionPolicy, corev1.PreemptLowerPriority)
	if spec.PreemptionPolicy != nil && *spec.PreemptionPolicy != policy {
		return fmt.Errorf("the string value of PreemptionPolicy (%s) must not be provided in pod spec; "+
			"priority admission controller computed %s from the given PriorityClass name",
			*spec.PreemptionPolicy, policy)
	}
	spec.PriorityClassName, spec.Priority, spec.PreemptionPolicy = class.Name, &class.Value, &policy
	return nil
}

// classOf returns the class of a name. That of no name is the default class with the lowest priority; it has no name if
// there is none.
func (d podDefaults) classOf(ctx context.Context, name string) (*schedulingv1.PriorityClass, error) {
	class := &schedulingv1.PriorityClass{}
	if value, ok := systemPriorities[name]; ok {
		class.Name, class.Value = name, value
		return class, nil
	}
	found, err := d.classes.List(ctx, &internalversion.ListOptions{})
	if err != nil {
		return nil, err
	}
	all, ok := found.(*schedulingv1.PriorityClassList)
	if !ok {
		return nil, fmt.Errorf("not a list of priority classes: %T", found)
	}
	for i := range all.Items {
		other := &all.Items[i]
		switch {
		case name != "" && other.Name == name:
			return other, nil
		case name == "" && other.GlobalDefault && (class.Name == "" || other.Value < class.Value):
			class = other
		}
	}
	if name != "" {
		return nil, fmt.Errorf("no PriorityClass with name %v was found", name)
	}
	return class, nil
}

// tolerate adds the toleration of a taint for five minutes, unless there is one.
func tolerate(spec *corev1.PodSpec, taint string) {
	tolerated := slices.ContainsFunc(spec.Tolerations, func(t corev1.Toleration) bool {
		return (t.Key == taint || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "")
	})
	if !tolerated {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{
			Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
			TolerationSeconds: ptr.To[int64](300),
		})
	}
}
