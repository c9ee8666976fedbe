package simulation

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// ServiceAccount is the account that the operator has if [Options.Rules] are given, in the namespace "default". Objects
// of the options may have further roles, and bind them to it.
const ServiceAccount = "operator"

// subject is the operator.
var subject = rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceDefault, Name: ServiceAccount}

// ReadRules reads the rules of the ClusterRoles in files. The test fails if something cannot be read, or is not a
// ClusterRole with rules.
func ReadRules(t testing.TB, paths ...string) []rbacv1.PolicyRule {
	t.Helper()
	var rules []rbacv1.PolicyRule
	for _, path := range paths {
		text, err := os.ReadFile(filepath.Clean(path))
		if err != nil {
			t.Fatalf("read rules: %v", err)
		}
		role := &rbacv1.ClusterRole{}
		if err := yaml.UnmarshalStrict(text, role); err != nil {
			t.Fatalf("read rules: %s: %v", path, err)
		}
		if role.Kind != "ClusterRole" || len(role.Rules) == 0 {
			t.Fatalf("read rules: %s is not a ClusterRole with rules", path)
		}
		rules = append(rules, role.Rules...)
	}
	return rules
}

// Forbidden returns the requests of the operator that were forbidden, such as "operator watch Secret", each once and in
// their order. There are none in a story of an operator whose rules are enough. A client that watches lists by its
// watch: a missing verb "list" shows only where an operator lists without a cache.
func (w *World) Forbidden() []string {
	var forbidden []string
	for _, e := range w.network.Log().Entries {
		if e.Status != http.StatusForbidden || !slices.Contains(w.options.actors(), e.Call.Actor) {
			continue
		}
		request, _, _ := strings.Cut(newLine(e).text, " → ")
		if !slices.Contains(forbidden, request) {
			forbidden = append(forbidden, request)
		}
	}
	return forbidden
}

// authorize lets the operator do what the rules of the options say, and waits until the API server knows.
func (w *World) authorize(ctx context.Context) error {
	clients, err := kubernetes.NewForConfig(w.Config(user))
	if err != nil {
		return err
	}
	meta := metav1.ObjectMeta{Name: ServiceAccount}
	_, err = clients.CoreV1().ServiceAccounts(subject.Namespace).Create(ctx,
		&corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create the account of the operator: %w", err)
	}
	_, err = clients.RbacV1().ClusterRoles().Create(ctx,
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: slices.Clone(w.options.Rules)}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("options: Rules: %w", err)
	}
	_, err = clients.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, Subjects: []rbacv1.Subject{subject},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: ServiceAccount},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("bind the rules of the options: %w", err)
	}
	synctest.Wait()
	return nil
}

// authenticated returns the configuration of the operator's clients.
func (o Options) authenticated(config *rest.Config) *rest.Config {
	if o.Rules != nil {
		config.BearerToken = serviceaccount.MakeUsername(subject.Namespace, subject.Name)
	}
	return config
}
