package testing_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
)

// The methods of a Differ say the same as go-cmp alone.
func TestDiffersAgreeWithTheOptions(t *testing.T) {
	deployment := func(change func(*appsv1.Deployment)) *appsv1.Deployment {
		d := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
			Spec:       appsv1.DeploymentSpec{Replicas: new(int32(2)), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1")}}}}}}},
			Status:     appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{{Type: "Available", LastTransitionTime: metav1.Unix(1, 0)}}},
		}
		change(d)
		return d
	}
	same := func(*appsv1.Deployment) {}
	changes := []func(*appsv1.Deployment){
		same, same,
		func(d *appsv1.Deployment) { d.Kind, d.APIVersion = "Deployment", "apps/v1" },
		func(d *appsv1.Deployment) { d.ResourceVersion, d.CreationTimestamp = "999", metav1.Unix(1, 0) },
		func(d *appsv1.Deployment) { d.Labels = map[string]string{} },
		func(d *appsv1.Deployment) { d.Labels = map[string]string{"a": "b"} },
		func(d *appsv1.Deployment) { d.Spec.Replicas = nil },
		func(d *appsv1.Deployment) { d.Spec.Template.ResourceVersion = "1" },
		func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].Resources.Limits["cpu"] = resource.MustParse("1000m")
		},
		func(d *appsv1.Deployment) { d.Status.Conditions[0].LastTransitionTime = metav1.Unix(2, 0) },
		func(d *appsv1.Deployment) { d.Status.Replicas = 3 },
		func(d *appsv1.Deployment) { d.Status.Conditions = nil },
	}
	toUnstructured := func(d *appsv1.Deployment) *unstructured.Unstructured {
		d.Kind, d.APIVersion = "Deployment", "apps/v1"
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
		if err != nil {
			t.Fatal(err)
		}
		return &unstructured.Unstructured{Object: content}
	}
	noTypes := runtime.NewScheme()
	for _, d := range []rtesting.Differ{rtesting.DefaultDiffer, rtesting.StrictDiffer} {
		strict, times := d == rtesting.StrictDiffer, cmp.Options{rtesting.IgnoreLastTransitionTime}
		if strict {
			times = nil
		}
		status := cmp.Options{reconcilers.IgnoreAllUnexported, times, cmpopts.EquateEmpty()}
		object := cmp.Options{status, rtesting.IgnoreTypeMeta}
		written := cmp.Options{object, rtesting.IgnoreCreationTimestamp, rtesting.IgnoreResourceVersion}
		for i, change := range changes {
			for j, other := range changes {
				x, y := deployment(change), deployment(other)
				ux, uy := toUnstructured(x.DeepCopy()), toUnstructured(y.DeepCopy())
				rx, ry := rtesting.NewApplyRefFromObject(ux, noTypes), rtesting.NewApplyRefFromObject(uy, noTypes)
				for what, pair := range map[string][2]string{
					"create":          {d.ResourceCreate(x, y), cmp.Diff(x, y, written)},
					"resource":        {d.Resource(x, y), cmp.Diff(x, y, object)},
					"status":          {d.ResourceStatusUpdate(x, y), cmp.Diff(x.Status, y.Status, status)},
					"stashed":         {d.StashedValue(x, y, ""), cmp.Diff(x, y, written)},
					"create, untyped": {d.ResourceCreate(ux, uy), cmp.Diff(ux, uy, written)},
					"status, untyped": {d.ResourceStatusUpdate(ux, uy), cmp.Diff(ux.Object["status"], uy.Object["status"], status)},
					"apply":           {d.ApplyRef(rx, ry), cmp.Diff(rx, ry, rtesting.NormalizeApplyConfiguration)},
				} {
					if (pair[0] == "") != (pair[1] == "") {
						t.Errorf("%s of %d and %d (strict is %t): said %q, not %q", what, i, j, strict, pair[0], pair[1])
					}
				}
			}
		}
	}
}
