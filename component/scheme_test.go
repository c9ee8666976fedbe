package component_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// roleGenerator returns a typed object that the scheme of the operator does not know.
type roleGenerator struct {
	generator.GeneratorFunc
	added []*runtime.Scheme
	err   error
}

func newRoleGenerator() *roleGenerator {
	return &roleGenerator{GeneratorFunc: func(_ context.Context, namespace, _ string, _ generator.Unstructurable) ([]client.Object, error) {
		return []client.Object{&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "reader"}}}, nil
	}}
}

func (g *roleGenerator) AddToScheme(scheme *runtime.Scheme) error {
	g.added = append(g.added, scheme)
	return errors.Join(rbacv1.AddToScheme(scheme), g.err)
}

// The types that a generator registers are known when its objects are converted, and the scheme of the operator, which others read at
// the same time, stays as it is.
func TestComponentKnowsTypesOfItsGenerator(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{resources.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	roles := []*metav1.APIResourceList{{
		GroupVersion: "rbac.authorization.k8s.io/v1",
		APIResources: []metav1.APIResource{{Name: "roles", Kind: "Role", Namespaced: true}},
	}}
	made := newRoleGenerator()
	node := assembling()
	node.Generator = generator.NewGenerator(made)
	if err := node.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	deployed := rtesting.Rollout[*resources.Assembly]{
		Scheme: scheme, Resource: resources.NewAssembly("default", "house"), Reconciler: node, GivenAPIResources: roles,
	}.Run(t)
	if records := deployed.Object().Status.Inventory; len(records) != 1 || records[0].Kind != "Role" || records[0].Name != "reader" {
		t.Errorf("the inventory is %v, want the Role reader alone", records)
	}
	if len(made.added) != 1 {
		t.Errorf("AddToScheme was called %d times, want once", len(made.added))
	}
	if scheme.Recognizes(rbacv1.SchemeGroupVersion.WithKind("Role")) {
		t.Error("the scheme of the operator knows the Role, want it unchanged")
	}
}

func TestComponentNeedsTheTypesOfItsGenerator(t *testing.T) {
	made := newRoleGenerator()
	made.err = errors.New("out of types")
	node := &component.ComponentReconciler[*resources.Assembly]{Prefix: componentPrefix, Generator: made}
	if err := node.Validate(t.Context()); err == nil || !strings.Contains(err.Error(), "out of types") {
		t.Errorf(`the error is %v, want one that says "out of types"`, err)
	}
}
