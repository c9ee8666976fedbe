package cascade_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	"github.com/espalier-dev/espalier/testing/simulation"
	"github.com/espalier-dev/espalier/testing/simulation/internal/stories"
)

const namespace = "default"

func named(name string) metav1.ObjectMeta { return stories.Named(namespace, name) }

// tree has a node of each way to keep objects: with an owner reference, with a label and a finalizer, and with an
// inventory. Each runs in the short form and as a literal where there are both.
func tree(config reconcilers.Config) *reconcilers.ResourceReconciler[*resources.Assembly] {
	r := espalier.For(config,
		espalier.Owns("Settings", func(_ context.Context, a *resources.Assembly) (*corev1.ConfigMap, error) {
			return &corev1.ConfigMap{ObjectMeta: named(a.Name + "-settings")}, nil
		}),
		espalier.OwnsEach("Keys", func(_ context.Context, a *resources.Assembly) ([]*corev1.Secret, error) {
			return []*corev1.Secret{{ObjectMeta: named(a.Name + "-a")}, {ObjectMeta: named(a.Name + "-b")}}, nil
		}),
		espalier.Owns("Role", func(_ context.Context, a *resources.Assembly) (*rbacv1.ClusterRole, error) {
			return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{
				Name: a.Name + "-role", Labels: map[string]string{"keep": "yes"},
			}}, nil
		}),
		espalier.OwnsEach("Bindings", func(_ context.Context, a *resources.Assembly) ([]*rbacv1.ClusterRoleBinding, error) {
			return []*rbacv1.ClusterRoleBinding{{
				ObjectMeta: metav1.ObjectMeta{Name: a.Name + "-binding"},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: a.Name + "-role"},
			}}, nil
		}),
		espalier.Runs("Outside", func(context.Context, *resources.Assembly) error { return nil }).Finalizes(
			"outside.example.com/finalizer", func(ctx context.Context, a *resources.Assembly) error {
				return rtesting.Call(ctx, "unregister", func() error {
					registry.In(ctx).gone = append(registry.In(ctx).gone, a.Name)
					return nil
				})
			}),
		&component.ComponentReconciler[*resources.Assembly]{
			Prefix: "assembly.example.com", Condition: "Deployed",
			Generator: generator.GeneratorFunc(
				func(_ context.Context, namespace, name string, _ generator.Unstructurable) ([]client.Object, error) {
					return []client.Object{
						&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-part"}},
						&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name + "-part"}},
					}, nil
				}),
		},
	)
	return r
}

// outside is what is told about each resource that goes.
type outside struct{ gone []string }

var registry simulation.External[outside]

func cluster(t *testing.T) simulation.Options {
	t.Helper()
	scheme := resources.NewScheme()
	rules, err := tree(reconcilers.Config{}).Describe().PolicyRules(scheme, nil)
	if err != nil {
		t.Fatal(err)
	}
	return simulation.Options{
		Operator: func(ctx context.Context, mgr ctrl.Manager) error {
			return tree(espalier.NewConfig(mgr)).SetupWithManager(ctx, mgr)
		},
		Scheme:      scheme,
		Definitions: []*apiextensionsv1.CustomResourceDefinition{resources.AssemblyCRD()},
		Rules: append(rules, rbacv1.PolicyRule{
			APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"},
		}, rbacv1.PolicyRule{
			APIGroups: []string{"", rbacv1.GroupName}, Resources: []string{"configmaps", "clusterroles"},
			Verbs: []string{"*"},
		}),
	}
}

// objects are what a resource has.
func objects() []client.Object {
	cluster := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	return []client.Object{
		&corev1.ConfigMap{ObjectMeta: named("house-settings")},
		&corev1.Secret{ObjectMeta: named("house-a")},
		&corev1.Secret{ObjectMeta: named("house-b")},
		&rbacv1.ClusterRole{ObjectMeta: cluster("house-role")},
		&rbacv1.ClusterRoleBinding{ObjectMeta: cluster("house-binding")},
		&corev1.ConfigMap{ObjectMeta: named("house-part")},
		&rbacv1.ClusterRole{ObjectMeta: cluster("house-part")},
	}
}

// made creates a resource, and returns what it has.
func made(w *simulation.World, house *resources.Assembly) map[types.UID]client.Object {
	w.Helper()
	w.Create(house)
	w.Rest()
	all := map[types.UID]client.Object{}
	for _, object := range objects() {
		w.Get(object)
		all[object.GetUID()] = object
	}
	return all
}

func kubectl(w *simulation.World) client.Client {
	w.Helper()
	c, err := client.New(w.Config("kubectl"), client.Options{Scheme: resources.NewScheme()})
	if err != nil {
		w.Fatal(err)
	}
	return c
}

// remove deletes a resource as kubectl does with --cascade.
func remove(w *simulation.World, obj client.Object, cascade metav1.DeletionPropagation) {
	w.Helper()
	err := kubectl(w).Delete(w.Context(), obj, client.PropagationPolicy(cascade))
	if err != nil && !apierrs.IsNotFound(err) {
		w.Fatal(err)
	}
}

// isUnseen waits until the garbage collector has done what the user wants, and reports whether that was while the
// operator was dead: nobody can know of it then.
func isUnseen(w *simulation.World, house *resources.Assembly) bool {
	w.Helper()
	unseen := false
	c := kubectl(w)
	w.Until("the garbage collector is done", func() bool {
		live := &resources.Assembly{}
		if err := c.Get(w.Context(), client.ObjectKeyFromObject(house), live); err != nil {
			return apierrs.IsNotFound(err)
		}
		unseen = live.Annotations["espalier.dev/orphan"] == ""
		return !slices.Contains(live.Finalizers, metav1.FinalizerOrphanDependents)
	})
	return unseen && slices.ContainsFunc(w.Happened(), func(f simulation.Fault) bool {
		return f.Kind == simulation.DiesBefore || f.Kind == simulation.DiesAfter
	})
}

// areLeft fails the story unless the resource is gone, and its objects are nobody's.
func areLeft(w *simulation.World, house *resources.Assembly, all map[types.UID]client.Object) {
	w.Helper()
	if w.Exists(house) {
		w.Get(house)
		w.Errorf("the resource is there: %+v", house.ObjectMeta)
	}
	if !slices.Contains(registry.Of(w).gone, house.Name) {
		w.Error("the function that finalizes has not run")
	}
	for uid, object := range all {
		if !w.Exists(object) {
			w.Errorf("%T %s is gone", object, object.GetName())
			continue
		}
		w.Get(object)
		if object.GetUID() != uid || object.GetDeletionTimestamp() != nil || len(object.GetOwnerReferences()) > 0 {
			w.Errorf("%T %s is not as it was: %+v", object, object.GetName(), object)
		}
		for _, marks := range []map[string]string{object.GetLabels(), object.GetAnnotations()} {
			for key := range marks {
				if strings.Contains(key, "espalier.dev/") || strings.Contains(key, "assembly.example.com/") {
					w.Errorf("%T %s has the mark %s", object, object.GetName(), key)
				}
			}
		}
		if object.GetName() == "house-role" && object.GetLabels()["keep"] != "yes" {
			w.Error("the label of the author is gone")
		}
	}
}

// TestOrphan deletes a resource so that its objects stay, with each fault. If the operator is dead until the garbage
// collector is done, only those with an owner reference do.
func TestOrphan(t *testing.T) {
	t.Parallel()
	simulation.RunFaults(t, cluster(t), func(w *simulation.World) {
		house := resources.NewAssembly(namespace, "house")
		all := made(w, house)
		remove(w, house, metav1.DeletePropagationOrphan)
		if isUnseen(w, house) {
			maps.DeleteFunc(all, func(_ types.UID, object client.Object) bool {
				return len(object.GetOwnerReferences()) == 0
			})
		}
		w.Rest()
		areLeft(w, house, all)
		w.Idle(time.Hour)
	})
}

// TestOrphanWhileTheOperatorStandsStill deletes a resource while the operator does nothing: when it goes on, the garbage
// collector is done.
func TestOrphanWhileTheOperatorStandsStill(t *testing.T) {
	t.Parallel()
	simulation.Run(t, cluster(t), func(w *simulation.World) {
		house := resources.NewAssembly(namespace, "house")
		all := made(w, house)
		w.Freeze()
		remove(w, house, metav1.DeletePropagationOrphan)
		w.Until("the garbage collector is done", func() bool {
			w.Get(house)
			return house.DeletionTimestamp != nil && len(house.Finalizers) > 0 &&
				!slices.Contains(house.Finalizers, metav1.FinalizerOrphanDependents)
		})
		w.Resume()
		w.Rest()
		areLeft(w, house, all)
	})
}

// TestOrphanOfAnother has the annotation of another resource, as a backup does. It says nothing.
func TestOrphanOfAnother(t *testing.T) {
	t.Parallel()
	simulation.Run(t, cluster(t), func(w *simulation.World) {
		house := resources.NewAssembly(namespace, "house")
		house.Annotations = map[string]string{"espalier.dev/orphan": "0b0d9f0e-7f0c-4a55-8c0f-7e0f2f5d7a11"}
		all := made(w, house)
		remove(w, house, metav1.DeletePropagationBackground)
		w.Rest()
		for _, object := range all {
			if w.Exists(object) {
				w.Errorf("%T %s is left", object, object.GetName())
			}
		}
	})
}

// TestAgain creates a resource again that was deleted without its objects.
func TestAgain(t *testing.T) {
	t.Parallel()
	simulation.Run(t, cluster(t), func(w *simulation.World) {
		house := resources.NewAssembly(namespace, "house")
		all := made(w, house)
		remove(w, house, metav1.DeletePropagationOrphan)
		w.Until("the resource is gone", func() bool { return !w.Exists(house) })
		house = resources.NewAssembly(namespace, "house")
		w.Create(house)
		w.Rest()
		for uid, object := range all {
			w.Get(object)
			if object.GetUID() != uid || object.GetDeletionTimestamp() != nil {
				w.Errorf("%T %s was replaced", object, object.GetName())
			}
		}
		remove(w, house, metav1.DeletePropagationBackground)
		w.Rest()
		for _, object := range all {
			adopted := strings.HasSuffix(object.GetName(), "-part")
			if !adopted && !w.Exists(object) {
				w.Errorf("%T %s was deleted with a resource that it never belonged to", object, object.GetName())
			}
		}
	})
}

// TestForeground deletes a resource whose objects go first. Somebody creates each of them again, and no later one is
// deleted.
func TestForeground(t *testing.T) {
	t.Parallel()
	simulation.Run(t, cluster(t), func(w *simulation.World) {
		house := resources.NewAssembly(namespace, "house")
		all := made(w, house)
		remove(w, house, metav1.DeletePropagationForeground)
		for uid, object := range all {
			w.Until("the object is gone", func() bool { return !w.Exists(object) || isAnother(w, object, uid) })
			again := object.DeepCopyObject().(client.Object)
			again.SetResourceVersion("")
			again.SetUID("")
			again.SetOwnerReferences(nil)
			again.SetLabels(nil)
			again.SetAnnotations(nil)
			again.SetManagedFields(nil)
			again.SetDeletionTimestamp(nil)
			w.Create(again)
		}
		w.Rest()
		if w.Exists(house) {
			w.Error("the resource is there")
		}
		for uid, object := range all {
			if !w.Exists(object) || !isAnother(w, object, uid) {
				w.Errorf("%T %s, which was created again, is gone", object, object.GetName())
			}
		}
	})
}

func isAnother(w *simulation.World, object client.Object, uid types.UID) bool {
	w.Get(object)
	return object.GetUID() != uid
}
