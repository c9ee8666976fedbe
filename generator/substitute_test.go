package generator_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/generator"
)

func TestSubstituteTexts(t *testing.T) {
	variables := map[string]string{"A": "a", "b_2": "$$ ${A}", "EMPTY": ""}
	for text, tc := range map[string]struct{ want, err string }{
		"":                        {"", ""},
		"plain $ A $A $(A) {A}":   {"plain $ A $A $(A) {A}", ""},
		"${A}":                    {"a", ""},
		"x${A}y${A}z":             {"xayaz", ""},
		"${b_2}":                  {"$$ ${A}", ""},
		"[${EMPTY}]":              {"[]", ""},
		"${EMPTY:-d}":             {"d", ""},
		"${NONE:-}":               {"", ""},
		"${NONE:-a $$ {b:-c}":     {"a $$ {b:-c", ""},
		"${A:-d}":                 {"a", ""},
		"$$":                      {"$", ""},
		"$$$$":                    {"$$", ""},
		"$${A}":                   {"${A}", ""},
		"$$${A}":                  {"$a", ""},
		"$":                       {"$", ""},
		"ä${A}ö":                  {"äaö", ""},
		"${NONE}":                 {"", `data.key: the variable NONE is not defined`},
		"${NONE}${OTHER}":         {"", "data.key: the variable NONE is not defined\ndata.key: the variable OTHER is not defined"},
		"${":                      {"", "data.key: no name of a variable follows ${, write $${ for that text"},
		"${}":                     {"", "data.key: no name of a variable follows ${, write $${ for that text"},
		"${A":                     {"", "data.key: no name of a variable follows ${, write $${ for that text"},
		"${1}":                    {"", "data.key: no name of a variable follows ${, write $${ for that text"},
		"${A%x}":                  {"", "data.key: no name of a variable follows ${, write $${ for that text"},
		"${A:-never ends ${NONE}": {"a", ""},
	} {
		t.Run(text, func(t *testing.T) {
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "n"}, Data: map[string]string{"key": text}}
			got, err := generator.Substitute(variables, nil).TransformObjects("", "", []client.Object{object})
			if tc.err != "" {
				if want := "v1.ConfigMap ns/n: " + tc.err; errorText(err) != want || got != nil {
					t.Errorf("got %v, want %s", err, want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if text := got[0].(*corev1.ConfigMap).Data["key"]; text != tc.want {
				t.Errorf("the text is %q, want %q", text, tc.want)
			}
		})
	}
}

// Variables are replaced anywhere but in keys, and objects keep their types.
func TestSubstituteObjects(t *testing.T) {
	untyped := func(name, text string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "labels": map[string]any{"a": text}},
			"${KEY}": text, "list": []any{int64(1), true, nil, text, []any{map[string]any{"b": text}}},
			"texts": []string{text}, "map": map[string]string{"c": text},
		}}
	}
	pod := func(text string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: text}}}}
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "secret"}, Data: map[string][]byte{"a": []byte("${A}")}, StringData: map[string]string{"b": "${A}"}}
	objects := []client.Object{untyped("one", "${A}"), pod("repo/${A}:1"), secret, untyped("other", "${NONE}"), nil, (*corev1.Pod)(nil)}
	transformer := generator.Substitute(func(name string) (string, bool) { return "value of " + name, name == "A" },
		func(object client.Object) bool { return object.GetName() != "other" })
	got, err := transformer.TransformObjects("", "", objects)
	if err != nil {
		t.Fatal(err)
	}
	replaced := secret.DeepCopy()
	replaced.StringData["b"] = "value of A"
	want := []client.Object{untyped("one", "value of A"), pod("repo/value of A:1"), replaced, untyped("other", "${NONE}"), nil, (*corev1.Pod)(nil)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !generator.IsDeterministic(transformer) {
		t.Error("it is not deterministic, want it to be")
	}
}

func TestSubstituteNamesEachMissingVariable(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "d", "namespace": "ns", "annotations": map[string]any{"a.b/c": "${C}"}},
		"spec": map[string]any{"template": map[string]any{"args": []any{"x", "${B}"}}, "paused": "${A}"},
	}}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Data: map[string]string{"z": "${Z}"}}
	for range 10 {
		_, err := generator.Substitute(map[string]string{}, nil).TransformObjects("", "", []client.Object{object.DeepCopy(), config})
		want := `Deployment ns/d: metadata.annotations["a.b/c"]: the variable C is not defined
spec.paused: the variable A is not defined
spec.template.args[1]: the variable B is not defined
v1.ConfigMap c: data.z: the variable Z is not defined`
		if errorText(err) != want {
			t.Fatalf("the error is %v, want %s", err, want)
		}
	}
}

func FuzzSubstitute(f *testing.F) {
	for _, text := range []string{"${A}", "$${A}", "${NONE:-d}", "${NONE}", "${", "a$b", "${A:-${A}}"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		substitute := generator.Substitute(map[string]string{"A": "a"}, nil)
		transform := func(text string) (string, error) {
			object := &unstructured.Unstructured{Object: map[string]any{"kind": "Thing", "text": text}}
			got, err := substitute.TransformObjects("", "", []client.Object{object})
			if err != nil {
				return "", err
			}
			return got[0].(*unstructured.Unstructured).Object["text"].(string), nil
		}
		if _, err := transform(text); err != nil && !strings.HasPrefix(err.Error(), "Thing : text: ") {
			t.Errorf("the error is %v, want it to name the field", err)
		}
		// What is escaped stays as it is.
		if got, err := transform(strings.ReplaceAll(text, "$", "$$")); err != nil || got != text {
			t.Errorf("%q becomes %q (%v), want it escaped as it is", text, got, err)
		}
	})
}

// What the operator knows about the cluster is put into manifests that are written by hand.
func ExampleSubstitute() {
	variables := map[string]string{"REGION": "eu-1"}
	onlyConfigMaps := func(object client.Object) bool { _, ok := object.(*corev1.ConfigMap); return ok }
	objects := []client.Object{&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "plots", Name: "garden"},
		Data:       map[string]string{"url": "https://${REGION}.example.com/${STAGE:-live}", "script": "echo $${HOME}"},
	}}

	replaced, _ := generator.Substitute(variables, onlyConfigMaps).TransformObjects("plots", "garden", objects)
	fmt.Println(replaced[0].(*corev1.ConfigMap).Data)

	_, err := generator.Substitute(map[string]string{}, nil).TransformObjects("plots", "garden", objects)
	fmt.Println(err)
	// Output:
	// map[script:echo ${HOME} url:https://eu-1.example.com/live]
	// v1.ConfigMap plots/garden: data.url: the variable REGION is not defined
}

// strictText is a field that refuses a text and quotes it.
type strictText struct{ text string }

func (s *strictText) UnmarshalJSON(text []byte) error {
	return fmt.Errorf("%s is not accepted", text)
}

func (s strictText) MarshalJSON() ([]byte, error) { return []byte(`"` + s.text + `"`), nil }

type strictObject struct {
	corev1.ConfigMap `json:",inline"`
	Text             strictText `json:"text"`
}

func TestSubstituteShowsNoValues(t *testing.T) {
	object := &strictObject{Text: strictText{"${A}"}}
	object.Kind, object.Name = "Strict", "n"
	_, err := generator.Substitute(map[string]string{"A": "s3cret"}, nil).TransformObjects("", "", []client.Object{object})
	if want := "Strict n: a field does not accept the value of its variable"; errorText(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestSubstituteIsBounded(t *testing.T) {
	config := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "c"}, Data: map[string]string{"a": strings.Repeat("${V}", 100_000)},
	}
	variables := map[string]string{"V": strings.Repeat("v", 1<<20)}
	_, err := generator.Substitute(variables, nil).TransformObjects("", "", []client.Object{config})
	want := "v1.ConfigMap c: with the values of its variables, the object has more than 8388608 bytes"
	if errorText(err) != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
}
