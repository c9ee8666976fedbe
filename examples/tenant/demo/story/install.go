package story

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/tenant/config"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

// platform is the namespace of those who run the cluster. It has the ConfigMap of defaults, and the list of tenants.
const platform = "demo-platform"

// install creates what has to be there before the operator starts.
func (w *World) install(ctx context.Context) error {
	if err := apiextensionsv1.AddToScheme(w.Client.Scheme()); err != nil {
		return err
	}
	crd, err := config.CRD()
	if err != nil {
		return err
	}
	if err := w.Create(ctx, crd); err != nil {
		return fmt.Errorf("unable to install the definition of the Tenant: %w", err)
	}
	if err := w.installRoles(ctx); err != nil {
		return err
	}
	for _, obj := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: platform}},
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: platform, Name: "defaults"},
			Data: map[string]string{
				"quota.requests.cpu": "4",
				"quota.pods":         "20",
				"limits.cpu":         "500m",
				"limits.memory":      "256Mi",
				"role.developer":     "edit",
				"role.guest":         "view",
			},
		},
	} {
		if err := w.Create(ctx, obj); err != nil {
			return fmt.Errorf("unable to create the defaults of tenants: %w", err)
		}
	}
	if err := w.installRegistryRole(ctx); err != nil {
		return err
	}
	return w.awaitInstalled(ctx)
}

// installRoles lets the operator do what its roles in the cluster say.
func (w *World) installRoles(ctx context.Context) error {
	roles, err := config.Roles()
	if err != nil {
		return err
	}
	hub, err := config.HubRole()
	if err != nil {
		return err
	}
	for role, user := range map[*rbacv1.ClusterRole]string{roles[0]: OperatorUser, roles[1]: OperatorUser, hub: HubUser} {
		if err := w.Grant(ctx, role, user); err != nil {
			return err
		}
	}
	return nil
}

// installRegistryRole lets the operator keep the list of tenants in the namespace of those who run the cluster.
func (w *World) installRegistryRole(ctx context.Context) error {
	role, err := config.RegistryRole()
	if err != nil {
		return err
	}
	role.Namespace = platform
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: platform, Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: OperatorUser}},
	}
	for _, obj := range []client.Object{role, binding} {
		if err := w.Create(ctx, obj); err != nil {
			return fmt.Errorf("unable to install the role of the operator in its namespace: %w", err)
		}
	}
	return nil
}

// awaitInstalled returns when the roles are in force, and the Tenant is served.
func (w *World) awaitInstalled(ctx context.Context) error {
	for _, needed := range []check{
		may(OperatorUser, "list", v1alpha1.GroupVersion.Group, "tenants", storytelling.Everywhere),
		may(OperatorUser, "create", "", "configmaps", platform),
		may(HubUser, "list", "", "configmaps", storytelling.Everywhere),
	} {
		err := storytelling.Eventually(ctx, storytelling.Patience, func(ctx context.Context) error { return needed(ctx, w) })
		if err != nil {
			return fmt.Errorf("the roles are not in force: %w", err)
		}
	}
	err := storytelling.Eventually(ctx, storytelling.Patience, func(ctx context.Context) error { return w.Client.List(ctx, &v1alpha1.TenantList{}) })
	if err != nil {
		return fmt.Errorf("the definition of the Tenant is not served: %w", err)
	}
	return nil
}
