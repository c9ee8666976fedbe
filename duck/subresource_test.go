package duck_test

import (
	"context"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/espalier-dev/espalier/duck"
)

func TestStatusPatchOfADuck(t *testing.T) {
	writers := map[string]func(client.Client) client.SubResourceWriter{
		"status":       func(c client.Client) client.SubResourceWriter { return c.Status() },
		"sub-resource": func(c client.Client) client.SubResourceWriter { return c.SubResource("status") },
	}
	for name, status := range writers {
		t.Run(name, func(t *testing.T) {
			inner, calls := newClient(deployment("web"))
			c := duck.NewDuckAwareClientWrapper(inner)
			obj := newWorkload("web")
			if err := c.Get(t.Context(), key, obj); err != nil {
				t.Fatal(err)
			}
			calls.take()

			before := obj.DeepCopyObject().(*workload)
			obj.Status.ReadyReplicas = 2
			err := status(c).Patch(t.Context(), obj, client.MergeFrom(before), client.FieldOwner("test"))
			if err != nil {
				t.Fatal(err)
			}
			calls.want(t, `patch status of *unstructured.Unstructured web, `+
				`application/merge-patch+json {"status":{"readyReplicas":2}} <nil>, 1 options`)
			if obj.ResourceVersion == before.ResourceVersion {
				t.Error("the duck was not filled with the answer")
			}
			if got := stored(t, inner, calls).Status.ReadyReplicas; got != 2 {
				t.Errorf("want 2 ready replicas, got %d", got)
			}
		})
	}
}

// scaleServer answers for the scale sub-resource as an inner client does that takes either both objects unstructured or
// none.
func scaleServer(t *testing.T, r *recorder) client.Client {
	inner, _ := newClient(deployment("web"))
	answer := func(into client.Object) {
		u, ok := into.(*unstructured.Unstructured)
		if !ok {
			t.Errorf("the answer is to go into a %T", into)
			return
		}
		if err := unstructured.SetNestedField(u.Object, int64(3), "spec", "replicas"); err != nil {
			t.Error(err)
		}
	}
	return interceptor.NewClient(inner, interceptor.Funcs{
		SubResourceGet: func(_ context.Context, _ client.Client, sub string, obj, into client.Object, opts ...client.SubResourceGetOption) error {
			r.note("get %s of %T %s into %s", sub, obj, obj.GetName(), into.GetObjectKind().GroupVersionKind())
			answer(into)
			return nil
		},
		SubResourcePatch: func(_ context.Context, _ client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			body := (&client.SubResourcePatchOptions{}).ApplyOptions(opts).SubResourceBody
			data, err := patch.Data(body)
			r.note("patch %s of %T %s, %s %v", sub, obj, obj.GetName(), data, err)
			answer(body)
			return nil
		},
	})
}

func TestSubResourceOfADuck(t *testing.T) {
	calls := &recorder{}
	c := duck.NewDuckAwareClientWrapper(scaleServer(t, calls))

	scale := &autoscalingv1.Scale{}
	if err := c.SubResource("scale").Get(t.Context(), newWorkload("web"), scale); err != nil {
		t.Fatal(err)
	}
	calls.want(t, "get scale of *unstructured.Unstructured web into autoscaling/v1, Kind=Scale")
	if scale.Spec.Replicas != 3 {
		t.Errorf("want 3 replicas, got %d", scale.Spec.Replicas)
	}

	before := &autoscalingv1.Scale{}
	body := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 2}}
	err := c.SubResource("scale").Patch(t.Context(), newWorkload("web"), client.MergeFrom(before),
		client.WithSubResourceBody(body))
	if err != nil {
		t.Fatal(err)
	}
	calls.want(t, `patch scale of *unstructured.Unstructured web, {"spec":{"replicas":2}} <nil>`)
	if body.Spec.Replicas != 3 {
		t.Errorf("want the body filled with the answer, 3 replicas; got %d", body.Spec.Replicas)
	}
}

func TestADuckAsSubResource(t *testing.T) {
	calls := &recorder{}
	c := duck.NewDuckAwareClientWrapper(scaleServer(t, calls))
	scale := newWorkload("")
	scale.APIVersion, scale.Kind = "autoscaling/v1", "Scale"
	if err := c.SubResource("scale").Get(t.Context(), deployment("web"), scale); err != nil {
		t.Fatal(err)
	}
	calls.want(t, "get scale of *unstructured.Unstructured web into autoscaling/v1, Kind=Scale")
	if scale.Spec.Replicas == nil || *scale.Spec.Replicas != 3 {
		t.Errorf("want 3 replicas, got %v", scale.Spec.Replicas)
	}
}

func TestASubResourceOfUnknownKindIsAnError(t *testing.T) {
	calls := &recorder{}
	c := duck.NewDuckAwareClientWrapper(scaleServer(t, calls))
	if err := c.SubResource("scale").Get(t.Context(), newWorkload("web"), &workload{}); err == nil {
		t.Error("Get: want an error")
	}
	patch := client.MergeFrom(&workload{})
	if err := c.SubResource("scale").Patch(t.Context(), newWorkload("web"), patch, client.WithSubResourceBody(&workload{})); err == nil {
		t.Error("Patch: want an error")
	}
	calls.want(t)
}
