package duck_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/espalier-dev/espalier/duck"
)

func TestIsDuck(t *testing.T) {
	typeMeta := metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}
	tests := map[string]struct {
		obj  runtime.Object
		want bool
	}{
		"an unregistered type with a kind":      {newWorkload("x"), true},
		"a list of them":                        {newWorkloadList(), true},
		"an unregistered type without a kind":   {&workload{}, false},
		"a registered type":                     {&appsv1.Deployment{}, false},
		"a registered type with a kind":         {&appsv1.Deployment{TypeMeta: typeMeta}, false},
		"a registered type with a foreign kind": {&appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Duck"}}, false},
		"unstructured":                          {&unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Duck"}}, false},
		"an unstructured list":                  {&unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "DuckList"}}, false},
		"metadata":                              {&metav1.PartialObjectMetadata{TypeMeta: typeMeta}, false},
		"a list of metadata":                    {&metav1.PartialObjectMetadataList{TypeMeta: typeMeta}, false},
		"nothing":                               {nil, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := duck.IsDuck(tc.obj, clientgoscheme.Scheme); got != tc.want {
				t.Errorf("want %t, got %t", tc.want, got)
			}
		})
	}
}

func TestIsDuckAllocatesNothingForRegisteredTypes(t *testing.T) {
	for name, obj := range map[string]runtime.Object{
		"without a kind": &appsv1.Deployment{},
		"with a kind":    &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}},
	} {
		allocations := testing.AllocsPerRun(100, func() {
			duck.IsDuck(obj, clientgoscheme.Scheme)
		})
		if allocations != 0 {
			t.Errorf("%s: want no allocation, got %v", name, allocations)
		}
	}
}

func TestConvert(t *testing.T) {
	full := deployment("x")
	full.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))

	want := newWorkload("x")
	want.Labels = map[string]string{"app": "web"}
	want.Spec.Replicas = full.Spec.Replicas
	want.Spec.Template.Spec.Containers = []workloadContainer{{Name: "main", Image: "old"}}

	got := newWorkload("what was there goes")
	got.Annotations = map[string]string{"left": "over"}
	got.Status.ReadyReplicas = 7
	if err := duck.Convert(full, got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("duck (-want, +got):\n%s", diff)
	}

	u := &unstructured.Unstructured{}
	if err := duck.Convert(got, u); err != nil {
		t.Fatal(err)
	}
	back := &workload{}
	if err := duck.Convert(u, back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, back); diff != "" {
		t.Errorf("duck by way of unstructured (-want, +got):\n%s", diff)
	}

	copied := &unstructured.Unstructured{}
	if err := duck.Convert(u, copied); err != nil {
		t.Fatal(err)
	}
	copied.SetName("changed")
	if u.GetName() != "x" {
		t.Error("a copy of an unstructured object shares its content with it")
	}
}

func TestConvertErrors(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": "weird"}}
	tests := map[string]struct {
		from, to runtime.Object
		want     string
	}{
		"from": {
			(*workload)(nil), u,
			"unable to convert from object: ToUnstructured requires a non-nil pointer to an object, got *duck_test.workload",
		},
		"to": {
			u, newWorkload("x"),
			"unable to convert to object: cannot restore struct from: string",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := duck.Convert(tc.from, tc.to)
			if err == nil || err.Error() != tc.want {
				t.Errorf("want error %q, got %v", tc.want, err)
			}
		})
	}
}

func BenchmarkIsDuck(b *testing.B) {
	for name, obj := range map[string]runtime.Object{
		"registered":             &appsv1.Deployment{},
		"registered with a kind": &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}},
		"duck":                   newWorkload("x"),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				duck.IsDuck(obj, clientgoscheme.Scheme)
			}
		})
	}
}
