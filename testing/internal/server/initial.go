package server

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// initialNamespaces are made by the control plane itself.
var initialNamespaces = append([]string{corev1.NamespaceNodeLease}, immortalNamespaces...)

var immortalNamespaces = []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic}

// createInitial creates what each cluster has, if it is not there.
func createInitial(ctx context.Context, options Options, config *rest.Config) error {
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
	if !options.RBAC {
		return nil
	}
	for _, role := range initialRoles {
		if err := createRole(ctx, clients, role); err != nil {
			return fmt.Errorf("create role %s: %w", role.name, err)
		}
	}
	return nil
}

// initialRole is a role for the whole cluster, and the group that has it.
type initialRole struct {
	name, group string
	rule        rbacv1.PolicyRule
}

// initialRoles are those of the default roles of a cluster that others than its own components need, see "Default roles
// and role bindings" in the Kubernetes documentation.
var initialRoles = []initialRole{
	{"cluster-admin", user.SystemPrivilegedGroup, rbacv1.PolicyRule{
		Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"},
	}},
	{"system:basic-user", user.AllAuthenticated, rbacv1.PolicyRule{
		Verbs: []string{"create"}, APIGroups: []string{"authorization.k8s.io", "authentication.k8s.io"},
		Resources: []string{"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"},
	}},
	{"system:discovery", user.AllAuthenticated, rbacv1.PolicyRule{
		Verbs: []string{"get"}, NonResourceURLs: []string{
			"/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", "/readyz", "/version",
			"/version/",
		},
	}},
}

func createRole(ctx context.Context, clients kubernetes.Interface, role initialRole) error {
	labels := map[string]string{"kubernetes.io/bootstrapping": "rbac-defaults"}
	meta := metav1.ObjectMeta{Name: role.name, Labels: labels}
	_, err := clients.RbacV1().ClusterRoles().Create(ctx,
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{role.rule}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	_, err = clients.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: role.group}},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}
