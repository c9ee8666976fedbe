package write

import (
	"testing"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// A refusal that names a field and the members of it that may be changed is about another member.
func TestRefusedField(t *testing.T) {
	type content = map[string]any
	there := content{"spec": content{
		"replicas": int64(1), "template": "a", "serviceName": "a", "accessModes": "a", "resources": "a",
	}}
	spec := field.NewPath("spec")
	for name, test := range map[string]struct {
		refusal   *field.Error
		desired   content
		want      string
		immutable bool
	}{
		"the field": {
			field.Invalid(spec.Child("serviceName"), "b", "field is immutable"), content{"serviceName": "b"}, "spec.serviceName", true,
		},
		"it is as desired": {field.Invalid(spec.Child("serviceName"), "b", "field is immutable"), content{"serviceName": "a"}, "", true},
		"a StatefulSet": {
			field.Forbidden(spec, "updates to statefulset spec for fields other than 'replicas' and 'template' are forbidden"),
			content{"replicas": int64(2), "template": "b", "serviceName": "b"}, "spec.serviceName", true,
		},
		"a claim": {
			field.Forbidden(spec, "spec is immutable after creation except resources.requests for bound claims\n+accessModes"),
			content{"accessModes": "b", "resources": "b"}, "spec.accessModes", true,
		},
		"only what may be changed": {
			field.Forbidden(spec, "updates to statefulset spec for fields other than 'replicas' are forbidden"),
			content{"replicas": int64(2)}, "spec", true,
		},
		"another refusal": {field.Invalid(spec.Child("serviceName"), "b", "is too long"), content{"serviceName": "b"}, "spec.serviceName", false},
	} {
		refused := apierrs.NewInvalid(schema.GroupKind{Kind: "Widget"}, "gadget", field.ErrorList{test.refusal})
		got, ok := RefusedField(refused, content{"spec": test.desired}, there)
		if got != test.want || ok != (test.want != "") {
			t.Errorf("%s: the field is %q (%t), want %q", name, got, ok, test.want)
		}
		if got := IsImmutable(refused); got != test.immutable {
			t.Errorf("%s: immutable is %t, want %t", name, got, test.immutable)
		}
	}
	if _, ok := RefusedField(apierrs.NewConflict(schema.GroupResource{}, "gadget", nil), nil, nil); ok {
		t.Error("a conflict names a field, want none")
	}
}

func TestFieldAt(t *testing.T) {
	content := map[string]any{
		"spec":     map[string]any{"containers": []any{map[string]any{"image": "a"}}},
		"metadata": map[string]any{"labels": map[string]any{"a.b/c": "d"}},
	}
	for path, want := range map[string]any{
		"spec.containers[0].image": "a", "metadata.labels[a.b/c]": "d", "spec.containers[1].image": nil, "spec.containers[x]": nil,
		"spec.containers[-1]": nil, "": nil, "spec.none": nil, "spec.containers[0].image.more": nil, "[": nil, "spec..containers": nil,
	} {
		if got, ok := fieldAt(content, path); got != want || ok != (want != nil) {
			t.Errorf("%q: got %v, %t, want %v", path, got, ok, want)
		}
	}
}

func TestWhatIsDesiredOtherwise(t *testing.T) {
	type content = map[string]any
	for name, test := range map[string]struct {
		desired, current any
		want             bool
	}{
		"the same":              {content{"a": "1"}, content{"a": "1"}, false},
		"a default":             {content{"a": "1"}, content{"a": "1", "b": "2"}, false},
		"an empty field":        {content{"a": content{}, "b": nil}, content{}, false},
		"another value":         {content{"a": "1"}, content{"a": "2"}, true},
		"one that is not there": {content{"a": "1"}, nil, true},
		"a longer list":         {[]any{"1", "2"}, []any{"1"}, true},
		"a shorter list":        {[]any{"1"}, []any{"1", "2"}, true},
		"a default in a list":   {[]any{content{"a": "1"}}, []any{content{"a": "1", "b": "2"}}, false},
		"an item differs":       {[]any{content{"a": "1"}}, []any{content{"a": "2"}}, true},
	} {
		if got := setsAnother(test.desired, test.current); got != test.want {
			t.Errorf("%s: sets another is %t, want %t", name, got, test.want)
		}
	}
}
