package edit_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/edit"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

var errOops = errors.New("oops")

// workloads are all kinds with pods, by their apiVersion and kind.
func workloads() map[string]client.Object {
	return map[string]client.Object{
		"apps/v1 Deployment":  &appsv1.Deployment{},
		"apps/v1 StatefulSet": &appsv1.StatefulSet{},
		"apps/v1 DaemonSet":   &appsv1.DaemonSet{},
		"apps/v1 ReplicaSet":  &appsv1.ReplicaSet{},
		"batch/v1 Job":        &batchv1.Job{},
		"batch/v1 CronJob":    &batchv1.CronJob{},
		"v1 Pod":              &corev1.Pod{},
		"v1 PodTemplate":      &corev1.PodTemplate{},
		"v1 ReplicationController": &corev1.ReplicationController{
			Spec: corev1.ReplicationControllerSpec{Template: &corev1.PodTemplateSpec{}}},
	}
}

// asUnstructured returns an object as one that a file has.
func asUnstructured(t *testing.T, name string, object client.Object) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: content}
	version, kind, _ := strings.Cut(name, " ")
	u.SetAPIVersion(version)
	u.SetKind(kind)
	return u
}

func editPods(pods *corev1.PodTemplateSpec) error {
	pods.Labels = map[string]string{"edited": "true"}
	pods.Spec.Containers = append(pods.Spec.Containers, corev1.Container{Name: "web", Image: "web:2"})
	return nil
}

func TestPodTemplateOfAllKinds(t *testing.T) {
	t.Parallel()
	for name, object := range workloads() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			content := asUnstructured(t, name, object)
			for _, object := range []client.Object{object, content} {
				if err := edit.PodTemplate(object, editPods); err != nil {
					t.Fatal(err)
				}
				var seen *corev1.PodTemplateSpec
				err := edit.PodTemplate(object, func(pods *corev1.PodTemplateSpec) error {
					seen = pods.DeepCopy()
					pods.Spec.Containers[0].Image = "not written"
					return errOops
				})
				if !errors.Is(err, errOops) {
					t.Errorf("the error is %v, want %v", err, errOops)
				}
				if seen.Labels["edited"] != "true" || len(seen.Spec.Containers) != 1 {
					t.Errorf("%T has the template %+v, want the label edited and one container", object, seen)
				}
			}
			typed := asUnstructured(t, name, object)
			text, _ := typed.MarshalJSON()
			if strings.Contains(string(text), "not written") || !strings.Contains(string(text), "web:2") {
				t.Errorf("the object is %s, want the image web:2 and nothing that is not written", text)
			}
			withoutStatus(typed)
			withoutStatus(content)
			if diff := cmp.Diff(typed.Object, content.Object); diff != "" {
				t.Errorf("the unstructured object differs, want the same (-typed +unstructured):\n%s", diff)
			}
		})
	}
}

func withoutStatus(u *unstructured.Unstructured) {
	delete(u.Object, "status")
}

const newer = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
spec:
  futureOfSpec: 1
  template:
    spec:
      containers:
      - futureOfContainer: {a: 1}
        image: web:1
        name: web
        resources:
          limits:
            cpu: 1000m
      - image: helper:1
        name: helper
      futureOfPod: true
`

func TestPodTemplateKeepsWhatIsUnknown(t *testing.T) {
	t.Parallel()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(newer), &u.Object); err != nil {
		t.Fatal(err)
	}
	want := u.DeepCopy()
	nothing := func(*corev1.PodTemplateSpec) error { return nil }
	if err := edit.PodTemplate(u, nothing); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Object, u.Object); diff != "" {
		t.Errorf("editing nothing changes something, want nothing (-before +after):\n%s", diff)
	}
	err := edit.PodTemplate(u, func(pods *corev1.PodTemplateSpec) error {
		pods.Spec.Containers = slices.DeleteFunc(pods.Spec.Containers,
			func(c corev1.Container) bool { return c.Name == "helper" })
		return edit.Container(pods, "web", func(web *corev1.Container) error {
			return edit.EnsureEnv(web, corev1.EnvVar{Name: "A", Value: "b"})
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	text, _ := yaml.Marshal(u.Object)
	wanted := strings.Replace(newer, "      - image: helper:1\n        name: helper\n", "", 1)
	wanted = strings.Replace(wanted, "      - futureOf",
		"      - env:\n        - name: A\n          value: b\n        futureOf", 1)
	wanted = strings.Replace(wanted, "{a: 1}", "\n          a: 1", 1)
	wanted = strings.ReplaceAll(wanted, ": \n", ":\n")
	if diff := cmp.Diff(wanted, string(text)); diff != "" {
		t.Errorf("the object differs (-wanted +got):\n%s", diff)
	}
}

// Content that is written in Go has types that decoded JSON does not have.
func TestPodTemplateWrittenInGo(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]map[string]any{
		"int":     {"replicas": 3},
		"strings": {"template": map[string]any{"metadata": map[string]any{"finalizers": []string{"a"}}}},
		"maps": {"template": map[string]any{"spec": map[string]any{
			"containers": []map[string]any{{"name": "old", "ports": []map[string]int{{"containerPort": 80}}}},
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "apps/v1", "kind": "Deployment", "spec": content,
			}}
			if err := edit.PodTemplate(u, editPods); err != nil {
				t.Fatal(err)
			}
			text, err := yaml.Marshal(u.Object)
			if err != nil || !strings.Contains(string(text), "image: web:2") {
				t.Errorf("the object is\n%s (%v), want the image web:2", text, err)
			}
		})
	}
}

// Content that no object can have is an error, or is left alone.
func TestPodTemplateDoesNotPanic(t *testing.T) {
	t.Parallel()
	values := []any{
		func() {}, make(chan int), struct{}{}, (*int)(nil), new(int), math.NaN(), uint8(1), "text", []any{nil}, true,
		map[string]any{"a": nil}, map[int]any{1: nil}, []any{map[string]any{"name": 1}},
	}
	for _, value := range values {
		for _, content := range []map[string]any{
			{"spec": value}, {"metadata": value}, {"spec": map[string]any{"replicas": value}},
			{"spec": map[string]any{"template": value}},
			{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": value}}}},
		} {
			content["apiVersion"], content["kind"] = "apps/v1", "Deployment"
			_ = edit.PodTemplate(&unstructured.Unstructured{Object: content}, editPods)
		}
	}
}

func TestAs(t *testing.T) {
	t.Parallel()
	u := asUnstructured(t, "v1 Service", &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}})
	u.Object["spec"] = map[string]any{"future": int64(1)}
	addPort := func(s *corev1.Service) error {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "a", Port: 80})
		return nil
	}
	typed := &corev1.Service{}
	if err := errors.Join(edit.As(u, addPort), edit.As(typed, addPort)); err != nil {
		t.Fatal(err)
	}
	ports, _, _ := unstructured.NestedSlice(u.Object, "spec", "ports")
	future, _, _ := unstructured.NestedInt64(u.Object, "spec", "future")
	if len(ports) != 1 || future != 1 || len(typed.Spec.Ports) != 1 {
		t.Errorf("the ports are %v and %v and future is %d, want one in both, and 1", ports, typed.Spec.Ports, future)
	}
	for want, err := range map[string]error{
		"edit Service web: it is no Secret": edit.As(u, func(*corev1.Secret) error { return nil }),
		"edit Service: it is no Secret":     edit.As(typed, func(*corev1.Secret) error { return nil }),
		"the object is nil": edit.As((*corev1.Secret)(nil),
			func(*corev1.Secret) error { return nil }),
		"edit Service web: " + errNoFunctionText: edit.As[*corev1.Service](u, nil),
		"edit Service web: oops":                 edit.As(u, func(*corev1.Service) error { return errOops }),
		"edit Service: oops": edit.As(typed, func(s *corev1.Service) error {
			s.Name = "changed"
			return errOops
		}),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("the error is %v, not %s", err, want)
		}
	}
	if typed.Name != "" {
		t.Errorf("an edit that failed was written: the name is %q, want none", typed.Name)
	}
}

const errNoFunctionText = "the function that edits is nil"

func TestPodTemplateErrors(t *testing.T) {
	t.Parallel()
	broken := asUnstructured(t, "apps/v1 Deployment", &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}})
	broken.Object["spec"] = "none"
	for name, tc := range map[string]struct {
		object client.Object
		edit   func(*corev1.PodTemplateSpec) error
		want   string
	}{
		"nil":             {nil, editPods, "the object is nil"},
		"nil pointer":     {(*appsv1.Deployment)(nil), editPods, "the object is nil"},
		"nil function":    {&appsv1.Deployment{}, nil, "edit Deployment: " + errNoFunctionText},
		"no workload":     {&corev1.Secret{}, editPods, "edit Secret: the kind has no pod template that is known"},
		"no kind":         {&unstructured.Unstructured{}, editPods, "edit Unstructured: the kind has no pod template"},
		"no template":     {&corev1.ReplicationController{}, editPods, "the field spec.template is nil"},
		"another content": {broken, editPods, "edit Deployment web: read it as *v1.Deployment: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := edit.PodTemplate(tc.object, tc.edit)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v, not %s", err, tc.want)
			}
		})
	}
}
