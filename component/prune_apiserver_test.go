package component_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// renamedObject is a manifest with three verbs, its name, a value, and more fields, and a value that is invalid.
type renamedObject struct{ manifest, invalid string }

var renamedObjects = map[string]renamedObject{
	"PersistentVolumeClaim": {
		"{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: %s}, " +
			"spec: {accessModes: [%s], resources: {requests: {storage: 1Gi}}}%s}", "Sometimes",
	},
	"Deployment": {
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s}, spec: {replicas: 0, " +
			"selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, " +
			"spec: {restartPolicy: '%s', containers: [{name: a, image: a}]}}}%s}", "Never",
	},
	"ConfigMap": {"{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {'a%s': b}%s}", "/"},
}

// valid are the values of the objects that are accepted.
var valid = map[string]string{"PersistentVolumeClaim": "ReadWriteOnce"}

// isLeaving reports an object that is there and not being deleted. A PersistentVolumeClaim has a finalizer.
func isLeaving(ctx context.Context, c client.Client, object client.Object) error {
	live := object.DeepCopyObject().(client.Object)
	err := c.Get(ctx, client.ObjectKeyFromObject(object), live)
	if apierrs.IsNotFound(err) || err == nil && live.GetDeletionTimestamp() != nil {
		return nil
	}
	return errors.Join(fmt.Errorf("%s is there", object.GetName()), err)
}

// TestRenamedObjectIsKept: an object that is renamed stays until its successor is written, whatever keeps it from being
// so.
func TestRenamedObjectIsKept(t *testing.T) {
	t.Parallel()
	c, namespace := live(t), plane.Namespace(t)
	startComponents(t, plane.Config(t), namespace, assemblyOptions{})
	// No controller finishes the deletion of a namespace.
	going := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "going-", Finalizers: []string{"test.local/stays"}}}
	if err := errors.Join(c.Create(t.Context(), going), c.Delete(t.Context(), going)); err != nil {
		t.Fatal(err)
	}
	for kind, object := range renamedObjects {
		made := func(home, name, content, field string) client.Object {
			return manifestOf(t, home, fmt.Sprintf(object.manifest, name, content, field))
		}
		for variant, successor := range map[string]func(name string) client.Object{
			"typo":    func(name string) client.Object { return made(namespace, name, valid[kind], ", spek: {a: b}") },
			"invalid": func(name string) client.Object { return made(namespace, name, object.invalid, "") },
			"namespace": func(name string) client.Object {
				return made(going.Name, name, valid[kind], "")
			},
			"taken": func(name string) client.Object {
				theirs := made(namespace, name, valid[kind], "")
				if err := c.Create(t.Context(), theirs); err != nil {
					t.Error(err)
				}
				return made(namespace, name, valid[kind], "")
			},
		} {
			// What is refused at first is mended in the end.
			t.Run(kind+" "+variant, func(t *testing.T) {
				t.Parallel()
				id := strings.ToLower(kind + "-" + variant)
				old := made(namespace, id+"-old", valid[kind], "")
				assembly := resources.NewAssembly(namespace, id, old)
				if err := c.Create(t.Context(), assembly); err != nil {
					t.Fatal(err)
				}
				controlplanetest.Eventually(t, "it is not deployed", func(ctx context.Context) error {
					return c.Get(ctx, client.ObjectKeyFromObject(old), old.DeepCopyObject().(client.Object))
				})
				next := successor(id + "-new")
				desire(t, c, assembly, next)
				want := fmt.Sprintf("%s %s/%s-old: it is kept until these are ", kind, namespace, id)
				controlplanetest.Eventually(t, "it is not said what is kept", func(ctx context.Context) error {
					if err := c.Get(ctx, client.ObjectKeyFromObject(assembly), assembly); err != nil {
						return err
					}
					condition := assembly.Status.Conditions[0]
					if reason := condition.Reason; !strings.Contains(condition.Message, want) ||
						reason != "Error" && reason != "PruneWaits" {
						return fmt.Errorf("it is %s: %s", reason, condition.Message)
					}
					return nil
				})
				if err := isLeaving(t.Context(), c, old); err == nil {
					t.Errorf("%s is gone or being deleted, want it kept", old.GetName())
				}
				if variant == "taken" {
					if err := c.Delete(t.Context(), next); err != nil {
						t.Error(err)
					}
				}
				desire(t, c, assembly, made(namespace, id+"-mended", valid[kind], ""))
				controlplanetest.Eventually(t, "the old one stays", func(ctx context.Context) error {
					return errors.Join(bind(ctx, c, namespace, id+"-mended"), isLeaving(ctx, c, old))
				})
			})
		}
	}
}

// desire gives a component other objects.
func desire(t *testing.T, c client.Client, assembly *resources.Assembly, objects ...client.Object) {
	t.Helper()
	controlplanetest.Eventually(t, "it does not change", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(assembly), assembly); err != nil {
			return err
		}
		assembly.SetObjects(objects...)
		return c.Update(ctx, assembly)
	})
}

// bind binds a claim if there is one, as a provisioner would.
func bind(ctx context.Context, c client.Client, namespace, name string) error {
	claim := &corev1.PersistentVolumeClaim{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, claim); err != nil {
		return client.IgnoreNotFound(err)
	}
	claim.Status.Phase = corev1.ClaimBound
	return c.Status().Update(ctx, claim)
}

// TestDataIsKeptUntilAllIsReady: a claim and a generated Secret are pruned when what takes their place runs.
func TestDataIsKeptUntilAllIsReady(t *testing.T) {
	t.Parallel()
	c, namespace := live(t), plane.Namespace(t)
	startComponents(t, plane.Config(t), namespace, assemblyOptions{})
	claim := manifestOf(t, namespace,
		fmt.Sprintf(renamedObjects["PersistentVolumeClaim"].manifest, "data", "ReadWriteOnce", ""))
	secret := manifestOf(t, namespace, "{apiVersion: v1, kind: Secret, metadata: {name: login, "+
		"annotations: {espalier.dev/reconcile-policy: once}}, stringData: {a: b}}")
	assembly := resources.NewAssembly(namespace, "all", claim, secret, partOf(namespace, "old", "0"))
	if err := c.Create(t.Context(), assembly); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "it is not deployed", func(ctx context.Context) error {
		return errors.Join(bind(ctx, c, namespace, "data"), hasState(ctx, c, assembly, apis.ComponentReady))
	})
	desire(t, c, assembly, manifestOf(t, namespace,
		"{apiVersion: v1, kind: Pod, metadata: {name: waits}, spec: {containers: [{name: a, image: a}]}}"))
	controlplanetest.Eventually(t, "the condition does not say what is kept", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(assembly), assembly); err != nil {
			return err
		}
		condition := assembly.Status.Conditions[0]
		want := "PersistentVolumeClaim " + namespace + "/data: it is kept until these are ready: "
		if condition.Reason != "PruneWaits" || !strings.Contains(condition.Message, want) ||
			!strings.Contains(condition.Message, "Pod "+namespace+"/waits") {
			return fmt.Errorf("it is %s: %s", condition.Reason, condition.Message)
		}
		return isLeaving(ctx, c, partOf(namespace, "old", "0"))
	})
	for _, object := range []client.Object{claim, secret} {
		if err := isLeaving(t.Context(), c, object); err == nil {
			t.Errorf("%s is gone or being deleted, want it kept", object.GetName())
		}
	}
	desire(t, c, assembly, partOf(namespace, "small", "0"))
	for _, object := range []client.Object{claim, secret} {
		controlplanetest.Eventually(t, "it is kept", func(ctx context.Context) error {
			return isLeaving(ctx, c, object)
		})
	}
}
