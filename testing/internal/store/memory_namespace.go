package store

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/testing/internal/registry"
)

var (
	namespaceKind = schema.GroupKind{Kind: "Namespace"}
	// initialNamespaces are made by the control plane itself.
	initialNamespaces  = append([]string{corev1.NamespaceNodeLease}, immortalNamespaces...)
	immortalNamespaces = []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic}
	errImmortal        = errors.New("this namespace may not be deleted")
)

// checkNamespace refuses to create an object where no namespace is, or one that terminates. It is what the admission
// plug-in NamespaceLifecycle does. The caller holds the lock.
func (s *memory) checkNamespace(r *resource, namespace, name string) error {
	if namespace == "" {
		if r.kind.Scope == registry.Namespaced {
			return errors.New("an empty namespace may not be set during creation")
		}
		return nil
	}
	found := s.state.find(Key{Kind: namespaceKind, Name: namespace})
	if found == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, namespace)
	}
	if found.object.GetDeletionTimestamp() == nil {
		return nil
	}
	err := apierrors.NewForbidden(r.resource, name, fmt.Errorf(
		"unable to create new content in namespace %s because it is being terminated", namespace))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: corev1.NamespaceTerminatingCause, Field: "metadata.namespace",
		Message: fmt.Sprintf("namespace %s is being terminated", namespace),
	})
	return err
}
