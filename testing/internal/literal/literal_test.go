package literal_test

import (
	"go/parser"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/testing/internal/literal"
)

type generic[T any] struct{ Value T }

type loop struct {
	Next *loop
	skip int
}

func TestOf(t *testing.T) {
	cyclic := &loop{skip: 1}
	cyclic.Next = cyclic
	requirement, err := labels.Parse("a in (b,c)")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		value any
		want  string
	}{
		"nothing": {nil, "nil"},
		"object": {
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"l": "w", "k": "v"}},
			`&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"k": "v", "l": "w"}}`,
		},
		"long object": {
			&appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", CreationTimestamp: metav1.Unix(1, 0)},
				Spec: appsv1.DeploymentSpec{
					Replicas: new(int32(3)),
					Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
						RestartPolicy: corev1.RestartPolicyAlways,
						Containers: []corev1.Container{{
							Name: "web", Image: "web:1",
							Resources: corev1.ResourceRequirements{
								Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
							},
						}},
					}},
				},
			},
			`&appsv1.Deployment{
	ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", CreationTimestamp: metav1.Unix(1, 0)},
	Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(3)),
		Template: corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{
				Containers: []corev1.Container{
					{
						Name:  "web",
						Image: "web:1",
						Resources: corev1.ResourceRequirements{
							Limits: corev1.ResourceList{"memory": resource.MustParse("1Gi")},
						},
					},
				},
				RestartPolicy: "Always",
			},
		},
	},
}`,
		},
		"unstructured": {
			&unstructured.Unstructured{Object: map[string]any{
				"spec": map[string]any{"n": int64(1), "f": 1.5, "b": true, "l": []any{"x", nil}},
			}},
			`&unstructured.Unstructured{
	Object: map[string]any{"spec": map[string]any{"b": true, "f": float64(1.5), "l": []any{"x", nil}, "n": int64(1)}},
}`,
		},
		"apply configuration": {
			corev1ac.Secret("s", "default"),
			`&corev1ac.SecretApplyConfiguration{
	TypeMetaApplyConfiguration:   metav1ac.TypeMetaApplyConfiguration{Kind: new("Secret"), APIVersion: new("v1")},
	ObjectMetaApplyConfiguration: &metav1ac.ObjectMetaApplyConfiguration{Name: new("s"), Namespace: new("default")},
}`,
		},
		"unstructured apply configuration": {
			client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: map[string]any{"kind": "A"}}),
			`client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: map[string]any{"kind": "A"}})`,
		},
		"JSON":               {[]byte(`{"a":"b"}`), "[]byte(`{\"a\":\"b\"}`)"},
		"text with newline":  {"a\nb", `"a\nb"`},
		"named string":       {corev1.PodRunning, `corev1.PodPhase("Running")`},
		"time":               {&metav1.Time{Time: time.Unix(1, 2)}, "new(metav1.Unix(1, 2))"},
		"duration":           {metav1.Duration{Duration: 90 * time.Second}, "metav1.Duration{Duration: 90 * time.Second}"},
		"odd duration":       {time.Duration(1), "time.Duration(1)"},
		"port":               {intstr.FromInt32(80), "intstr.FromInt32(80)"},
		"named port":         {intstr.FromString("http"), `intstr.FromString("http")`},
		"pointers in a list": {[]*int{new(1), nil}, "[]*int{new(1), nil}"},
		"map of structs":     {map[string]schema.GroupKind{"a": {Kind: "K"}}, `map[string]schema.GroupKind{"a": {Kind: "K"}}`},
		"everything":         {labels.Everything(), "labels.Everything()"},
		"labels":             {labels.SelectorFromSet(labels.Set{"a": "b"}), `labels.SelectorFromSet(labels.Set{"a": "b"})`},
		"requirement": {
			requirement,
			`func() labels.Selector { s, err := labels.Parse("a in (b,c)"); if err != nil { panic(err) }; return s }()`,
		},
		"field":              {fields.OneTermEqualSelector("a", "b"), `fields.ParseSelectorOrDie("a=b")`},
		"function":           {generic[func()]{func() {}}, "literal_test.generic[func()]{Value: nil}"},
		"generic":            {generic[corev1.Secret]{}, "literal_test.generic[corev1.Secret]{}"},
		"exported elsewhere": {[]client.Object{&corev1.Secret{}}, "[]client.Object{&corev1.Secret{}}"},
		"own unexported":     {loop{skip: 1}, "literal_test.loop{}"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := literal.Of(tc.value)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("differs (-want, +got):\n%s", diff)
			}
			if _, err := parser.ParseExpr(got); err != nil {
				t.Errorf("not a Go expression: %v\n%s", err, got)
			}
		})
	}
	t.Run("value that contains itself", func(t *testing.T) {
		if got := literal.Of(cyclic); !strings.HasPrefix(got, "&literal_test.loop{") {
			t.Errorf("got %s", got)
		}
	})
}

type own struct{ Text string }

// An expression for a file uses the names of that file, and lists the imports that the file lacks.
func TestWriter(t *testing.T) {
	const (
		core = "k8s.io/api/core/v1"
		meta = "k8s.io/apimachinery/pkg/apis/meta/v1"
		here = "github.com/espalier-dev/espalier/testing/internal/literal_test"
	)
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	usual := `&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}`
	tests := map[string]struct {
		writer  literal.Writer
		value   any
		want    string
		imports map[string]string
		problem string
	}{
		"no names": {
			value: object, want: usual, imports: map[string]string{"corev1": core, "metav1": meta},
		},
		"own names": {
			writer:  literal.Writer{Names: map[string]string{core: "core", meta: "."}},
			value:   object,
			want:    `&core.ConfigMap{ObjectMeta: ObjectMeta{Name: "a"}}`,
			imports: map[string]string{"core": core},
		},
		"a name that another import has": {
			writer:  literal.Writer{Names: map[string]string{"example.com/metav1": "metav1"}, Taken: []string{"corev1"}},
			value:   object,
			want:    `&corev12.ConfigMap{ObjectMeta: metav12.ObjectMeta{Name: "a"}}`,
			imports: map[string]string{"corev12": core, "metav12": meta},
		},
		"a type of the package itself": {
			writer: literal.Writer{Package: here},
			value:  []any{&own{Text: "a"}, own{}, generic[own]{}},
			want:   `[]any{&own{Text: "a"}, own{}, generic[own]{}}`,
		},
		"a type that is not exported": {
			value: own{}, want: "literal_test.own{}", imports: map[string]string{"literal_test": here},
			problem: "the type literal_test.own is not exported",
		},
		"a function": {value: func() {}, want: "nil", problem: "a func() cannot be written"},
		"only elements of a type": {
			value: []metav1.OwnerReference{{Name: "a"}}, want: `[]metav1.OwnerReference{{Name: "a"}}`,
			imports: map[string]string{"metav1": meta},
		},
		"a call": {
			value: literal.Call{Package: core, Func: "New", Args: []any{"a", 1}, Method: "By", MethodArgs: []any{true}},
			want:  `corev1.New("a", 1).By(true)`, imports: map[string]string{"corev1": core},
		},
		"a variable": {
			value: literal.Variable{Package: core, Name: "ErrHalt"},
			want:  "corev1.ErrHalt", imports: map[string]string{"corev1": core},
		},
		"a result": {
			value: reconcile.Result{RequeueAfter: time.Minute}, want: "reconcilers.Result{RequeueAfter: 1 * time.Minute}",
			imports: map[string]string{"reconcilers": "github.com/espalier-dev/espalier/reconcilers", "time": "time"},
		},
		"pointers": {
			value: []any{&map[string]int{"a": 1}, new(map[string]int), new(corev1.PodPhase), new(time.Duration)},
			want:  `[]any{&map[string]int{"a": 1}, new(map[string]int), new(corev1.PodPhase("")), new(time.Duration(0))}`,
			imports: map[string]string{
				"corev1": core, "time": "time",
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := tc.writer.Of(tc.value)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("differs (-want, +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.imports, tc.writer.Imports(got), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("the imports differ (-want, +got):\n%s", diff)
			}
			if got := tc.writer.Problem(); got != tc.problem {
				t.Errorf("want the problem %q, got %q", tc.problem, got)
			}
		})
	}
}
