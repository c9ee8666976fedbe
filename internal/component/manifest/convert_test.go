package manifest_test

import (
	"testing"

	"github.com/espalier-dev/espalier/internal/component/manifest"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Go type adds no more than its fields that are never omitted.
func TestTypedObjects(t *testing.T) {
	claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "1", Labels: map[string]string{"a": "b"}},
		Spec:       appsv1.StatefulSetSpec{VolumeClaimTemplates: []corev1.PersistentVolumeClaim{claim}},
	}
	got := made(t, prepare(t, set)[0]).Object
	want := m{
		"apiVersion": "apps/v1", "kind": "StatefulSet",
		"metadata": m{"name": "a", "namespace": "home", "labels": m{"a": "b"}},
		"spec": m{
			"selector": nil, "serviceName": "", "updateStrategy": m{},
			"template":             m{"metadata": m{}, "spec": m{"containers": nil}},
			"volumeClaimTemplates": []any{m{"metadata": m{"name": "c"}, "spec": m{"resources": m{}}}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected (-want, +got):\n%s", diff)
	}
}

func TestTypedSecret(t *testing.T) {
	got := prepare(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string][]byte{"a": []byte("old"), "b": nil}, StringData: map[string]string{"a": "new"},
	})[0]
	if diff := cmp.Diff(m{"a": "bmV3", "b": ""}, made(t, got).Object["data"]); diff != "" || !got.Confidential {
		t.Errorf("confidential: %t; unexpected (-want, +got):\n%s", got.Confidential, diff)
	}
}

// What looks like an empty status in a schema is a property.
func TestPropertiesOfATypedDefinitionStay(t *testing.T) {
	definition := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: "Cluster", Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "Widget"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Schema: &apiextensionsv1.CustomResourceValidation{
				OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"metadata": {}, "spec": {}, "status": {},
				}},
			}}},
		},
	}
	versions := made(t, prepare(t, definition)[0]).Object["spec"].(m)["versions"].([]any)
	properties := versions[0].(m)["schema"].(m)["openAPIV3Schema"].(m)["properties"]
	if diff := cmp.Diff(m{"metadata": m{}, "spec": m{}, "status": m{}}, properties); diff != "" {
		t.Errorf("unexpected (-want, +got):\n%s", diff)
	}
}

// added is a typed object whose Go type writes null.
type added struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Template          struct {
		Metadata struct {
			CreationTimestamp metav1.Time `json:"creationTimestamp"`
		} `json:"metadata"`
		At metav1.Time `json:"at"`
	} `json:"template"`
}

func (a *added) DeepCopyObject() runtime.Object { c := *a; return &c }

func TestNullTimesOfTypedObjectsGo(t *testing.T) {
	object := &added{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	got := made(t, prepare(t, object)[0]).Object["template"]
	if diff := cmp.Diff(m{"metadata": m{}, "at": nil}, got); diff != "" {
		t.Errorf("unexpected (-want, +got):\n%s", diff)
	}
}

// unfit is an object that cannot be converted, or not without a panic.
type unfit struct {
	*metav1.PartialObjectMetadata `json:",inline"`
	Field                         any `json:"field"`
}

func (u *unfit) DeepCopyObject() runtime.Object { return u }

type wild struct{ cause any }

func (w wild) MarshalJSON() ([]byte, error) { panic(w.cause) }

type clumsy struct{}

var lines []string

func (clumsy) MarshalJSON() ([]byte, error) {
	return []byte(lines[0]), nil
}

// shell is unstructured by what is embedded.
type shell struct{ *unstructured.Unstructured }

// A Go type that panics is an error.
func TestTypedObjectsThatCannotBe(t *testing.T) {
	several := runtime.NewScheme()
	several.AddKnownTypeWithName(schema.GroupVersionKind{Version: "v1", Kind: "A"}, &added{})
	several.AddKnownTypeWithName(schema.GroupVersionKind{Version: "v2", Kind: "A"}, &added{})
	meta := func(version, kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: version, Kind: kind} }
	partial := func() *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{TypeMeta: meta("v1", "ConfigMap"), ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	}
	cases := map[string]struct {
		scheme *runtime.Scheme
		object client.Object
		want   string
	}{
		"nil":                 {options().Scheme, (*corev1.ConfigMap)(nil), "it is nil"},
		"other kind":          {options().Scheme, &corev1.ConfigMap{TypeMeta: meta("v1", "Secret")}, `its apiVersion "v1" and kind "Secret" are not those of the Go type *v1.ConfigMap`},
		"other version":       {options().Scheme, &corev1.ConfigMap{TypeMeta: meta("v2", "")}, `its apiVersion "v2" and kind "" are not those of the Go type *v1.ConfigMap`},
		"unknown":             {options().Scheme, &added{}, "it has no apiVersion and kind, and the scheme does not know the Go type *manifest_test.added"},
		"no scheme":           {nil, &added{TypeMeta: meta("", "ConfigMap")}, "it has no apiVersion and kind, and the scheme does not know the Go type *manifest_test.added"},
		"several":             {several, &added{TypeMeta: meta("", "A")}, "it has no apiVersion and kind, and the Go type *manifest_test.added has several"},
		"nothing embedded":    {nil, &unfit{}, "the Go type *manifest_test.unfit cannot be converted: a method of it panics: runtime error: invalid memory address or nil pointer dereference"},
		"unstructured of nil": {nil, shell{}, "the Go type manifest_test.shell cannot be converted: a method of it panics: runtime error: invalid memory address or nil pointer dereference"},
		"method panics":       {nil, &unfit{partial(), clumsy{}}, "the Go type *manifest_test.unfit cannot be converted: a method of it panics: runtime error: index out of range [0] with length 0"},
		"method gives away":   {nil, &unfit{partial(), wild{"hunter2"}}, "the Go type *manifest_test.unfit cannot be converted: a method of it panics"},
		"channel":             {nil, &unfit{partial(), make(chan int)}, "the Go type *manifest_test.unfit cannot be converted: unrecognized type: chan"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			wantError(t, options(func(o *manifest.Options) { o.Scheme = c.scheme }), []client.Object{c.object}, "objects[0]: "+c.want)
		})
	}
}

func TestKindsOfTypedObjects(t *testing.T) {
	for name, object := range map[string]client.Object{
		"from the scheme":      &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}},
		"in part its own":      &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: "a"}},
		"its own":              &added{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: "a"}},
		"embedded in a struct": shell{&unstructured.Unstructured{Object: m{"apiVersion": "v1", "kind": "ConfigMap", "metadata": m{"name": "a"}}}},
	} {
		if got := prepare(t, object)[0]; got.Desired.Key.String() != "ConfigMap home/a" || made(t, got).GetAPIVersion() != "v1" || made(t, got).GetKind() != "ConfigMap" {
			t.Errorf("%s: the object is %s of %s %s, want ConfigMap home/a of v1 ConfigMap", name, got.Desired.Key,
				made(t, got).GetAPIVersion(), made(t, got).GetKind())
		}
	}
}
