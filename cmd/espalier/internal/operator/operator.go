// Package operator finds a running operator in a cluster, and connects to it.
package operator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// Pod returns the pod of a target such as "deployment/shop-operator", "statefulset/shop-operator" or "pod/shop-0" that
// is to be asked: of several, the one that holds a Lease of the namespace, or else one that is ready.
func Pod(ctx context.Context, c kubernetes.Interface, namespace, target string) (*corev1.Pod, error) {
	kind, name, found := strings.Cut(target, "/")
	if !found || name == "" {
		return nil, fmt.Errorf("%q is no target: it is as deployment/NAME, statefulset/NAME, pod/NAME or a URL", target)
	}
	var selector *metav1.LabelSelector
	switch kind {
	case "pod", "pods", "po":
		return c.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	case "deployment", "deployments", "deploy":
		found, err := c.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		selector = found.Spec.Selector
	case "statefulset", "statefulsets", "sts":
		found, err := c.AppsV1().StatefulSets(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		selector = found.Spec.Selector
	default:
		return nil, fmt.Errorf("%q is no kind of an operator: it is deployment, statefulset or pod", kind)
	}
	those := metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(selector)}
	pods, err := c.CoreV1().Pods(namespace).List(ctx, those)
	if err != nil {
		return nil, fmt.Errorf("unable to list the pods of %s: %w", target, err)
	}
	// Without the right to list them, any pod will do: its page says whether it leads.
	leases, err := c.CoordinationV1().Leases(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		leases = &coordinationv1.LeaseList{}
	}
	pod := best(pods.Items, leases.Items)
	if pod == nil {
		return nil, fmt.Errorf("%s in the namespace %s has no pod that is ready", target, namespace)
	}
	return pod, nil
}

// best returns the pod to ask, or nil if none is ready.
func best(pods []corev1.Pod, leases []coordinationv1.Lease) *corev1.Pod {
	leads := func(pod *corev1.Pod) bool {
		return slices.ContainsFunc(leases, func(l coordinationv1.Lease) bool {
			// Managers of controller-runtime add a random text to the name of the pod.
			holder, _, _ := strings.Cut(ptr.Deref(l.Spec.HolderIdentity, ""), "_")
			return holder == pod.Name
		})
	}
	var ready []*corev1.Pod
	for i := range pods {
		if isReady(&pods[i]) {
			ready = append(ready, &pods[i])
		}
	}
	if len(ready) == 0 {
		return nil
	}
	slices.SortFunc(ready, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	if i := slices.IndexFunc(ready, leads); i >= 0 {
		return ready[i]
	}
	return ready[0]
}

func isReady(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// Port returns the number of a port of a pod: one of its ports by name, or a number.
func Port(pod *corev1.Pod, nameOrNumber string) (int, error) {
	if number, err := strconv.Atoi(nameOrNumber); err == nil && number > 0 && number <= 65535 {
		return number, nil
	}
	var names []string
	for _, container := range pod.Spec.Containers {
		for _, port := range container.Ports {
			if port.Name == nameOrNumber {
				return int(port.ContainerPort), nil
			}
			names = append(names, port.Name)
		}
	}
	return 0, fmt.Errorf("the pod %s has the ports %q: no such port %q", pod.Name, names, nameOrNumber)
}
