package definitions_test

import (
	"testing"

	"github.com/espalier-dev/espalier/internal/definitions"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestMapper(t *testing.T) {
	typed := &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group:    "example.com",
		Names:    apiextensionsv1.CustomResourceDefinitionNames{Kind: "Index", Plural: "indices", Singular: "index"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1"}, {Name: "v2"}},
	}}
	withKind := typed.DeepCopy()
	withKind.TypeMeta = metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(withKind)
	if err != nil {
		t.Fatal(err)
	}
	other := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(content)}
	other.SetAPIVersion("example.com/v1")
	kind := schema.GroupKind{Group: "example.com", Kind: "Index"}
	for name, test := range map[string]struct {
		objects []runtime.Object
		known   bool
	}{
		"typed":                 {[]runtime.Object{typed}, true},
		"typed with its kind":   {[]runtime.Object{withKind}, true},
		"unstructured":          {[]runtime.Object{&unstructured.Unstructured{Object: content}}, true},
		"among others":          {[]runtime.Object{&corev1.Secret{}, typed}, true},
		"nothing":               {nil, false},
		"another kind":          {[]runtime.Object{other}, false},
		"an empty definition":   {[]runtime.Object{&apiextensionsv1.CustomResourceDefinition{}}, false},
		"a malformed":           {[]runtime.Object{&unstructured.Unstructured{Object: map[string]any{"spec": 1}}}, false},
		"a nil map":             {[]runtime.Object{&unstructured.Unstructured{}}, false},
		"only the type of them": {[]runtime.Object{&metav1.PartialObjectMetadata{TypeMeta: withKind.TypeMeta}}, false},
	} {
		for _, version := range []string{"v1", "v2"} {
			mapping, err := definitions.Mapper(test.objects...).RESTMapping(kind, version)
			switch {
			case !test.known && !meta.IsNoMatchError(err):
				t.Errorf("%s: the mapping is %v and the error %v, want that there is no match", name, mapping, err)
			case test.known && (err != nil || mapping.Resource.Resource != "indices"):
				t.Errorf("%s: the mapping is %v and the error %v, want the resource indices and none", name, mapping,
					err)
			}
		}
	}
}
