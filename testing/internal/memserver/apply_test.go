package memserver_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/espalier-dev/espalier/testing/internal/memserver"
)

type data = map[string]string

// step is one write to ConfigMap default/settings by a manager.
type step struct {
	by     string
	create data
	update data
	apply  data
	force  bool
	// conflict says that the step is refused because another manager owns a field.
	conflict bool
}

func TestApplyKnowsWhoOwnsWhat(t *testing.T) {
	tests := map[string]struct {
		reason string
		given  data
		steps  []step
		want   data
	}{
		"creates": {
			reason: "an apply to a missing object creates it",
			steps:  []step{{by: "a", apply: data{"k": "1"}}},
			want:   data{"k": "1"},
		},
		"keeps what others created": {
			reason: "an apply touches only what it names",
			steps:  []step{{by: "a", create: data{"k": "1"}}, {by: "b", apply: data{"l": "1"}}},
			want:   data{"k": "1", "l": "1"},
		},
		"removes what leaves the intent": {
			reason: "nobody else owns the field",
			steps:  []step{{by: "a", apply: data{"k": "1", "l": "1"}}, {by: "a", apply: data{"k": "1"}}},
			want:   data{"k": "1"},
		},
		"keeps what leaves the intent but is shared": {
			reason: "b still wants the field",
			steps: []step{
				{by: "a", apply: data{"k": "1", "l": "1"}},
				{by: "b", apply: data{"l": "1"}},
				{by: "a", apply: data{"k": "1"}},
			},
			want: data{"k": "1", "l": "1"},
		},
		"conflicts with an apply": {
			steps: []step{{by: "a", apply: data{"k": "1"}}, {by: "b", apply: data{"k": "2"}, conflict: true}},
			want:  data{"k": "1"},
		},
		"conflicts with a create before any apply": {
			reason: "ownership is worked out late, but of all writes",
			steps:  []step{{by: "a", create: data{"k": "1"}}, {by: "b", apply: data{"k": "2"}, conflict: true}},
			want:   data{"k": "1"},
		},
		"conflicts with an update before any apply": {
			steps: []step{
				{by: "a", create: data{"k": "1"}},
				{by: "b", update: data{"k": "2"}},
				{by: "a", apply: data{"k": "1"}, conflict: true},
			},
			want: data{"k": "2"},
		},
		"does not conflict with a manager that lost the field": {
			reason: "b's update took the field from a",
			steps: []step{
				{by: "a", create: data{"k": "1", "l": "1"}},
				{by: "b", update: data{"k": "2", "l": "1"}},
				{by: "b", apply: data{"k": "3"}, conflict: true},
				{by: "b", apply: data{"k": "3"}, force: true},
			},
			want: data{"k": "3", "l": "1"},
		},
		"conflicts with an update after an apply": {
			steps: []step{
				{by: "a", apply: data{"k": "1"}},
				{by: "b", update: data{"k": "2"}},
				{by: "a", apply: data{"k": "1"}, conflict: true},
			},
			want: data{"k": "2"},
		},
		"conflicts with what was given": {
			reason: "somebody must have written it",
			given:  data{"k": "1"},
			steps:  []step{{by: "a", apply: data{"k": "2"}, conflict: true}},
			want:   data{"k": "1"},
		},
		"takes over by force": {
			given: data{"k": "1"},
			steps: []step{{by: "a", apply: data{"k": "2"}, force: true}, {by: "a", apply: data{"k": "3"}}},
			want:  data{"k": "3"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			builder := fake.NewClientBuilder()
			if tc.given != nil {
				builder = builder.WithObjects(configMap(tc.given))
			}
			c, _ := memserver.New(clientgoscheme.Scheme).Build(builder)
			for i, s := range tc.steps {
				err := s.run(c)
				if apierrors.IsConflict(err) != s.conflict || (err != nil && !s.conflict) {
					t.Fatalf("step %d: conflict %v wanted (%s), got error %v", i, s.conflict, tc.reason, err)
				}
			}
			got := &corev1.ConfigMap{}
			if err := c.Get(context.Background(), client.ObjectKeyFromObject(configMap(nil)), got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Data); diff != "" {
				t.Errorf("data differs (-want, +got), %s:\n%s", tc.reason, diff)
			}
		})
	}
}

func (s step) run(c client.Client) error {
	ctx, owner := context.Background(), client.FieldOwner(s.by)
	switch {
	case s.create != nil:
		return c.Create(ctx, configMap(s.create), owner)
	case s.update != nil:
		return c.Update(ctx, configMap(s.update), owner)
	default:
		options := []client.ApplyOption{owner}
		if s.force {
			options = append(options, client.ForceOwnership)
		}
		return c.Apply(ctx, corev1apply.ConfigMap("settings", "default").WithData(s.apply), options...)
	}
}

func configMap(d data) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}, Data: d}
}

func TestApplyOwnsOnlyWhatWasSent(t *testing.T) {
	ctx := context.Background()
	c, _ := memserver.New(clientgoscheme.Scheme).Build(fake.NewClientBuilder().WithReturnManagedFields())
	labels := map[string]string{"app": "web"}
	template := corev1apply.PodTemplateSpec().WithLabels(labels).
		WithSpec(corev1apply.PodSpec().WithContainers(corev1apply.Container().WithName("web").WithImage("web:1")))
	deployment := appsv1apply.Deployment("web", "default").
		WithSpec(appsv1apply.DeploymentSpec().WithTemplate(template))
	if err := c.Apply(ctx, deployment, client.FieldOwner("spec")); err != nil {
		t.Fatal(err)
	}
	scale := appsv1apply.Deployment("web", "default").WithSpec(appsv1apply.DeploymentSpec().WithReplicas(3))
	if err := c.Apply(ctx, scale, client.FieldOwner("scale")); err != nil {
		t.Fatalf("a manager of one field conflicts: %v", err)
	}
	status := appsv1apply.Deployment("web", "default").WithStatus(appsv1apply.DeploymentStatus().WithReadyReplicas(1))
	if err := c.Status().Apply(ctx, status, client.FieldOwner("status")); err != nil {
		t.Fatal(err)
	}
	template.Spec.Containers[0].WithImage("web:2")
	if err := c.Apply(ctx, appsv1apply.Deployment("web", "default").
		WithSpec(appsv1apply.DeploymentSpec().WithTemplate(template)), client.FieldOwner("spec")); err != nil {
		t.Fatalf("whoever applies the status must not own the spec: %v", err)
	}
	got := &appsv1.Deployment{}
	if err := c.Get(ctx, types.NamespacedName{Namespace: "default", Name: "web"}, got); err != nil {
		t.Fatal(err)
	}
	if image := got.Spec.Template.Spec.Containers[0].Image; image != "web:2" || *got.Spec.Replicas != 3 || got.Status.ReadyReplicas != 1 {
		t.Errorf("got image %s, replicas %d, ready %d", image, *got.Spec.Replicas, got.Status.ReadyReplicas)
	}
	owned := map[string]string{}
	for _, entry := range got.ManagedFields {
		owned[entry.Manager+"/"+entry.Subresource] = entry.FieldsV1.GetRawString()
	}
	want := map[string]string{
		"spec/": `{"f:spec":{"f:template":{"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:containers":{` +
			`"k:{\"name\":\"web\"}":{".":{},"f:image":{},"f:name":{}}}}}}}`,
		"scale/":        `{"f:spec":{"f:replicas":{}}}`,
		"status/status": `{"f:status":{"f:readyReplicas":{}}}`,
	}
	if diff := cmp.Diff(want, owned); diff != "" {
		t.Errorf("managed fields differ (-want, +got):\n%s", diff)
	}
}

func TestApplyServesUnknownKinds(t *testing.T) {
	ctx, scheme := context.Background(), runtime.NewScheme()
	c, _ := memserver.New(scheme).Build(fake.NewClientBuilder().WithScheme(scheme))
	apply := func(spec map[string]any) error {
		return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Gadget",
			"metadata": map[string]any{"namespace": "default", "name": "one"}, "spec": spec,
		}}), client.FieldOwner("me"))
	}
	for _, spec := range []map[string]any{{"a": "1", "b": int64(2)}, {"b": int64(3)}} {
		if err := apply(spec); err != nil {
			t.Fatal(err)
		}
	}
	got := &unstructured.Unstructured{}
	got.SetAPIVersion("example.com/v1")
	got.SetKind("Gadget")
	if err := c.Get(ctx, types.NamespacedName{Namespace: "default", Name: "one"}, got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"b": int64(3)}, got.Object["spec"]); diff != "" {
		t.Errorf("spec differs (-want, +got):\n%s", diff)
	}
}

func TestApplyOnTheOldWay(t *testing.T) {
	ctx := context.Background()
	c, _ := memserver.New(clientgoscheme.Scheme).Build(fake.NewClientBuilder())
	obj := configMap(data{"k": "1"})
	obj.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	//lint:ignore SA1019 The deprecated way is still used.
	if err := c.Patch(ctx, obj, client.Apply, client.FieldOwner("a")); err != nil {
		t.Fatal(err)
	}
	err := c.Apply(ctx, corev1apply.ConfigMap("settings", "default").WithData(data{"k": "2"}), client.FieldOwner("b"))
	if !apierrors.IsConflict(err) {
		t.Errorf("want a conflict, got %v", err)
	}
}

func TestApplyHonoursADryRun(t *testing.T) {
	ctx := context.Background()
	c, _ := memserver.New(clientgoscheme.Scheme).Build(fake.NewClientBuilder())
	config := func(value string) *corev1apply.ConfigMapApplyConfiguration {
		return corev1apply.ConfigMap("settings", "default").WithData(data{"k": value})
	}
	if err := c.Apply(ctx, config("1"), client.FieldOwner("a"), client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	got := configMap(nil)
	if err := c.Get(ctx, client.ObjectKeyFromObject(got), got); !apierrors.IsNotFound(err) {
		t.Fatalf("a dry run created the object: %v", err)
	}
	other := corev1apply.ConfigMap("settings", "default").WithData(data{"l": "1"})
	if err := c.Apply(ctx, other, client.FieldOwner("b")); err != nil {
		t.Fatal(err)
	}
	answer := config("2")
	if err := c.Apply(ctx, answer, client.FieldOwner("a"), client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(data{"k": "2", "l": "1"}, answer.Data); diff != "" {
		t.Errorf("the answer of the dry run differs (-want, +got):\n%s", diff)
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(got), got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(data{"l": "1"}, got.Data); diff != "" {
		raw, _ := json.Marshal(got)
		t.Errorf("a dry run changed the object to %s", raw)
	}
}
