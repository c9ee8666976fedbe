package controllers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// createNodes creates nodes that are ready, unless there are nodes.
func createNodes(ctx context.Context, c client.Client, names []string) error {
	there := &corev1.NodeList{}
	if err := c.List(ctx, there, client.Limit(1)); err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	if len(there.Items) > 0 {
		return nil
	}
	for _, name := range names {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
		}}}
		if err := c.Create(ctx, node, client.FieldOwner("kubelet")); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create node %s: %w", name, err)
		}
		node.Status.Capacity = corev1.ResourceList{
			corev1.ResourceCPU: *apiresource.NewQuantity(8, apiresource.DecimalSI),
			// 32 GiB.
			corev1.ResourceMemory: *apiresource.NewQuantity(32<<30, apiresource.BinarySI),
			corev1.ResourcePods:   *apiresource.NewQuantity(110, apiresource.DecimalSI),
		}
		node.Status.Allocatable = node.Status.Capacity
		node.Status.Conditions = []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
			Message: "kubelet is posting ready status", LastTransitionTime: metav1.Now(),
		}}
		if err := c.Status().Update(ctx, node, client.FieldOwner("kubelet")); err != nil {
			return fmt.Errorf("set the status of node %s: %w", name, err)
		}
	}
	return nil
}
