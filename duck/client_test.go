package duck_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/espalier-dev/espalier/duck"
)

var key = client.ObjectKey{Namespace: "ns", Name: "web"}

// stored returns the Deployment ns/web as the inner client has it, and forgets the call.
func stored(t *testing.T, c client.Client, r *recorder) *appsv1.Deployment {
	t.Helper()
	obj := &appsv1.Deployment{}
	if err := c.Get(context.Background(), key, obj); err != nil {
		t.Fatal(err)
	}
	r.calls = r.calls[:len(r.calls)-1]
	return obj
}

func TestGetOfADuck(t *testing.T) {
	inner, calls := newClient(deployment("web"))
	readers := map[string]client.Reader{
		"client":     duck.NewDuckAwareClientWrapper(inner),
		"API reader": duck.NewDuckAwareAPIReaderWrapper(inner, inner),
	}
	for name, reader := range readers {
		t.Run(name, func(t *testing.T) {
			got := newWorkload("left over")
			got.Annotations = map[string]string{"left": "over"}
			if err := reader.Get(t.Context(), key, got); err != nil {
				t.Fatal(err)
			}
			calls.want(t, "get *unstructured.Unstructured ns/web")

			want := newWorkload("web")
			want.Labels = map[string]string{"app": "web"}
			want.ResourceVersion = "999"
			want.Spec.Replicas = new(int32(1))
			want.Spec.Template.Spec.Containers = []workloadContainer{{Name: "main", Image: "old"}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("duck (-want, +got):\n%s", diff)
			}
		})
	}
}

func TestListOfDucks(t *testing.T) {
	inner, calls := newClient(deployment("a"), deployment("b"))
	readers := map[string]client.Reader{
		"client":     duck.NewDuckAwareClientWrapper(inner),
		"API reader": duck.NewDuckAwareAPIReaderWrapper(inner, inner),
	}
	for name, reader := range readers {
		t.Run(name, func(t *testing.T) {
			list := newWorkloadList()
			if err := reader.List(t.Context(), list, client.InNamespace("ns"), client.MatchingLabels{"app": "web"}); err != nil {
				t.Fatal(err)
			}
			calls.want(t, "list *unstructured.UnstructuredList, 2 options")
			if list.Kind != "DeploymentList" {
				t.Errorf("the list became a %s", list.Kind)
			}
			var got []string
			for _, item := range list.Items {
				got = append(got, item.Kind+" "+item.Name)
			}
			if diff := cmp.Diff([]string{"Deployment a", "Deployment b"}, got); diff != "" {
				t.Errorf("items (-want, +got):\n%s", diff)
			}
		})
	}
}

func TestAFailedReadLeavesTheDuckAlone(t *testing.T) {
	inner, _ := newClient()
	got := newWorkload("as it was")
	if err := duck.NewDuckAwareClientWrapper(inner).Get(t.Context(), key, got); !apierrors.IsNotFound(err) {
		t.Errorf("want not found, got %v", err)
	}
	if diff := cmp.Diff(newWorkload("as it was"), got); diff != "" {
		t.Errorf("duck (-want, +got):\n%s", diff)
	}
}

func TestADuckStaysOneWhateverTheAnswer(t *testing.T) {
	inner, _ := newClient()
	inner = interceptor.NewClient(inner, interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
			obj.(*unstructured.Unstructured).Object = map[string]any{"metadata": map[string]any{"name": "web"}}
			return nil
		},
	})
	got := newWorkload("")
	if err := duck.NewDuckAwareClientWrapper(inner).Get(t.Context(), key, got); err != nil {
		t.Fatal(err)
	}
	if got.Name != "web" || !duck.IsDuck(got, inner.Scheme()) {
		t.Errorf("want a duck called web, got %+v", got)
	}
}

func TestPatchOfADuckKeepsWhatItDoesNotKnow(t *testing.T) {
	tests := map[string]struct {
		patch func(client.Object) client.Patch
		want  string
	}{
		"merge": {
			func(from client.Object) client.Patch { return client.MergeFrom(from) },
			`patch *unstructured.Unstructured web, application/merge-patch+json ` +
				`{"spec":{"template":{"spec":{"containers":[{"image":"new","name":"main"}]}}}} <nil>, 1 options`,
		},
		"merge with a lock": {
			func(from client.Object) client.Patch {
				return client.MergeFromWithOptions(from, client.MergeFromWithOptimisticLock{})
			},
			`patch *unstructured.Unstructured web, application/merge-patch+json ` +
				`{"metadata":{"resourceVersion":"999"},"spec":{"template":{"spec":{"containers":[{"image":"new","name":"main"}]}}}} <nil>, 1 options`,
		},
		"strategic": {
			func(from client.Object) client.Patch { return client.StrategicMergeFrom(from) },
			`patch *unstructured.Unstructured web, application/strategic-merge-patch+json ` +
				`{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"main"}],"containers":[{"image":"new","name":"main"}]}}}} <nil>, 1 options`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			inner, calls := newClient(deployment("web"))
			c := duck.NewDuckAwareClientWrapper(inner)
			obj := newWorkload("web")
			if err := c.Get(t.Context(), key, obj); err != nil {
				t.Fatal(err)
			}
			calls.take()

			before := obj.DeepCopyObject().(*workload)
			obj.Spec.Template.Spec.Containers[0].Image = "new"
			if err := c.Patch(t.Context(), obj, tc.patch(before), client.FieldOwner("test")); err != nil {
				t.Fatal(err)
			}
			calls.want(t, tc.want)
			if obj.ResourceVersion != "1000" {
				t.Errorf("the duck was not filled with the answer: resource version %s", obj.ResourceVersion)
			}
			now := stored(t, inner, calls)
			if image := now.Spec.Template.Spec.Containers[0].Image; image != "new" || !now.Spec.Paused {
				t.Errorf("want the new image, still paused; got image %s, paused %t", image, now.Spec.Paused)
			}
		})
	}
}

func TestAPatchThatCannotBeComputedIsNotSent(t *testing.T) {
	inner, calls := newClient(deployment("web"))
	lock := client.MergeFromWithOptions(newWorkload("web"), client.MergeFromWithOptimisticLock{})
	c := duck.NewDuckAwareClientWrapper(inner)
	if err := c.Patch(t.Context(), newWorkload("web"), lock); err == nil {
		t.Error("Patch: want the error of the patch")
	}
	if err := c.Status().Patch(t.Context(), newWorkload("web"), lock); err == nil {
		t.Error("Status().Patch: want the error of the patch")
	}
	calls.want(t)
}

func TestDeleteOfADuck(t *testing.T) {
	inner, calls := newClient(deployment("web"), deployment("other"))
	c := duck.NewDuckAwareClientWrapper(inner)

	err := c.Delete(t.Context(), newWorkload("web"), client.PropagationPolicy(metav1.DeletePropagationForeground))
	if err != nil {
		t.Fatal(err)
	}
	calls.want(t, "delete *unstructured.Unstructured web, 1 options")
	if err := c.Delete(t.Context(), newWorkload("web")); !apierrors.IsNotFound(err) {
		t.Errorf("want not found, got %v", err)
	}
	calls.take()

	if err := c.DeleteAllOf(t.Context(), newWorkload(""), client.InNamespace("ns")); err != nil {
		t.Fatal(err)
	}
	calls.want(t, "delete all of *unstructured.Unstructured, 1 options")
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "other"}, newWorkload("")); !apierrors.IsNotFound(err) {
		t.Errorf("want not found, got %v", err)
	}
}

func TestDucksAreNotReplacedUnlessDangerously(t *testing.T) {
	inner, calls := newClient(deployment("web"))
	safe := duck.NewDuckAwareClientWrapper(inner)
	wantError(t, safe.Create(t.Context(), newWorkload("new")), "Create is not supported for the duck typed objects")
	wantError(t, safe.Update(t.Context(), newWorkload("web")),
		"Update is not supported for the duck typed objects, use Patch instead")
	calls.want(t)

	dangerous := duck.NewDangerousDuckAwareClientWrapper(inner)
	created := newWorkload("new")
	if err := dangerous.Create(t.Context(), created, client.FieldOwner("test")); err != nil {
		t.Fatal(err)
	}
	calls.want(t, "create *unstructured.Unstructured new, 1 options")
	if created.ResourceVersion != "1" {
		t.Errorf("the duck was not filled with the answer: resource version %q", created.ResourceVersion)
	}
	if err := dangerous.Update(t.Context(), newWorkload("web"), client.FieldOwner("test")); err != nil {
		t.Fatal(err)
	}
	calls.want(t, "update *unstructured.Unstructured web, 1 options")
	if stored(t, inner, calls).Spec.Paused {
		t.Error("an update of a duck should replace what it does not know")
	}

	for name, sub := range map[string]client.SubResourceWriter{
		"status":        safe.Status(),
		"danger status": dangerous.Status(),
		"other":         safe.SubResource("other"),
		"danger other":  dangerous.SubResource("other"),
	} {
		t.Run(name, func(t *testing.T) {
			wantError(t, sub.Create(t.Context(), newWorkload("web"), newWorkload("web")),
				"Create is not supported for the duck typed objects")
			wantError(t, sub.Update(t.Context(), newWorkload("web")),
				"Update is not supported for the duck typed objects, use Patch instead")
			calls.want(t)
		})
	}
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || err.Error() != want {
		t.Errorf("want error %q, got %v", want, err)
	}
}

func TestApplyPassesThrough(t *testing.T) {
	inner, calls := newClient()
	c := duck.NewDuckAwareClientWrapper(inner)
	config := corev1ac.ConfigMap("x", "ns")
	for _, err := range []error{
		c.Apply(t.Context(), config, client.FieldOwner("test")),
		c.Status().Apply(t.Context(), config, client.FieldOwner("test")),
		c.SubResource("other").Apply(t.Context(), config, client.FieldOwner("test")),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	calls.want(t,
		"apply *v1.ConfigMapApplyConfiguration, 1 options",
		"apply status of *v1.ConfigMapApplyConfiguration, 1 options",
		"apply other of *v1.ConfigMapApplyConfiguration, 1 options",
	)
}

func TestWhatIsNoDuckPassesThrough(t *testing.T) {
	obj := func() *appsv1.Deployment { return deployment("web") }
	patch := client.RawPatch("application/merge-patch+json", []byte(`{}`))
	tests := map[string]struct {
		call func(client.WithWatch) error
		want string
	}{
		"get": {
			func(c client.WithWatch) error { return c.Get(context.Background(), key, obj()) },
			"get *v1.Deployment ns/web",
		},
		"get metadata": {
			func(c client.WithWatch) error {
				metadata := &metav1.PartialObjectMetadata{}
				metadata.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
				return c.Get(context.Background(), key, metadata)
			},
			"get *v1.PartialObjectMetadata ns/web",
		},
		"list": {
			func(c client.WithWatch) error { return c.List(context.Background(), &appsv1.DeploymentList{}) },
			"list *v1.DeploymentList, 0 options",
		},
		"create": {
			func(c client.WithWatch) error { return c.Create(context.Background(), deployment("new")) },
			"create *v1.Deployment new, 0 options",
		},
		"update": {
			func(c client.WithWatch) error { return c.Update(context.Background(), obj()) },
			"update *v1.Deployment web, 0 options",
		},
		"patch": {
			func(c client.WithWatch) error { return c.Patch(context.Background(), obj(), patch) },
			"patch *v1.Deployment web, application/merge-patch+json {} <nil>, 0 options",
		},
		"delete": {
			func(c client.WithWatch) error { return c.Delete(context.Background(), obj()) },
			"delete *v1.Deployment web, 0 options",
		},
		"delete all of": {
			func(c client.WithWatch) error {
				return c.DeleteAllOf(context.Background(), obj(), client.InNamespace("ns"))
			},
			"delete all of *v1.Deployment, 1 options",
		},
		"watch": {
			func(c client.WithWatch) error {
				w, err := c.Watch(context.Background(), &appsv1.DeploymentList{})
				if err == nil {
					w.Stop()
				}
				return err
			},
			"watch *v1.DeploymentList, 0 options",
		},
		"update status": {
			func(c client.WithWatch) error { return c.Status().Update(context.Background(), obj()) },
			"update status of *v1.Deployment web, 0 options",
		},
		"patch status": {
			func(c client.WithWatch) error { return c.Status().Patch(context.Background(), obj(), patch) },
			"patch status of *v1.Deployment web, application/merge-patch+json {} <nil>, 0 options",
		},
		"create sub-resource": {
			func(c client.WithWatch) error {
				return c.SubResource("eviction").Create(context.Background(), obj(), &corev1.Pod{})
			},
			"create eviction of *v1.Deployment web from *v1.Pod, 0 options",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			inner, calls := newClient(deployment("web"))
			if err := tc.call(duck.NewDuckAwareClientWrapper(inner).(client.WithWatch)); err != nil {
				t.Error(err)
			}
			calls.want(t, tc.want)
		})
	}
}

func TestKindsAndScopes(t *testing.T) {
	inner, _ := newClient()
	c := duck.NewDuckAwareClientWrapper(inner)
	if c.Scheme() != inner.Scheme() || c.RESTMapper() != inner.RESTMapper() {
		t.Error("want the scheme and the mapper of the inner client")
	}

	half := newWorkload("x")
	half.APIVersion = ""
	clusterScoped := newWorkload("x")
	clusterScoped.APIVersion, clusterScoped.Kind = "v1", "Namespace"
	tests := map[string]struct {
		obj     runtime.Object
		kind    string
		kindErr string
		scoped  bool
	}{
		"duck":                {obj: newWorkload("x"), kind: "apps/v1, Kind=Deployment", scoped: true},
		"duck of the cluster": {obj: clusterScoped, kind: "/v1, Kind=Namespace"},
		"half a duck":         {obj: half, kindErr: "object must directly define APIVersion and Kind"},
		"registered":          {obj: &appsv1.Deployment{}, kind: "apps/v1, Kind=Deployment", scoped: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			gvk, err := c.GroupVersionKindFor(tc.obj)
			if tc.kindErr != "" {
				wantError(t, err, tc.kindErr)
				return
			}
			if err != nil || gvk.String() != tc.kind {
				t.Errorf("want kind %s, got %s, %v", tc.kind, gvk, err)
			}
			if scoped, err := c.IsObjectNamespaced(tc.obj); err != nil || scoped != tc.scoped {
				t.Errorf("want namespaced %t, got %t, %v", tc.scoped, scoped, err)
			}
		})
	}
}
