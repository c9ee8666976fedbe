package testing_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rtesting "github.com/espalier-dev/espalier/testing"
	"github.com/espalier-dev/espalier/tracker"
)

func deployment(change func(*appsv1.Deployment)) client.Object {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	change(d)
	return d
}

func thing(change func(map[string]any)) client.Object {
	content := map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "one"}}
	change(content)
	return &unstructured.Unstructured{Object: content}
}

func TestDefaultDiffer(t *testing.T) {
	d := rtesting.DefaultDiffer
	typed, untyped := deployment(func(*appsv1.Deployment) {}), thing(func(map[string]any) {})
	changes := map[string]struct {
		before, after client.Object
		// Whether each comparison sees the change.
		created, resource, status bool
	}{
		"nothing":              {before: typed, after: typed},
		"nothing unstructured": {before: untyped, after: untyped},
		"empty list": {before: typed, after: deployment(func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers = []corev1.Container{}
			d.Status.Conditions = []appsv1.DeploymentCondition{}
		})},
		"type meta": {before: typed, after: deployment(func(d *appsv1.Deployment) { d.Kind, d.APIVersion = "Deployment", "apps/v1" })},
		"type meta unstructured": {
			before: untyped, after: thing(func(c map[string]any) { c["kind"] = "Other" }), created: true, resource: true,
		},
		"creation time": {
			before: typed, after: deployment(func(d *appsv1.Deployment) { d.CreationTimestamp = metav1.Unix(1, 0) }), resource: true,
		},
		"creation time unstructured": {
			before: untyped, resource: true,
			after: thing(func(c map[string]any) { c["metadata"].(map[string]any)["creationTimestamp"] = "x" }),
		},
		"version": {
			before: typed, after: deployment(func(d *appsv1.Deployment) { d.ResourceVersion = "1" }), resource: true,
		},
		"version unstructured": {
			before: untyped, resource: true,
			after: thing(func(c map[string]any) { c["metadata"].(map[string]any)["resourceVersion"] = "1" }),
		},
		"version of something else": {
			before: untyped, created: true, resource: true,
			after: thing(func(c map[string]any) { c["spec"] = map[string]any{"resourceVersion": "1"} }),
		},
		"transition time": {
			before: deployment(func(d *appsv1.Deployment) { d.Status.Conditions = []appsv1.DeploymentCondition{{}} }),
			after: deployment(func(d *appsv1.Deployment) {
				d.Status.Conditions = []appsv1.DeploymentCondition{{LastTransitionTime: metav1.Unix(1, 0)}}
			}),
		},
		"transition time unstructured": {
			before: thing(func(c map[string]any) { c["status"] = map[string]any{"lastTransitionTime": "x"} }),
			after:  thing(func(c map[string]any) { c["status"] = map[string]any{"lastTransitionTime": "y"} }),
		},
		"spec": {
			before: typed, created: true, resource: true,
			after: deployment(func(d *appsv1.Deployment) { d.Spec.Paused = true }),
		},
		"labels unstructured": {
			before: untyped, created: true, resource: true,
			after: thing(func(c map[string]any) { c["metadata"].(map[string]any)["labels"] = map[string]any{"a": "b"} }),
		},
		"status": {
			before: typed, created: true, resource: true, status: true,
			after: deployment(func(d *appsv1.Deployment) { d.Status.Replicas = 1 }),
		},
		"status unstructured": {
			before: untyped, created: true, resource: true, status: true,
			after: thing(func(c map[string]any) { c["status"] = map[string]any{"a": "b"} }),
		},
	}
	for name, tc := range changes {
		t.Run(name, func(t *testing.T) {
			for method, check := range map[string]struct {
				diff string
				seen bool
			}{
				"ResourceCreate":       {d.ResourceCreate(tc.before, tc.after), tc.created},
				"ResourceUpdate":       {d.ResourceUpdate(tc.before, tc.after), tc.created},
				"StashedValue":         {d.StashedValue(tc.before, tc.after, "key"), tc.created},
				"Resource":             {d.Resource(tc.before, tc.after), tc.resource},
				"ResourceStatusUpdate": {d.ResourceStatusUpdate(tc.before, tc.after), tc.status},
			} {
				if (check.diff != "") != check.seen {
					t.Errorf("%s: difference wanted %v, got %s", method, check.seen, check.diff)
				}
			}
		})
	}
}

func TestSelectorsAndConfigurationsAreNormalized(t *testing.T) {
	d := rtesting.DefaultDiffer
	for name, tc := range map[string]struct {
		diff string
		seen bool
	}{
		"empty selectors": {d.DeleteCollectionRef(rtesting.DeleteCollectionRef{}, rtesting.DeleteCollectionRef{
			Labels: labels.Everything(), Fields: fields.Everything(),
		}), false},
		"label selector": {d.DeleteCollectionRef(rtesting.DeleteCollectionRef{}, rtesting.DeleteCollectionRef{
			Labels: labels.Nothing(),
		}), true},
		"field selector": {d.DeleteCollectionRef(rtesting.DeleteCollectionRef{}, rtesting.DeleteCollectionRef{
			Fields: fields.OneTermEqualSelector("a", "b"),
		}), true},
		"track by equal selectors": {d.TrackRequest(
			rtesting.TrackRequest{TrackedReference: tracker.Reference{Selector: labels.SelectorFromSet(labels.Set{"a": "b"})}},
			rtesting.TrackRequest{TrackedReference: tracker.Reference{Selector: labels.Set{"a": "b"}.AsSelector()}},
		), false},
		"no configuration": {d.ApplyRef(rtesting.ApplyRef{}, rtesting.ApplyRef{}), false},
		"configurations of other types": {d.ApplyRef(
			rtesting.ApplyRef{ApplyConfiguration: client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{
				Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "a", "namespace": "b"}},
			})},
			rtesting.ApplyRef{ApplyConfiguration: corev1ac.Secret("a", "b")},
		), false},
		"configuration": {d.ApplyRef(rtesting.ApplyRef{}, rtesting.ApplyRef{ApplyConfiguration: corev1ac.Secret("a", "b")}), true},
	} {
		if (tc.diff != "") != tc.seen {
			t.Errorf("%s: difference wanted %v, got %s", name, tc.seen, tc.diff)
		}
	}
}

func TestColorizeDiff(t *testing.T) {
	const diff = "  a\n- b\n+ c\n"
	if got, want := rtesting.ColorizeDiff(diff), "  a\n- b\n+ c\n\n"; got != want {
		t.Errorf("without colour: want %q, got %q", want, got)
	}
	rtesting.DiffAddedColor.EnableColor()
	rtesting.DiffRemovedColor.EnableColor()
	defer rtesting.DiffAddedColor.DisableColor()
	defer rtesting.DiffRemovedColor.DisableColor()
	if got, want := rtesting.ColorizeDiff(diff), "  a\n\x1b[31m- b\x1b[0m\n\x1b[32m+ c\x1b[0m\n\n"; got != want {
		t.Errorf("with colour: want %q, got %q", want, got)
	}
}
