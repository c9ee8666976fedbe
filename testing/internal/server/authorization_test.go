package server_test

import (
	"strings"
	"testing"
	"testing/synctest"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/server"
)

const operator = "system:serviceaccount:default:operator"

// allow lets the operator do what the rules say in the namespace default.
func (c cluster) allow(rules ...rbacv1.PolicyRule) {
	c.Helper()
	c.create(&rbacv1.Role{ObjectMeta: meta("operator"), Rules: rules})
	c.create(&rbacv1.RoleBinding{
		ObjectMeta: meta("operator"),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "operator"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: "operator"}},
	})
	synctest.Wait() // The server sees the roles.
}

func rule(groups, resources, verbs string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: strings.Split(groups, ","), Resources: strings.Split(resources, ","), Verbs: strings.Split(verbs, ","),
		ResourceNames: names,
	}
}

func TestRoles(t *testing.T) {
	run(t, server.Options{RBAC: true}, func(c cluster) {
		as := c.as(operator)
		c.refused(as.Create(c.ctx, configMap("a")), apierrors.IsForbidden)
		c.allow(rule("", "configmaps", "create,get"), rule("", "secrets", "get", "named"),
			rule("apps", "*/status", "update"), rule("apps", "deployments", "create"))
		c.must(as.Create(c.ctx, configMap("a")))
		err := as.Delete(c.ctx, configMap("a"))
		c.refused(err, apierrors.IsForbidden)
		c.refused(err, func(err error) bool {
			return strings.Contains(err.Error(), `User "`+operator+`" cannot delete resource "configmaps" in API group ""`)
		})
		c.refused(as.List(c.ctx, &corev1.ConfigMapList{}), apierrors.IsForbidden)
		c.refused(as.Get(c.ctx, client.ObjectKey{Namespace: "default", Name: "other"}, &corev1.Secret{}),
			apierrors.IsForbidden)
		c.refused(as.Get(c.ctx, client.ObjectKey{Namespace: "default", Name: "named"}, &corev1.Secret{}),
			apierrors.IsNotFound)
		obj := deployment("a")
		c.must(as.Create(c.ctx, obj))
		obj.Status.Replicas = 1
		c.must(as.Status().Update(c.ctx, obj))
		c.refused(as.Update(c.ctx, obj), apierrors.IsForbidden)
	})
}

func TestReviews(t *testing.T) {
	run(t, server.Options{RBAC: true}, func(c cluster) {
		c.allow(rule("", "configmaps", "get"))
		may := func(verb string) *authorizationv1.ResourceAttributes {
			return &authorizationv1.ResourceAttributes{Namespace: "default", Verb: verb, Resource: "configmaps"}
		}
		self := &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: may("get")},
		}
		c.must(c.as(operator).Create(c.ctx, self))
		other := &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: operator, ResourceAttributes: may("delete")},
		}
		c.create(other)
		if !self.Status.Allowed || other.Status.Allowed {
			c.Errorf("the reviews are %v and %v", self.Status, other.Status)
		}
		c.refused(c.as(operator).Create(c.ctx, other), apierrors.IsForbidden)
		account := &corev1.ServiceAccount{ObjectMeta: meta("operator")}
		c.create(account)
		token := &authenticationv1.TokenRequest{}
		c.must(c.SubResource("token").Create(c.ctx, account, token))
		if token.Status.Token == "" {
			c.Errorf("the token is %v", token)
		}
		of := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token.Status.Token}}
		c.create(of)
		if want := "system:serviceaccount:default:operator"; !of.Status.Authenticated || of.Status.User.Username != want {
			c.Errorf("the review of the token is %v, want that it is of %s", of.Status, want)
		}
		c.refused(c.Create(c.ctx, &authenticationv1.TokenReview{}), apierrors.IsBadRequest)
	})
}

// TestReviewsOfNothing asks about access without saying to what, or whose.
func TestReviewsOfNothing(t *testing.T) {
	run(t, server.Options{}, func(c cluster) {
		list := &authorizationv1.ResourceAttributes{Namespace: "default", Verb: "list", Resource: "secrets"}
		path := &authorizationv1.NonResourceAttributes{Verb: "get", Path: "/version"}
		named := &authorizationv1.SelfSubjectAccessReview{
			ObjectMeta: metav1.ObjectMeta{Name: "a"},
			Spec:       authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: list},
		}
		self := func(spec authorizationv1.SelfSubjectAccessReviewSpec) client.Object {
			return &authorizationv1.SelfSubjectAccessReview{Spec: spec}
		}
		of := func(spec authorizationv1.SubjectAccessReviewSpec) client.Object {
			return &authorizationv1.SubjectAccessReview{Spec: spec}
		}
		local := func(spec authorizationv1.SubjectAccessReviewSpec) client.Object {
			return &authorizationv1.LocalSubjectAccessReview{
				ObjectMeta: metav1.ObjectMeta{Namespace: "kube-public"}, Spec: spec,
			}
		}
		one := "exactly one of nonResourceAttributes or resourceAttributes must be specified"
		for _, test := range []struct {
			review client.Object
			says   string
		}{
			{self(authorizationv1.SelfSubjectAccessReviewSpec{}), one},
			{self(authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: list, NonResourceAttributes: path,
			}), one},
			{named, "metadata: Invalid value"},
			{of(authorizationv1.SubjectAccessReviewSpec{User: "jane"}), one},
			{of(authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: list}), "spec.user: Invalid value"},
			{local(authorizationv1.SubjectAccessReviewSpec{User: "jane", ResourceAttributes: list}),
				"spec.resourceAttributes.namespace: Invalid value"},
			{local(authorizationv1.SubjectAccessReviewSpec{User: "jane", NonResourceAttributes: path}),
				"spec.nonResourceAttributes: Invalid value"},
		} {
			err := c.Create(c.ctx, test.review)
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.says) {
				c.Errorf("%T is refused with %v, want that it is invalid: %s", test.review, err, test.says)
			}
		}
	})
}

// TestTokens has clients whose tokens name them.
func TestTokens(t *testing.T) {
	run(t, server.Options{RBAC: true}, func(c cluster) {
		c.allow(rule("", "configmaps", "create"), rule("", "serviceaccounts", "impersonate"))
		with := func(token, impersonated string) client.Client {
			config := rest.CopyConfig(c.config)
			config.BearerToken, config.Impersonate.UserName = token, impersonated
			return newClient(c.T, config)
		}
		c.must(with(operator, "").Create(c.ctx, configMap("a")))
		for _, as := range []struct{ token, impersonated, says string }{
			{"jane", "", `User "jane" cannot create resource "configmaps"`},
			{
				operator, "system:serviceaccount:default:other",
				`User "system:serviceaccount:default:other" cannot create resource "configmaps"`,
			},
		} {
			err := with(as.token, as.impersonated).Create(c.ctx, configMap("b"))
			c.refused(err, apierrors.IsForbidden)
			c.refused(err, func(err error) bool { return strings.Contains(err.Error(), as.says) })
		}
		// The operator may be another service account, and nobody else: already discovery is forbidden.
		c.refused(with(operator, "jane").Create(c.ctx, configMap("b")), func(err error) bool { return err != nil })
		c.create(&rbacv1.RoleBinding{
			ObjectMeta: meta("all"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "operator"},
			Subjects: []rbacv1.Subject{{
				Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:serviceaccounts:default",
			}},
		})
		synctest.Wait()
		c.must(with("system:serviceaccount:default:third", "").Create(c.ctx, configMap("c")))
		account, request := &corev1.ServiceAccount{ObjectMeta: meta("operator")}, &authenticationv1.TokenRequest{}
		c.create(account)
		c.must(c.SubResource("token").Create(c.ctx, account, request))
		c.must(with(request.Status.Token, "").Create(c.ctx, configMap("b")))
	})
}

// TestEscalation lets the operator grant what it may do, and no more.
func TestEscalation(t *testing.T) {
	run(t, server.Options{RBAC: true}, func(c cluster) {
		as := c.as(operator)
		c.allow(rule("", "configmaps", "get,list"), rule(rbacv1.GroupName, "roles,rolebindings", "create"))
		role := func(name, verbs string) *rbacv1.Role {
			return &rbacv1.Role{ObjectMeta: meta(name), Rules: []rbacv1.PolicyRule{rule("", "configmaps", verbs)}}
		}
		c.must(as.Create(c.ctx, role("less", "get")))
		c.refused(as.Create(c.ctx, role("more", "get,delete")), apierrors.IsForbidden)
		c.create(role("more", "get,delete"))
		synctest.Wait()
		binding := func(name string) *rbacv1.RoleBinding {
			return &rbacv1.RoleBinding{
				ObjectMeta: meta(name), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
				Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "somebody"}},
			}
		}
		c.must(as.Create(c.ctx, binding("less")))
		c.refused(as.Create(c.ctx, binding("more")), apierrors.IsForbidden)
	})
}
