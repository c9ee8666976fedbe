package cluster_test

import (
	"context"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/testing/simulation/cluster"
)

// TestUsers has users who may do what their roles allow: by a certificate, and by the token of a service account.
func TestUsers(t *testing.T) {
	t.Parallel()
	env := &cluster.Environment{}
	config := start(t, env)
	admin := newClient(t, config)
	jane, err := env.AddUser(cluster.User{Name: "jane", Groups: []string{"readers"}}, &rest.Config{QPS: 7})
	if err != nil {
		t.Fatal(err)
	}
	if got := jane.Config(); got.QPS != 7 || got.Host != config.Host {
		t.Errorf("the configuration of the user is %v, want that of base for the cluster", got)
	}
	account := &corev1.ServiceAccount{ObjectMeta: objectMeta("robot")}
	if err := admin.Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](600)}}
	if err := admin.SubResource("token").Create(t.Context(), account, token); err != nil {
		t.Fatal(err)
	}
	robot := rest.AnonymousClientConfig(config)
	robot.BearerToken = token.Status.Token
	text, err := jane.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	fromFile, err := clientcmd.RESTConfigFromKubeConfig(text)
	if err != nil {
		t.Fatal(err)
	}
	users := map[string]client.Client{
		"a user": newClient(t, jane.Config()), "a kubeconfig": newClient(t, fromFile), "a service account": newClient(t, robot),
	}
	for name, c := range users {
		if err := c.List(t.Context(), &corev1.ConfigMapList{}); !apierrors.IsForbidden(err) {
			t.Errorf("%s without a role: the error is %v, want that it is forbidden", name, err)
		}
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "read"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"},
	}}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "read"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "read"},
		Subjects: []rbacv1.Subject{
			{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "readers"},
			{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: "robot"},
		},
	}
	for _, obj := range []client.Object{role, binding} {
		if err := admin.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range users {
		controlplanetest.Eventually(t, name+" may list", func(ctx context.Context) error {
			return c.List(ctx, &corev1.ConfigMapList{})
		})
		if err := c.Create(t.Context(), configMap("a")); !apierrors.IsForbidden(err) {
			t.Errorf("%s creates: the error is %v, want that it is forbidden", name, err)
		}
	}
}
