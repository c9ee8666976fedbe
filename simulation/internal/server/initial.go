package server

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// initialNamespaces are made by the control plane itself.
var initialNamespaces = append([]string{corev1.NamespaceNodeLease}, immortalNamespaces...)

var immortalNamespaces = []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic}

// createInitial creates what each cluster has, if it is not there.
func createInitial(ctx context.Context, config *rest.Config) error {
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	for _, name := range initialNamespaces {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		_, err := clients.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create namespace %s: %w", name, err)
		}
	}
	return nil
}
