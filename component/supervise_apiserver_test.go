package component_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const modeAnnotation = "test.example.com/mode"

// annotatedMode has the supervision that an annotation of the resource names.
type annotatedMode struct{ *supervised }

func (m annotatedMode) Reconcile(ctx context.Context, a *resources.Assembly) (reconcilers.Result, error) {
	m.mode = reconcilers.Supervision(a.Annotations[modeAnnotation])
	return m.supervised.Reconcile(ctx, a)
}

// TestSupervisionOnAPIServer: a component waits for an object of others, is suspended, resumed and withdrawn, and each
// object that changes brings it back.
func TestSupervisionOnAPIServer(t *testing.T) {
	t.Parallel()
	c, namespace := live(t), plane.Namespace(t)
	// Other tests have components of this prefix in other namespaces.
	own := cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}}
	mgr := newManager(t, plane.Config(t), ctrl.Options{Cache: own})
	root := component.NewComponentRoot(componentPrefix, resources.AssemblyGenerator(), assemblyOptions{
		Config: reconcilers.NewConfig(mgr, &resources.Assembly{}, time.Hour),
	})
	node := root.Reconciler.(assemblyNode)
	root.Reconciler = annotatedMode{&supervised{assemblyNode: node}}
	if err := root.SetupWithManager(t.Context(), mgr); err != nil {
		t.Fatal(err)
	}
	startManager(t, mgr)

	theirs := annotated(partOf(namespace, "theirs", "0"), generator.AnnotationPresence, "read-only",
		generator.AnnotationReadyWhen, "object.data.ready == 'yes'")
	server := manifestOf(t, namespace, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: server, annotations: {espalier.dev/apply-order: "1"}}
spec:
  replicas: 2
  selector: {matchLabels: {app: server}}
  template: {metadata: {labels: {app: server}}, spec: {containers: [{name: server, image: server}]}}
`)
	assembly := resources.NewAssembly(namespace, "all", theirs, server)
	if err := c.Create(t.Context(), assembly); err != nil {
		t.Fatal(err)
	}
	reasonIs := func(reason string) {
		t.Helper()
		controlplanetest.Eventually(t, "it is not "+reason, func(context.Context) error {
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(assembly), assembly); err != nil {
				return err
			}
			found := meta.FindStatusCondition(assembly.Status.Conditions, "Ready")
			if found == nil || found.Reason != reason {
				return fmt.Errorf("the condition is %+v", found)
			}
			return nil
		})
	}
	deployed := &appsv1.Deployment{}
	runs := func(replicas int32) {
		t.Helper()
		controlplanetest.Eventually(t, "it does not have the replicas", func(ctx context.Context) error {
			if err := c.Get(ctx, client.ObjectKeyFromObject(server), deployed); err != nil {
				return err
			}
			if *deployed.Spec.Replicas != replicas {
				return fmt.Errorf("it has %d", *deployed.Spec.Replicas)
			}
			deployed.Status = appsv1.DeploymentStatus{
				ObservedGeneration: deployed.Generation, Replicas: replicas, UpdatedReplicas: replicas, ReadyReplicas: replicas,
				AvailableReplicas: replicas,
				Conditions: []appsv1.DeploymentCondition{
					{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
					{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
				},
			}
			return c.Status().Update(ctx, deployed)
		})
	}
	mode := func(mode reconcilers.Supervision) {
		t.Helper()
		patch := client.MergeFrom(assembly.DeepCopy())
		metav1.SetMetaDataAnnotation(&assembly.ObjectMeta, modeAnnotation, string(mode))
		if err := c.Patch(t.Context(), assembly, patch); err != nil {
			t.Fatal(err)
		}
	}

	reasonIs(component.ReasonProcessing)
	other := partOf(namespace, "theirs", "0")
	if err := c.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	other.Data["ready"] = "yes"
	if err := c.Update(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	runs(2)
	reasonIs(component.ReasonReady)
	mode(reconcilers.Suspend)
	runs(0)
	reasonIs(component.ReasonSuspended)
	mode(reconcilers.Maintain)
	runs(2)
	reasonIs(component.ReasonReady)
	mode(reconcilers.Withdraw)
	reasonIs(component.ReasonDisabled)
	if assembly.Status.State != apis.ComponentPending || len(assembly.Finalizers) > 0 {
		t.Errorf("the resource is %+v, want it pending and without finalizers", assembly)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(server), deployed); !apierrs.IsNotFound(err) {
		t.Errorf("the read of the Deployment ends with %v, want it gone", err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(other), other); err != nil || len(other.Labels) > 0 {
		t.Errorf("what was only read is %+v (%v), want it without labels", other, err)
	}
}
