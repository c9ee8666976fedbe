package server_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/server"
)

// TestScaleOwnsReplicas applies objects with a number of replicas, and changes it by the scale.
func TestScaleOwnsReplicas(t *testing.T) {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}
	template := deployment("a").Spec.Template
	template.Labels = selector.MatchLabels
	for name, obj := range map[string]client.Object{
		"Deployment": &appsv1.Deployment{
			TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: meta("a"),
			Spec: appsv1.DeploymentSpec{Replicas: new(int32(1)), Selector: selector, Template: template},
		},
		"ReplicaSet": &appsv1.ReplicaSet{
			TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSet"}, ObjectMeta: meta("a"),
			Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(1)), Selector: selector, Template: template},
		},
		"StatefulSet": &appsv1.StatefulSet{
			TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"}, ObjectMeta: meta("a"),
			Spec: appsv1.StatefulSetSpec{Replicas: new(int32(1)), Selector: selector, Template: template},
		},
		"ReplicationController": &corev1.ReplicationController{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ReplicationController"}, ObjectMeta: meta("a"),
			Spec: corev1.ReplicationControllerSpec{
				Replicas: new(int32(1)), Selector: selector.MatchLabels, Template: &template,
			},
		},
		"custom resource": scaledWidget(),
	} {
		t.Run(name, func(t *testing.T) {
			run(t, server.Options{}, func(c cluster) {
				if name == "custom resource" {
					c.define(scaledWidgets())
				}
				c.scaleOwnsReplicas(obj)
			})
		})
	}
}

// scaledWidgets defines a kind with a scale.
func scaledWidgets() *apiextensionsv1.CustomResourceDefinition {
	definition := widgets()
	definition.Spec.Versions[0].Subresources.Scale = &apiextensionsv1.CustomResourceSubresourceScale{
		SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas",
	}
	return definition
}

func scaledWidget() client.Object {
	obj := widget("a", 0)
	_ = unstructured.SetNestedField(obj.Object, int64(1), "spec", "replicas")
	return obj
}

// scaleOwnsReplicas applies an object, scales it by each kind of write, and applies it again.
func (c cluster) scaleOwnsReplicas(obj client.Object) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	c.must(err)
	desired := &unstructured.Unstructured{Object: content}
	delete(desired.Object, "status")
	unstructured.RemoveNestedField(desired.Object, "metadata", "creationTimestamp")
	apply := func(options ...client.ApplyOption) error {
		return c.Apply(c.ctx, client.ApplyConfigurationFromUnstructured(desired.DeepCopy()),
			append(options, client.FieldOwner("applier"))...)
	}
	c.must(apply())
	live := desired.DeepCopy()
	c.get(live)
	c.owners(live, "applier Apply ")

	scale := &unstructured.Unstructured{}
	scale.SetAPIVersion("autoscaling/v1")
	scale.SetKind("Scale")
	c.must(c.SubResource("scale").Get(c.ctx, live, scale))
	c.must(unstructured.SetNestedField(scale.Object, int64(1), "spec", "replicas"))
	c.must(c.SubResource("scale").Update(c.ctx, live.DeepCopy(), client.WithSubResourceBody(scale),
		client.FieldOwner("none")))
	c.owners(live, "applier Apply ") // The number is what it was.

	c.must(c.SubResource("scale").Get(c.ctx, live, scale))
	c.must(unstructured.SetNestedField(scale.Object, int64(3), "spec", "replicas"))
	c.must(c.SubResource("scale").Update(c.ctx, live.DeepCopy(), client.WithSubResourceBody(scale),
		client.FieldOwner("updater")))
	c.owners(live, "updater Update scale")

	other := scale.DeepCopy()
	other.SetUID("of-another-object")
	other.SetResourceVersion("")
	if obj.GetObjectKind().GroupVersionKind().Group != "example.com" { // Custom resources do not look at it.
		c.refused(c.SubResource("scale").Update(c.ctx, live.DeepCopy(), client.WithSubResourceBody(other)),
			apierrors.IsConflict)
	}

	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":4}}`))
	c.must(c.SubResource("scale").Patch(c.ctx, live.DeepCopy(), patch, client.WithSubResourceBody(scale),
		client.FieldOwner("patcher")))
	c.owners(live, "patcher Update scale")

	c.refused(apply(), apierrors.IsConflict)
	c.must(apply(client.ForceOwnership))
	c.owners(live, "applier Apply ")
	if n, _, _ := unstructured.NestedInt64(live.Object, "spec", "replicas"); n != 1 {
		c.Errorf("after a forced apply there are %d replicas", n)
	}
}

// owners compares who manages the number of replicas of an object.
func (c cluster) owners(obj *unstructured.Unstructured, want ...string) {
	c.Helper()
	c.get(obj)
	got := []string{}
	for _, entry := range obj.GetManagedFields() {
		fields := map[string]map[string]any{}
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
			c.Fatal(err)
		}
		if _, ok := fields["f:spec"]["f:replicas"]; ok {
			got = append(got, fmt.Sprintf("%s %s %s", entry.Manager, entry.Operation, entry.Subresource))
		}
	}
	if !slices.Equal(got, want) {
		c.Errorf("the replicas are of %q, want %q; %v", got, want, obj.GetManagedFields())
	}
}
