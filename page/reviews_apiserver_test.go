package page_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/page"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func newClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(config, client.Options{Scheme: resources.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// create creates objects that go with the test.
func create(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := client.IgnoreNotFound(c.Delete(context.WithoutCancel(t.Context()), object)); err != nil {
				t.Error(err)
			}
		})
	}
}

// An API server tells who a service account is and what it may get, to an operator that has the rights of ReviewRules
// alone. Without these, nobody sees anything.
func TestReviewsOnAServer(t *testing.T) {
	namespace, admin := plane.Namespace(t), newClient(t, plane.Config(t))
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "viewer"}}
	operator := rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "operator-" + namespace}
	name := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name + "-" + account.Namespace}
	}
	refersTo := func(kind string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name("", "page").Name}
	}
	create(t, admin, account,
		&rbacv1.Role{ObjectMeta: name("default", "page"), Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"test.espalier.dev"}, Resources: []string{"widgets"}, ResourceNames: []string{"mine"},
			Verbs: []string{"get"},
		}}},
		&rbacv1.RoleBinding{ObjectMeta: name("default", "page"), RoleRef: refersTo("Role"), Subjects: []rbacv1.Subject{{
			Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account.Name,
		}}},
	)
	token := &authenticationv1.TokenRequest{}
	if err := admin.SubResource("token").Create(t.Context(), account, token); err != nil {
		t.Fatal(err)
	}
	config := plane.Config(t)
	config.Impersonate.UserName = operator.Name
	w := newWorld(t, page.Options{Access: page.Reviews(newClient(t, config))}, "mine", "other")
	w.reason, w.message = "NoPod", "what only some may know"
	w.settle(t, "mine")
	w.settle(t, "other")
	const resource = "resource?root=widgets&namespace=default&name="
	if a := w.get(t, resource+"mine", bearer(token.Status.Token)); a.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("for an operator without rights the answer is %s, not 503: %s", a.Status, a.body)
	}
	create(t, admin,
		&rbacv1.ClusterRole{ObjectMeta: name("", "page"), Rules: page.ReviewRules()},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: name("", "page"), RoleRef: refersTo("ClusterRole"), Subjects: []rbacv1.Subject{operator},
		},
	)
	// The authorizer learns of roles by watches.
	controlplanetest.Eventually(t, "the operator has its rights", func(context.Context) error {
		if a := w.get(t, "", bearer(token.Status.Token)); a.StatusCode != http.StatusOK {
			return errors.New(a.Status)
		}
		return nil
	})
	for _, test := range []struct {
		path   string
		token  string
		status int
		shows  bool
	}{
		{resource + "mine", token.Status.Token, http.StatusOK, true},
		{resource + "other", token.Status.Token, http.StatusOK, false},
		{"root?root=widgets", token.Status.Token, http.StatusOK, false},
		{"dump", token.Status.Token, http.StatusOK, false},
		{"events?root=widgets&namespace=default&name=other", token.Status.Token, http.StatusForbidden, false},
		{resource + "mine", token.Status.Token + "x", http.StatusUnauthorized, false},
		{resource + "mine", "", http.StatusUnauthorized, false},
	} {
		a := w.get(t, test.path, bearer(test.token))
		if shows := strings.Contains(a.body, w.message); a.StatusCode != test.status || shows != test.shows {
			t.Errorf("GET %s: %s, not %d; it shows the message: %v", test.path, a.Status, test.status, shows)
		}
	}
}
