package foreign_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// as is the configuration of a user with the rights of the rules only.
func as(t *testing.T, rules ...rbacv1.PolicyRule) *rest.Config {
	t.Helper()
	name := plane.Namespace(t)
	create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules})
	create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: "User", Name: name}},
	})
	config := plane.Config(t)
	config.Impersonate.UserName = name
	return config
}

func allow(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

func TestForbidden(t *testing.T) {
	t.Parallel()
	crd := install(t, crdOf("Rasp"))
	const definitions = "apiextensions.k8s.io"
	tests := []struct {
		name  string
		rules []rbacv1.PolicyRule
		want  string
	}{
		{name: "read", want: "CustomResourceDefinition rasps.smithy.example.com could not be read: forbidden"},
		{name: "list", rules: []rbacv1.PolicyRule{allow(definitions, "*", "get")},
			want: "instances of Rasp could not be listed: forbidden"},
		{
			name:  "fence",
			rules: []rbacv1.PolicyRule{allow(definitions, "*", "get"), allow(smithy, "*", "list")},
			want:  "creation of Rasp could not be fenced off: forbidden",
		},
		{
			name:  "prove",
			rules: []rbacv1.PolicyRule{allow(definitions, "*", "get", "patch"), allow(smithy, "*", "list")},
			want:  "the fence of Rasp could not be proven: an instance is refused for another reason: forbidden",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := newGuard(t, as(t, test.rules...))
			g.ProofTimeout = 1
			controlplanetest.Eventually(t, "the rights are not in force", func(ctx context.Context) error {
				use, err := checkOne(ctx, g, keyOf(crd), true)
				if err != nil || use.Reason != test.want {
					return fmt.Errorf("%+v, %v", use, err)
				}
				return nil
			})
			assertFences(t, crd, 0)
		})
	}
	t.Run("pattern", func(t *testing.T) {
		g := newGuard(t, as(t))
		controlplanetest.Eventually(t, "the rights are not in force", func(ctx context.Context) error {
			use, err := g.CheckPattern(ctx, plan.Pattern{Group: smithy, Kind: "Rasp"})
			if err != nil || use.Reason != "instances of Rasp could not be listed: forbidden" {
				return fmt.Errorf("%+v, %v", use, err)
			}
			return nil
		})
	})
}
