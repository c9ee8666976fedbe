package component_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// orphaning is a tree with a child of each kind: one with an owner reference, one with a finalizer in place of it, and
// those of a component.
func orphaning(mgr ctrl.Manager) *reconcilers.ResourceReconciler[*resources.Assembly] {
	return espalier.For(espalier.NewConfig(mgr),
		espalier.Owns("Settings", func(_ context.Context, a *resources.Assembly) (*corev1.ConfigMap, error) {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: "settings"}}, nil
		}),
		espalier.Owns("Role", func(_ context.Context, a *resources.Assembly) (*rbacv1.ClusterRole, error) {
			return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: a.Namespace + "-role"}}, nil
		}),
		&component.ComponentReconciler[*resources.Assembly]{
			Prefix: "assembly.example.com", Condition: "Deployed",
			Generator: generator.GeneratorFunc(
				func(_ context.Context, namespace, _ string, _ generator.Unstructurable) ([]client.Object, error) {
					return []client.Object{
						&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "part"}},
					}, nil
				}),
		},
	)
}

// TestOrphan deletes resources as "kubectl delete --cascade=orphan" does, with a garbage collector: what they have
// stays.
func TestOrphan(t *testing.T) {
	t.Parallel()
	controlplanetest.SkipIfShort(t)
	env, c := startOwn(t, controlplane.Options{
		CRDs: []*apiextensionsv1.CustomResourceDefinition{resources.AssemblyCRD()}, GarbageCollection: true,
	})
	mgr := newManager(t, env.Config(), ctrl.Options{})
	if err := orphaning(mgr).SetupWithManager(t.Context(), mgr); err != nil {
		t.Fatal(err)
	}
	startManager(t, mgr)
	for i := range 3 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "orphan-"}}
			if err := c.Create(t.Context(), namespace); err != nil {
				t.Fatal(err)
			}
			owner := resources.NewAssembly(namespace.Name, "house")
			assemble(t, c, owner)("the component is ready")
			kept := []client.Object{
				&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "settings"}},
				&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "part"}},
				&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: namespace.Name + "-role"}},
			}
			for _, object := range kept {
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
					t.Fatal(err)
				}
			}
			err := c.Delete(t.Context(), owner, client.PropagationPolicy(metav1.DeletePropagationOrphan))
			if err != nil {
				t.Fatal(err)
			}
			controlplanetest.Eventually(t, "the resource is gone", isGone(c, owner))
			for _, object := range kept {
				if err := isLeft(t.Context(), c, object); err != nil {
					t.Errorf("%T %s: %v", object, object.GetName(), err)
				}
			}
		})
	}
}

// isLeft returns an error unless an object is as it was, and nobody's.
func isLeft(ctx context.Context, c client.Client, object client.Object) error {
	uid := object.GetUID()
	if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	if object.GetUID() != uid || object.GetDeletionTimestamp() != nil || len(object.GetOwnerReferences()) > 0 {
		return fmt.Errorf("it is another one, goes, or belongs to somebody: %+v", object)
	}
	for key := range object.GetLabels() {
		if strings.Contains(key, "espalier.dev/") || strings.Contains(key, "assembly.example.com/") {
			return errors.New("it has the label " + key)
		}
	}
	return nil
}
