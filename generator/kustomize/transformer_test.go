package kustomize_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/generator/kustomize"
)

// parse returns the objects of documents.
func parse(t testing.TB, documents ...string) []client.Object {
	t.Helper()
	var objects []client.Object
	for _, document := range documents {
		object := &unstructured.Unstructured{}
		text, err := yaml.YAMLToJSON([]byte(document))
		must(t, err)
		must(t, object.UnmarshalJSON(text))
		objects = append(objects, object)
	}
	return objects
}

const (
	deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: one, labels: {app: web}}
spec:
  replicas: 1
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "nginx:1.0", args: ["$(HOST)"]}
      - {name: side, image: "registry.example:5000/side@sha256:abc"}
`
	binding = `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: b, namespace: one}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}
subjects:
- {kind: ServiceAccount, name: default, namespace: one}
- {kind: ServiceAccount, name: other, namespace: one}
`
	clusterRole = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r}\nrules: []\n"
	definition  = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.test}
spec: {group: example.test, names: {kind: Widget, plural: widgets}, scope: Namespaced}
`
	widget = "apiVersion: example.test/v1\nkind: Widget\nmetadata: {name: w, namespace: one}\nspec: {image: \"nginx:1.0\", list: [1, 2.5, 1e30, \"012\", \"yes\", null, true]}\n"
)

// TestTransformObjects: the objects afterwards, as merge patches of the objects before.
func TestTransformObjects(t *testing.T) {
	for name, test := range map[string]struct {
		transformer *kustomize.ObjectTransformer
		objects     []string
		// want has a value for each path that differs.
		want map[string]any
	}{
		"nil":  {nil, []string{deployment}, nil},
		"zero": {&kustomize.ObjectTransformer{}, []string{deployment}, nil},
		"images": {&kustomize.ObjectTransformer{Images: []kustomize.Image{
			{Name: "nginx", NewName: "mirror/nginx", NewTag: "2"}, {Name: "registry.example:5000/side", Digest: "sha256:def"}, {Name: "unused", NewTag: "1"}}},
			[]string{deployment, widget}, map[string]any{
				"0.spec.template.spec.containers.0.image": "mirror/nginx:2",
				"0.spec.template.spec.containers.1.image": "registry.example:5000/side@sha256:def",
			}},
		"labels": {&kustomize.ObjectTransformer{Labels: map[string]string{"a": "yes", "app": "new"}}, []string{deployment, widget},
			map[string]any{"0.metadata.labels.a": "yes", "0.metadata.labels.app": "new", "1.metadata.labels.a": "yes", "1.metadata.labels.app": "new"}},
		"annotations": {&kustomize.ObjectTransformer{Annotations: map[string]string{"a": "007"}}, []string{deployment, definition},
			map[string]any{"0.metadata.annotations.a": "007", "1.metadata.annotations.a": "007"}},
		"namespace": {&kustomize.ObjectTransformer{Namespace: "two"}, []string{deployment, binding, clusterRole, definition, widget},
			map[string]any{"0.metadata.namespace": "two", "1.metadata.namespace": "two", "1.subjects.0.namespace": "two", "4.metadata.namespace": "two"}},
		"strategic patch without target": {&kustomize.ObjectTransformer{Patches: []kustomize.Patch{
			{Patch: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: one}\nspec: {replicas: 3}"}}},
			[]string{widget, deployment}, map[string]any{"1.spec.replicas": int64(3)}},
		"strategic patch of a container": {&kustomize.ObjectTransformer{Patches: []kustomize.Patch{
			{Patch: "spec: {template: {spec: {containers: [{name: web, image: x}]}}}\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: any}", Target: &kustomize.Target{Kind: "Deployment"}}}},
			[]string{deployment}, map[string]any{"0.spec.template.spec.containers.0.image": "x"}},
		"JSON patch": {&kustomize.ObjectTransformer{Patches: []kustomize.Patch{
			{Patch: `[{"op": "replace", "path": "/spec/image", "value": "x"}]`, Target: &kustomize.Target{Group: "example.test", Version: "v1", Kind: "Widget", Name: "w", Namespace: "o.*"}}}},
			[]string{deployment, widget}, map[string]any{"1.spec.image": "x"}},
		"a patch sees what the patch before it did": {&kustomize.ObjectTransformer{Patches: []kustomize.Patch{
			{Patch: `[{"op": "add", "path": "/metadata/labels/tier", "value": "x"}]`, Target: &kustomize.Target{LabelSelector: "app=web"}},
			{Patch: `[{"op": "replace", "path": "/spec/replicas", "value": 5}]`, Target: &kustomize.Target{LabelSelector: "tier=x"}}}},
			[]string{deployment, widget}, map[string]any{"0.metadata.labels.tier": "x", "0.spec.replicas": int64(5)}},
		"all at once": {&kustomize.ObjectTransformer{
			Patches: []kustomize.Patch{{Patch: `[{"op": "replace", "path": "/spec/replicas", "value": 5}]`, Target: &kustomize.Target{Kind: "Deployment"}}},
			Images:  []kustomize.Image{{Name: "nginx", NewTag: "2"}}, Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "1"}, Namespace: "two"},
			[]string{deployment}, map[string]any{"0.spec.replicas": int64(5), "0.spec.template.spec.containers.0.image": "nginx:2", "0.metadata.labels.l": "1",
				"0.metadata.annotations.a": "1", "0.metadata.namespace": "two"}},
		"same name in many namespaces": {&kustomize.ObjectTransformer{Labels: map[string]string{"a": "b"}, Patches: []kustomize.Patch{
			{Patch: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: same, namespace: b}\ndata: {x: y}"}}},
			[]string{
				"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: same, namespace: c}", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: same, namespace: b}",
				"apiVersion: v1\nkind: Secret\nmetadata: {name: same, namespace: a}", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: same, namespace: a}"},
			map[string]any{"0.metadata.labels.a": "b", "1.metadata.labels.a": "b", "1.data.x": "y", "2.metadata.labels.a": "b", "3.metadata.labels.a": "b"}},
		"deleted by a patch": {&kustomize.ObjectTransformer{Patches: []kustomize.Patch{
			{Patch: "apiVersion: example.test/v1\nkind: Widget\nmetadata: {name: w, namespace: one}\n$patch: delete"}}},
			[]string{deployment, widget}, map[string]any{"1": nil}},
	} {
		t.Run(name, func(t *testing.T) {
			before := parse(t, test.objects...)
			got, err := test.transformer.TransformObjects("default", "app", parse(t, test.objects...))
			must(t, err)
			differences := map[string]any{}
			compare("", list(before), list(got), differences)
			if diff := cmp.Diff(test.want, differences); diff != "" && len(test.want)+len(differences) > 0 {
				t.Errorf("what changed differs (-want +got):\n%s", diff)
			}
		})
	}
}

func list(objects []client.Object) []any {
	var all []any
	for _, object := range contentsOf(objects) {
		all = append(all, object)
	}
	return all
}

// compare collects the values of b that differ from those of a. Each path has the keys that lead to the value.
func compare(path string, a, b any, into map[string]any) {
	at := func(key any) string { return strings.TrimPrefix(fmt.Sprintf("%s.%v", path, key), ".") }
	switch a := a.(type) {
	case map[string]any:
		other, _ := b.(map[string]any)
		for key := range other {
			if _, ok := a[key]; !ok {
				compare(at(key), map[string]any{}, other[key], into)
			}
		}
		for key, value := range a {
			compare(at(key), value, other[key], into)
		}
		if other == nil {
			into[path] = b
		}
	case []any:
		other, _ := b.([]any)
		for i, value := range a {
			if i < len(other) {
				compare(at(i), value, other[i], into)
			} else {
				into[at(i)] = nil
			}
		}
	default:
		if !cmp.Equal(a, b) {
			into[path] = b
		}
	}
}

// TestTransformTypedObjects: typed objects are fine if they say what they are.
func TestTransformTypedObjects(t *testing.T) {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "typed"}, Data: map[string]string{"a": "1"}}
	transformer := &kustomize.ObjectTransformer{Labels: map[string]string{"a": "b"}}
	_, err := transformer.TransformObjects("", "", []client.Object{object})
	if err == nil || err.Error() != "object 0 (*v1.ConfigMap typed) has no apiVersion, kind or name" {
		t.Errorf("the error is %v, want one about apiVersion, kind or name", err)
	}
	object.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
	got, err := transformer.TransformObjects("", "", []client.Object{object})
	if err != nil || len(got) != 1 || got[0].GetLabels()["a"] != "b" || len(object.Labels) > 0 {
		t.Errorf("the objects are %v (%v), want a copy with the label a=b", got, err)
	}
}

// TestTransformErrors: an error names the field, and the patch by its index, and has no secrets.
func TestTransformErrors(t *testing.T) {
	ok := kustomize.Patch{Patch: `[{"op": "test", "path": "/kind", "value": "Secret"}]`, Target: &kustomize.Target{Kind: "Secret"}}
	for name, test := range map[string]struct {
		patch kustomize.Patch
		want  string
	}{
		"empty":                        {kustomize.Patch{Patch: " \n"}, "patches[1]: patch is empty"},
		"no match of a target":         {kustomize.Patch{Patch: `[]`, Target: &kustomize.Target{Kind: "Job"}}, "patches[1]: target: no object matches"},
		"no match of a name":           {kustomize.Patch{Patch: "apiVersion: v1\nkind: Secret\nmetadata: {name: gone}\nstringData: {a: hunter2}"}, "patches[1]: no resource matches strategic merge patch"},
		"no match of a namespace":      {kustomize.Patch{Patch: "apiVersion: v1\nkind: Secret\nmetadata: {name: access, namespace: gone}"}, "patches[1]: no resource matches strategic merge patch"},
		"JSON patch without target":    {kustomize.Patch{Patch: `[{"op": "remove", "path": "/hunter2"}]`}, "patches[1]: must specify a target for JSON patch"},
		"no patch":                     {kustomize.Patch{Patch: "password hunter2", Target: &kustomize.Target{Kind: "Secret"}}, "patches[1]: patch: unable to parse SM or JSON patch"},
		"unknown operation":            {kustomize.Patch{Patch: `[{"op": "hunter2", "path": "/a"}]`, Target: &kustomize.Target{Kind: "Secret"}}, "patches[1]: "},
		"path that is not there":       {kustomize.Patch{Patch: `[{"op": "replace", "path": "/data/x", "value": "hunter2"}]`, Target: &kustomize.Target{Kind: "Secret"}}, "patches[1]: "},
		"test that fails":              {kustomize.Patch{Patch: `[{"op": "test", "path": "/stringData/password", "value": "x"}]`, Target: &kustomize.Target{Name: "acc.*"}}, "patches[1]: "},
		"malformed regular expression": {kustomize.Patch{Patch: `[]`, Target: &kustomize.Target{Name: "("}}, "patches[1]: target: "},
		"malformed label selector":     {kustomize.Patch{Patch: `[]`, Target: &kustomize.Target{LabelSelector: "a=(b"}}, "patches[1]: target: "},
		"two patches with a target":    {kustomize.Patch{Patch: secret + "---\n" + secret, Target: &kustomize.Target{Kind: "Secret"}}, "patches[1]: Multiple Strategic-Merge Patches"},
		"aliases without end":          {kustomize.Patch{Patch: bomb()}, "patches[1]: patch: is too large: aliases"},
	} {
		t.Run(name, func(t *testing.T) {
			transformer := &kustomize.ObjectTransformer{Patches: []kustomize.Patch{ok, test.patch}}
			_, err := transformer.TransformObjects("", "", parse(t, deployment, secret))
			if err == nil || !strings.HasPrefix(err.Error(), test.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error is %v, want it to begin with %s and show no secret", err, test.want)
			}
		})
	}
	for name, test := range map[string]struct {
		objects []client.Object
		want    string
	}{
		"nil":         {[]client.Object{nil}, "object 0 is nil"},
		"nil pointer": {[]client.Object{(*unstructured.Unstructured)(nil)}, "object 0 is nil"},
		"typed nil":   {[]client.Object{(*corev1.Secret)(nil)}, "object 0 is nil"},
		"twice":       {parse(t, secret, secret), "Secret access: there is another object with this kind and name"},
		"left out": {parse(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: b, annotations: {config.kubernetes.io/local-config: 'true'}}"),
			"Secret b/a: kustomize leaves out objects with the annotation config.kubernetes.io/local-config"},
		"no name": {parse(t, "apiVersion: v1\nkind: Secret\nmetadata: {generateName: a}"), "object 0 (*unstructured.Unstructured ) has no apiVersion, kind or name"},
		"a list":  {parse(t, "apiVersion: v1\nkind: SecretList\nmetadata: {name: a}\nitems: []"), "SecretList a: it is a list"},
	} {
		t.Run(name, func(t *testing.T) {
			transformer := &kustomize.ObjectTransformer{Labels: map[string]string{"a": "b"}}
			_, err := transformer.TransformObjects("", "", test.objects)
			if err == nil || err.Error() != test.want {
				t.Errorf("the error is %v, want %s", err, test.want)
			}
		})
	}
}

// TestTransformerAsAField: a spec can contain a transformer.
func TestTransformerAsAField(t *testing.T) {
	text := `{"patches":[{"patch":"x","target":{"kind":"Job"}}],"images":[{"name":"a","newTag":"2"}],"labels":{"a":"b"},"annotations":{"c":"d"},"namespace":"n"}`
	transformer := &kustomize.ObjectTransformer{}
	must(t, json.Unmarshal([]byte(text), transformer))
	again, err := json.Marshal(transformer.DeepCopy())
	if err != nil || string(again) != text || !transformer.Deterministic() {
		t.Errorf("the text is %s (%v), want the deterministic %s", again, err, text)
	}
}
