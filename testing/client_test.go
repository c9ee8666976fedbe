package testing_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/watch"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	rtesting "github.com/espalier-dev/espalier/testing"
)

func TestResourceVersionsAreThoseOfTheFakeClient(t *testing.T) {
	ctx := t.Context()
	c := newExpectConfig().Config()
	got := &corev1.ConfigMap{}
	if err := c.Get(ctx, request.NamespacedName, got); err != nil {
		t.Fatal(err)
	}
	if got.ResourceVersion != "999" || got.CreationTimestamp.UnixMilli() != 1000 || got.UID != "" || got.Generation != 0 {
		t.Errorf("given objects have version 999 and a creation time, nothing else: %#v", got.ObjectMeta)
	}
	if err := c.Patch(ctx, got, keep); err != nil {
		t.Fatal(err)
	}
	if got.ResourceVersion != "1000" {
		t.Errorf("want version 1000 after a patch, got %s", got.ResourceVersion)
	}
}

func TestNamesAreGeneratedInOrder(t *testing.T) {
	for _, obj := range []client.Object{
		&corev1.ConfigMap{},
		&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}},
	} {
		c := newExpectConfig()
		config := c.Config()
		var names []string
		for range 2 {
			created := obj.DeepCopyObject().(client.Object)
			created.SetNamespace("default")
			created.SetGenerateName("cm-")
			if err := config.Create(t.Context(), created); err != nil {
				t.Fatal(err)
			}
			names = append(names, created.GetName())
		}
		if diff := cmp.Diff([]string{"cm-001", "cm-002"}, names); diff != "" {
			t.Errorf("%T: names differ (-want, +got):\n%s", obj, diff)
		}
		c.AssertClientCreateExpectations(nil)
		for _, failure := range c.Failures() {
			if first, _, _ := strings.Cut(failure, "\nTo expect"); strings.Contains(first, "cm-001") {
				t.Errorf("a create is recorded as it was asked for: %s", first)
			}
		}
	}
}

func TestAddGivenNeedsNoName(t *testing.T) {
	c := newExpectConfig().Config()
	c.Client.(rtesting.TestClient).AddGiven(&corev1.ConfigMap{}, settings.With(func(m *corev1.ConfigMap) { m.Name = "later" }))
	list := &corev1.ConfigMapList{}
	if err := c.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 3 {
		t.Errorf("want 3 objects, got %d", len(list.Items))
	}
}

func TestApplyCreates(t *testing.T) {
	ctx := t.Context()
	c := (&rtesting.ExpectConfig{Scheme: scheme}).Config()
	if err := kinds["Apply"].do(ctx, c); err != nil {
		t.Fatal(err)
	}
	got := &corev1.ConfigMap{}
	if err := c.Get(ctx, request.NamespacedName, got); err != nil {
		t.Fatal(err)
	}
	if got.Data["k"] != "w" {
		t.Errorf("got %v", got.Data)
	}
}

// Of a kind without a published schema, the schema is deduced: there, a list is replaced as a whole.
func TestApplyMergesByTheSchemaOfTheKind(t *testing.T) {
	for apiVersion, test := range map[string]struct {
		kind string
		want []string
	}{
		"apps/v1":        {"Deployment", []string{"one", "two"}},
		"example.com/v1": {"Gadget", []string{"two"}},
	} {
		t.Run(test.kind, func(t *testing.T) {
			c := (&rtesting.ExpectConfig{Scheme: scheme}).Config()
			object := func(spec map[string]any) *unstructured.Unstructured {
				return &unstructured.Unstructured{Object: map[string]any{
					"apiVersion": apiVersion, "kind": test.kind,
					"metadata": map[string]any{"namespace": "default", "name": "web"}, "spec": spec,
				}}
			}
			apply := func(owner client.FieldOwner, spec map[string]any) {
				t.Helper()
				config := client.ApplyConfigurationFromUnstructured(object(spec))
				if err := c.Apply(t.Context(), config, owner, client.ForceOwnership); err != nil {
					t.Fatalf("the apply of %v by %s failed: %v", spec, owner, err)
				}
			}
			with := func(container string) map[string]any {
				containers := []any{map[string]any{"name": container, "image": "image"}}
				return map[string]any{"template": map[string]any{"spec": map[string]any{"containers": containers}}}
			}
			paused := with("one")
			paused["paused"] = true
			apply("one", paused)
			apply("one", with("one"))
			apply("two", with("two"))
			got := object(nil)
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(got), got); err != nil {
				t.Fatal(err)
			}
			var names []string
			containers, _, _ := unstructured.NestedSlice(got.Object, "spec", "template", "spec", "containers")
			for _, container := range containers {
				names = append(names, container.(map[string]any)["name"].(string))
			}
			if diff := cmp.Diff(test.want, names); diff != "" {
				t.Errorf("the containers differ (-want, +got):\n%s", diff)
			}
			if paused, found, _ := unstructured.NestedBool(got.Object, "spec", "paused"); found {
				t.Errorf("paused is %t, want none: its owner does not apply it any more", paused)
			}
		})
	}
}

func TestAppliedConfigurationsAreRecordedAsSent(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": "default", "name": "settings"},
		"data":     map[string]any{"k": "w"},
	}}
	for _, config := range []runtime.ApplyConfiguration{
		client.ApplyConfigurationFromUnstructured(u.DeepCopy()),
		corev1ac.ConfigMap("settings", "default").WithData(map[string]string{"k": "w"}),
	} {
		c := newExpectConfig()
		c.ExpectApplies = []rtesting.ApplyRef{applyRef}
		if err := c.Config().Apply(t.Context(), config, client.FieldOwner("me"), client.ForceOwnership); err != nil {
			t.Fatal(err)
		}
		c.AssertExpectations(t)
	}
}

func TestReactors(t *testing.T) {
	ctx := t.Context()
	wanted := errors.New("wanted")
	t.Run("the first listed is asked first", func(t *testing.T) {
		c := newExpectConfig()
		c.WithReactors = []rtesting.ReactionFunc{
			rtesting.InduceFailure("get", "configmap", rtesting.InduceFailureOpts{Error: wanted, Name: "settings"}),
			rtesting.InduceFailure("get", "configmap"),
		}
		if err := c.Config().Get(ctx, request.NamespacedName, &corev1.ConfigMap{}); !errors.Is(err, wanted) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("the APIReader is reached", func(t *testing.T) {
		c := newExpectConfig()
		c.WithReactors = []rtesting.ReactionFunc{rtesting.InduceFailure("list", "ConfigMapList")}
		if err := c.Config().APIReader.List(ctx, &corev1.ConfigMapList{}); err == nil {
			t.Error("want an error")
		}
	})
	t.Run("a failed call is recorded but not made", func(t *testing.T) {
		c := newExpectConfig()
		c.ExpectDeletes = []rtesting.DeleteRef{deleteRef}
		c.WithReactors = []rtesting.ReactionFunc{rtesting.InduceFailure("delete", "ConfigMap")}
		if err := c.Config().Delete(ctx, settings.Object()); err == nil {
			t.Error("want an error")
		}
		if err := c.Config().Get(ctx, request.NamespacedName, &corev1.ConfigMap{}); err != nil {
			t.Error(err)
		}
		c.AssertExpectations(t)
	})
	t.Run("the object may be changed", func(t *testing.T) {
		c := newExpectConfig().Config()
		c.Client.(rtesting.TestClient).PrependReactor("update", "*", func(action rtesting.Action) (bool, runtime.Object, error) {
			action.(rtesting.UpdateAction).GetObject().(client.Object).SetLabels(map[string]string{"a": "b"})
			return false, nil, nil
		})
		obj := settings.Object()
		if err := c.Update(ctx, obj); err != nil {
			t.Fatal(err)
		}
		if obj.Labels["a"] != "b" {
			t.Errorf("got %v", obj.Labels)
		}
	})
	t.Run("calls are counted by what is asked", func(t *testing.T) {
		c := newExpectConfig()
		c.WithReactors = []rtesting.ReactionFunc{rtesting.CalledAtMostTimes("get", "ConfigMap", 1)}
		for i, want := range []string{"", "get ConfigMap called 2 times, expected 1 call(s)"} {
			err := c.Config().Get(ctx, request.NamespacedName, &corev1.ConfigMap{})
			if (err == nil) != (want == "") || err != nil && err.Error() != want {
				t.Errorf("call %d: want %q, got %v", i, want, err)
			}
			if err := c.Config().List(ctx, &corev1.ConfigMapList{}); err != nil {
				t.Errorf("other calls are not counted: %v", err)
			}
		}
	})
	t.Run("failures are narrowed", func(t *testing.T) {
		for opts, fails := range map[rtesting.InduceFailureOpts]bool{
			{}:                      true,
			{Name: "settings"}:      true,
			{Name: "other"}:         false,
			{Namespace: "default"}:  true,
			{Namespace: "other"}:    false,
			{SubResource: "status"}: false,
		} {
			c := newExpectConfig()
			c.WithReactors = []rtesting.ReactionFunc{rtesting.InduceFailure("update", "ConfigMap", opts)}
			if err := c.Config().Update(ctx, settings.Object()); (err != nil) != fails {
				t.Errorf("%+v: failure wanted %v, got %v", opts, fails, err)
			}
		}
	})
}

func TestSubresources(t *testing.T) {
	ctx := t.Context()
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32(2)), Selector: &metav1.LabelSelector{}},
	}
	c := &rtesting.ExpectConfig{Scheme: scheme, GivenObjects: []client.Object{deployment, running}}
	config := c.Config()

	scale := &autoscalingv1.Scale{}
	if err := config.SubResource("scale").Get(ctx, deployment, scale); err != nil || scale.Spec.Replicas != 2 {
		t.Errorf("get scale: %v, %+v", err, scale.Spec)
	}
	scale.Spec.Replicas = 3
	if err := config.SubResource("scale").Update(ctx, deployment, client.WithSubResourceBody(scale)); err != nil {
		t.Errorf("update scale: %v", err)
	}
	if err := config.Get(ctx, client.ObjectKeyFromObject(deployment), deployment); err != nil || *deployment.Spec.Replicas != 3 {
		t.Errorf("scaled to %v, %v", *deployment.Spec.Replicas, err)
	}
	got := &corev1.Pod{}
	if err := config.SubResource("status").Get(ctx, pod.Object(), got); err != nil || got.Status.Phase != corev1.PodRunning {
		t.Errorf("get status: %v, %+v", err, got.Status)
	}
	if err := config.SubResource("eviction").Create(ctx, pod.Object(), &policyv1.Eviction{}); err != nil {
		t.Errorf("evict: %v", err)
	}
	if err := config.Get(ctx, client.ObjectKeyFromObject(got), got); !apierrors.IsNotFound(err) {
		t.Errorf("an evicted pod is gone, got %v", err)
	}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{}`))
	if err := config.SubResource("resize").Patch(ctx, pod.Object(), patch); err != nil {
		t.Errorf("patch resize: %v", err)
	}
	if err := config.SubResource("resize").Apply(ctx, corev1ac.Pod("web", "default"), client.FieldOwner("me")); err != nil {
		t.Errorf("apply resize: %v", err)
	}
	if err := config.Status().Create(ctx, pod.Object(), pod.Object()); err != nil {
		t.Errorf("create status: %v", err)
	}
	if err := config.SubResource("binding").Create(ctx, pod.Object(), &corev1.Binding{}); err != nil {
		t.Errorf("what is not served reaches the reactors and no further: %v", err)
	}
	config.Client.(rtesting.TestClient).AddReactor("get", "Pod", func(action rtesting.Action) (bool, runtime.Object, error) {
		return action.GetSubresource() == "log", &corev1.ConfigMap{Data: map[string]string{"log": "line"}}, nil
	})
	log := &corev1.ConfigMap{}
	if err := config.SubResource("log").Get(ctx, pod.Object(), log); err != nil || log.Data["log"] != "line" {
		t.Errorf("a reactor answers: %v, %v", err, log.Data)
	}
	c.AssertExpectations(t)
}

func TestApplyActions(t *testing.T) {
	config := corev1ac.Pod("web", "default")
	for subresource, action := range map[string]rtesting.ApplyAction{
		"":       rtesting.NewApplyAction(config),
		"status": rtesting.NewApplySubresourceAction(config, "status"),
	} {
		if !action.Matches("apply", "pod") || action.GetSubresource() != subresource || action.GetNamespace() != "default" ||
			action.GetName() != "web" || action.GetApplyConfiguration() != config || action.DeepCopy().GetVerb() != "apply" {
			t.Errorf("got %+v", action)
		}
	}
}

func TestClientCanWatch(t *testing.T) {
	ctx := t.Context()
	c := newExpectConfig().Config()
	w, err := c.Client.(client.WithWatch).Watch(ctx, &corev1.ConfigMapList{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if err := c.Delete(ctx, settings.Object()); err != nil {
		t.Fatal(err)
	}
	if event := <-w.ResultChan(); event.Type != watch.Deleted {
		t.Errorf("got %v", event)
	}
}

func TestBuilderOfTheUserWins(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	c := newExpectConfig()
	calls := 0
	c.WithClientBuilder = func(b *fake.ClientBuilder) *fake.ClientBuilder {
		calls++
		return b.WithRESTMapper(mapper).WithTypeConverters(managedfields.NewDeducedTypeConverter())
	}
	config := c.Config()
	if config.RESTMapper() != mapper {
		t.Error("the mapper of the user is overwritten")
	}
	if calls != 2 {
		t.Errorf("the builder serves both clients, it was called %d times", calls)
	}
	config.Client.(rtesting.TestClient).AddGiven(settings.With(func(m *corev1.ConfigMap) { m.Name = "later" }))
	list := &corev1.ConfigMapList{}
	if err := config.List(t.Context(), list); err != nil || len(list.Items) != 2 {
		t.Errorf("got %d objects, %v", len(list.Items), err)
	}
}

func TestRecordingIsSynchronised(t *testing.T) {
	c := newExpectConfig()
	c.WithReactors = []rtesting.ReactionFunc{rtesting.CalledAtMostTimes("create", "ConfigMap", 8)}
	config := c.Config()
	var group sync.WaitGroup
	for i := range 8 {
		obj := settings.With(func(m *corev1.ConfigMap) { m.Name, m.GenerateName = "", "cm-" })
		c.ExpectCreates = append(c.ExpectCreates, obj)
		c.ExpectEvents = append(c.ExpectEvents, event)
		c.ExpectTracks = append(c.ExpectTracks, track)
		group.Go(func() {
			if err := config.Create(context.Background(), obj.Object()); err != nil {
				t.Errorf("%d: %v", i, err)
			}
			config.Recorder.Event(settings.Object(), "Normal", "Seen", "Seen it")
			if err := config.Tracker.TrackObject(settings.Object(), pod.Object()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	c.AssertExpectations(t)
}

func TestUnknownKindsAreErrors(t *testing.T) {
	ctx, c := t.Context(), newExpectConfig().Config()
	unknown := &stranger{}
	for name, err := range map[string]error{
		"get":    c.Get(ctx, request.NamespacedName, unknown),
		"create": c.Create(ctx, unknown),
		"update": c.Update(ctx, unknown),
		"delete": c.Delete(ctx, unknown),
		"patch":  c.Patch(ctx, unknown, keep),
		"all":    c.DeleteAllOf(ctx, unknown),
		"status": c.Status().Update(ctx, unknown),
	} {
		if want := "the kind of *testing_test.stranger is neither in the scheme nor set on the object"; err == nil ||
			!strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: want %q, got %v", name, want, err)
		}
	}
}

// stranger is an object of a type that no scheme has.
type stranger struct {
	metav1.TypeMeta
	metav1.ObjectMeta
}

// DeepCopyObject implements runtime.Object.
func (s *stranger) DeepCopyObject() runtime.Object {
	return &stranger{s.TypeMeta, *s.ObjectMeta.DeepCopy()}
}
