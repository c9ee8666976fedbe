package espalier_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var (
	errBoom    = errors.New("boom")
	outOfStock = espalier.NotReadyAfter(time.Minute, "NoColor", "there is no color in %s", "stock")
)

func TestOwns(t *testing.T) {
	stranger := configMap.With(exists, func(child *corev1.ConfigMap) { child.OwnerReferences = nil })
	invalid := apierrs.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "gadget", nil)

	run(t, tests{
		"there is no child yet": {
			Resource:      widget.Object(),
			ExpectCreates: []object{configMap}, ExpectEvents: makes,
			ExpectResource: widget.With(is("Ready", metav1.ConditionTrue, "Ready", "")).Object(),
		},
		"nothing to do": {
			Resource:       widget.With(is("Ready", metav1.ConditionTrue, "Ready", "")).Object(),
			GivenObjects:   []object{configMap.With(exists)},
			ExpectResource: widget.With(is("Ready", metav1.ConditionTrue, "Ready", "")).Object(),
		},
		// Nobody knows who put it there, so only the API server can tell whether it has to go.
		"a label that nobody desires": {
			Resource: widget.Object(),
			GivenObjects: []object{configMap.With(exists, func(c *corev1.ConfigMap) {
				c.Labels = map[string]string{"old": "yes"}
			})},
			ExpectApplies: []rtesting.ApplyRef{{
				Kind: "ConfigMap", Namespace: "default", Name: "gadget",
				ApplyConfiguration: client.ApplyConfigurationFromUnstructured(unstructuredOf(configMap.With(
					func(c *corev1.ConfigMap) { c.UID = "gadget-child-uid" }))),
			}},
			ExpectResource: widget.With(is("Ready", metav1.ConditionTrue, "Ready", "")).Object(),
		},
		"no child is desired": {
			Resource:       widget.With(with("none")).Object(),
			ExpectResource: widget.With(with("none"), is("Ready", metav1.ConditionTrue, "NotDesired", "")).Object(),
		},
		"no child is desired any more": {
			Resource:      widget.With(with("none")).Object(),
			GivenObjects:  []object{configMap.With(exists)},
			ExpectDeletes: deletes, ExpectEvents: deleted,
			ExpectResource: widget.With(with("none"), is("Ready", metav1.ConditionTrue, "NotDesired", "")).Object(),
		},
		"not ready leaves the child as it is": {
			Resource:     widget.With(with("not ready")).Object(),
			GivenObjects: []object{configMap.With(exists, func(c *corev1.ConfigMap) { c.Data["color"] = "red" })},
			ExpectResource: widget.With(with("not ready"),
				is("Ready", metav1.ConditionFalse, "NoColor", "there is no color in stock")).Object(),
			ExpectedResult: reconcilers.Result{RequeueAfter: time.Minute},
		},
		"an error is returned": {
			Resource:  widget.With(with("error")).Object(),
			ShouldErr: true,
		},
		"the name is taken": {
			Resource:        widget.Object(),
			GivenObjects:    []object{stranger},
			APIGivenObjects: []object{stranger},
			ExpectCreates:   []object{configMap},
			ExpectTracks:    []rtesting.TrackRequest{rtesting.NewTrackRequest(stranger, widget, scheme)},
			ExpectEvents: event(corev1.EventTypeWarning, "CreationFailed",
				`Failed to create ConfigMap "gadget": configmaps "gadget" already exists`),
			ExpectResource: widget.With(is("Ready", metav1.ConditionFalse, "AlreadyExists",
				`configmaps "gadget" already exists`)).Object(),
		},
		"the server refuses it": {
			Resource: widget.Object(),
			WithReactors: []rtesting.ReactionFunc{
				rtesting.InduceFailure("create", "ConfigMap", rtesting.InduceFailureOpts{Error: invalid}),
			},
			ExpectCreates: []object{configMap},
			ExpectEvents: event(corev1.EventTypeWarning, "CreationFailed",
				`Failed to create ConfigMap "gadget": ConfigMap "gadget" is invalid`),
			ExpectResource: widget.With(is("Ready", metav1.ConditionFalse, "Invalid",
				`ConfigMap "gadget" is invalid`)).Object(),
		},
		"the resource is terminating": {
			Resource:      terminating.Object(),
			GivenObjects:  []object{configMap.With(exists)},
			ExpectDeletes: deletes, ExpectEvents: deleted,
		},
	}, func() node { return espalier.Owns("ConfigMap", desiredConfigMap).Reports("Ready") })
}

// A refusal to change a field says which switch helps, and two elements of the same keys are refused before a request.
func TestOwnsExplainsRefusals(t *testing.T) {
	moved := deployment.With(func(d *appsv1.Deployment) {
		d.Spec.Selector.MatchLabels = map[string]string{"app": "moved"}
		d.Spec.Template.Labels = d.Spec.Selector.MatchLabels
	})
	const immutable = `Deployment.apps "gadget" is invalid: spec.selector: Invalid value: ` +
		`{"matchLabels":{"app":"moved"}}: field is immutable`
	run(t, tests{
		"a field that cannot be changed": {
			Resource:     widget.Object(),
			GivenObjects: []object{deployment.With(exists)},
			ExpectApplies: []rtesting.ApplyRef{{
				Group: "apps", Kind: "Deployment", Namespace: "default", Name: "gadget",
				ApplyConfiguration: rtesting.Applied(moved.With(func(d *appsv1.Deployment) { d.UID = "gadget-child-uid" })),
			}},
			ExpectEvents: event(corev1.EventTypeWarning, "UpdateFailed", `Failed to update Deployment "gadget": `+immutable),
			ExpectResource: widget.With(is("Ready", metav1.ConditionFalse, "Invalid",
				"spec.selector cannot be changed, but Recreates (RecreateImmutable of a literal) deletes the object and "+
					"creates it again: "+immutable)).Object(),
		},
	}, func() node {
		return espalier.Owns("Deployment", func(context.Context, *resources.Widget) (*appsv1.Deployment, error) {
			return moved.With(func(d *appsv1.Deployment) { d.OwnerReferences = nil }).Object(), nil
		}).Reports("Ready")
	})
	run(t, tests{
		"two variables of one name": {
			Resource: widget.Object(),
			ExpectEvents: event(corev1.EventTypeWarning, "CreationFailed", `Failed to create Deployment "gadget": `+
				`Deployment.apps "gadget" is invalid: spec.template.spec.containers[0].env: Duplicate value: "name A"`),
			ExpectResource: widget.With(is("Ready", metav1.ConditionFalse, "Invalid", `Deployment.apps "gadget" is invalid: `+
				`spec.template.spec.containers[0].env: Duplicate value: "name A"`)).Object(),
		},
	}, func() node {
		return espalier.Owns("Deployment", func(context.Context, *resources.Widget) (*appsv1.Deployment, error) {
			return deployment.With(func(d *appsv1.Deployment) {
				d.OwnerReferences = nil
				d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "A", Value: "2"}}
			}).Object(), nil
		}).Reports("Ready")
	})
}

// What nobody would see otherwise is returned, so that the root shows it.
func TestOwnsWithoutCondition(t *testing.T) {
	invalid := apierrs.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "gadget", nil)
	run(t, tests{
		"the server refuses it": {
			Resource: widget.Object(),
			WithReactors: []rtesting.ReactionFunc{
				rtesting.InduceFailure("create", "ConfigMap", rtesting.InduceFailureOpts{Error: invalid}),
			},
			ExpectCreates: []object{configMap},
			ExpectEvents: event(corev1.EventTypeWarning, "CreationFailed",
				`Failed to create ConfigMap "gadget": ConfigMap "gadget" is invalid`),
			ShouldErr: true,
		},
		"not ready is no error": {
			Resource:       widget.With(with("not ready")).Object(),
			ExpectedResult: reconcilers.Result{RequeueAfter: time.Minute},
		},
	}, func() node { return espalier.Owns("ConfigMap", desiredConfigMap) })

	failed := func(w *resources.Widget) { w.Status.ObservedGeneration = 0 }
	rtesting.RootTests{
		"the root names the node": {
			Request:      gadget,
			GivenObjects: []object{widget},
			WithReactors: []rtesting.ReactionFunc{
				rtesting.InduceFailure("create", "ConfigMap", rtesting.InduceFailureOpts{Error: invalid}),
			},
			ExpectCreates: []object{configMap},
			ExpectEvents: event(corev1.EventTypeWarning, "CreationFailed",
				`Failed to create ConfigMap "gadget": ConfigMap "gadget" is invalid`),
			ExpectStatusUpdates: []object{widget.With(is("ChildReady", metav1.ConditionUnknown, "Initializing", ""),
				is("Ready", metav1.ConditionFalse, "Terminal", `Widget/Env: ConfigMap "gadget" is invalid`), about(3), failed)},
			ShouldErr: true,
		},
	}.RunRoot(t, scheme, func(config reconcilers.Config) reconcile.Reconciler {
		return espalier.For(config, espalier.Owns("Env", desiredConfigMap))
	})
}

func TestOwnsReportsReadiness(t *testing.T) {
	given := func(status appsv1.DeploymentStatus) []object {
		return []object{deployment.With(exists, func(d *appsv1.Deployment) {
			d.Generation, d.Status = 1, status
			d.Status.ObservedGeneration = 1
		})}
	}
	reports := func(status metav1.ConditionStatus, reason, message string) *resources.Widget {
		return widget.With(is("DeploymentReady", status, reason, message)).Object()
	}
	run(t, tests{
		"in progress": {
			Resource: widget.Object(),
			GivenObjects: given(appsv1.DeploymentStatus{
				Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 1, AvailableReplicas: 1,
			}),
			ExpectResource: reports(metav1.ConditionFalse, "InProgress", "Deployment default/gadget: 1 of 3 replicas available"),
		},
		"ready": {
			Resource: widget.Object(),
			GivenObjects: given(appsv1.DeploymentStatus{
				Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 3, AvailableReplicas: 3,
				Conditions: []appsv1.DeploymentCondition{{Type: "Available", Status: "True"}},
			}),
			ExpectResource: reports(metav1.ConditionTrue, "Ready", ""),
		},
		"failed at once": {
			Resource: widget.Object(),
			GivenObjects: given(appsv1.DeploymentStatus{
				Conditions: []appsv1.DeploymentCondition{{Type: "ReplicaFailure", Status: "True", Reason: "FailedCreate"}},
			}),
			ExpectResource: reports(metav1.ConditionFalse, "Failed", "Deployment default/gadget: 0 of 3 replicas available (FailedCreate)"),
		},
		"terminating": {
			Resource: widget.Object(),
			GivenObjects: []object{deployment.With(exists, func(d *appsv1.Deployment) {
				d.DeletionTimestamp, d.Finalizers = &created, []string{"test.espalier.dev/other"}
			})},
			ExpectResource: reports(metav1.ConditionFalse, "Terminating",
				"Deployment default/gadget: is being deleted, and waits for the finalizer test.espalier.dev/other"),
		},
	}, func() node {
		return espalier.Owns("Deployment", desiredDeployment).Reports("DeploymentReady")
	})
}

func unstructuredOf(obj client.Object) *unstructured.Unstructured {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj.DeepCopyObject())
	if err != nil {
		panic(err)
	}
	u := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	u.SetAPIVersion("v1")
	u.SetKind("ConfigMap")
	return u
}
