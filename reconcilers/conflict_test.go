package reconcilers_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/espalier-dev/espalier/reconcilers"

	"github.com/google/go-cmp/cmp"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestFieldsAreLeftToOthers(t *testing.T) {
	const labels = `{metadata: {labels: {a.b: x, a: {b: y, c: z}}}}`
	const containers = `{c: [{name: a, image: "1"}, {name: 'b]=,"', image: "2", p: [{port: 80}, {port: 81, protocol: UDP, x: y}]}]}`
	for name, test := range map[string]struct {
		field, given, want string
	}{
		"a leaf":          {field: ".spec.replicas", given: `{spec: {replicas: 2, x: 1}}`, want: `{spec: {x: 1}}`},
		"an empty parent": {field: ".spec.sel.a", given: `{spec: {sel: {a: b}}, x: 1}`, want: `{x: 1}`},
		"a name of dots":  {field: ".metadata.labels.a.b", given: labels, want: `{metadata: {labels: {a.b: x, a: {c: z}}}}`},
		"another of dots": {field: ".metadata.labels.a.b", given: `{metadata: {labels: {a.b: x}}, x: 1}`, want: `{x: 1}`},
		"an item": {
			field: `.c[name="a"].image`, given: containers,
			want: `{c: [{name: a}, {name: 'b]=,"', image: "2", p: [{port: 80}, {port: 81, protocol: UDP, x: y}]}]}`,
		},
		"an odd name": {
			field: `.c[name="b]=,\""].image`, given: containers,
			want: `{c: [{name: a, image: "1"}, {name: 'b]=,"', p: [{port: 80}, {port: 81, protocol: UDP, x: y}]}]}`,
		},
		"two keys": {
			field: `.c[name="b]=,\""].p[port=81,protocol="UDP"].x`, given: containers,
			want: `{c: [{name: a, image: "1"}, {name: 'b]=,"', image: "2", p: [{port: 80}, {port: 81, protocol: UDP}]}]}`,
		},
		"a defaulted key": {
			field: `.c[name="b]=,\""].p[port=80,protocol="TCP"].port`, given: containers,
			want: `{c: [{name: a, image: "1"}, {name: 'b]=,"', image: "2", p: [{}, {port: 81, protocol: UDP, x: y}]}]}`,
		},
		"a whole list":     {field: `.set`, given: `{set: [x], x: 1}`, want: `{x: 1}`},
		"another name":     {field: ".spec.replica", given: `{spec: {replicas: 2}}`},
		"a longer name":    {field: ".spec.replicas.x", given: `{spec: {replicas: 2}}`},
		"another item":     {field: `.c[name="z"].image`, given: containers},
		"a broken key":     {field: `.c[name="a`, given: containers},
		"a key without":    {field: `.c[name]`, given: containers},
		"an unclosed key":  {field: `.c[port=80`, given: containers},
		"a set's member":   {field: `.set[="x"]`, given: `{set: [x]}`},
		"nothing":          {field: "", given: containers},
		"only a separator": {field: ".", given: containers},
	} {
		t.Run(name, func(t *testing.T) {
			given := fromYAML(t, test.given)
			got, ok := reconcilers.Without(given, test.field)
			if ok != (test.want != "") {
				t.Fatalf("found: %v", ok)
			}
			if diff := cmp.Diff(fromYAML(t, test.given), given); diff != "" {
				t.Errorf("what was given was changed:\n%s", diff)
			}
			if !ok {
				return
			}
			if diff := cmp.Diff(fromYAML(t, test.want), got); diff != "" {
				t.Errorf("what is left differs (-expected, +actual):\n%s", diff)
			}
		})
	}
}

func TestApplyConflictError(t *testing.T) {
	cause := func(message, field string) metav1.StatusCause {
		return metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Message: message, Field: field}
	}
	answer := apierrs.NewApplyConflict([]metav1.StatusCause{
		cause(`conflict with "kubectl" with subresource "scale" using apps/v1 at 2024-01-01T00:00:00Z`, ".spec.replicas"),
		cause(`conflict with "a \"b\""`, ".data.z"),
		cause(`conflict with "a \"b\""`, ".data.a"),
		cause(`conflict with "a \"b\""`, ".data.a"),
		cause(`somebody`, ".data.b"),
		{Type: metav1.CauseTypeForbidden, Field: ".data.c"},
	}, "of no matter")
	err := reconcilers.NewApplyConflictError("ConfigMap a/b", fmt.Errorf("wrapped: %w", answer))
	const want = `fields of ConfigMap a/b are managed by others: ` +
		`.data.a by "a \"b\"", .data.z by "a \"b\"", .spec.replicas by "kubectl", .data.b by "somebody"`
	if err == nil || err.Error() != want {
		t.Errorf("returned %v, want %s", err, want)
	}
	if !apierrs.IsConflict(err) || !errors.Is(err, answer) {
		t.Error("it does not unwrap to the answer")
	}
	resource := schema.GroupResource{Resource: "configmaps"}
	for name, other := range map[string]error{
		"none":           nil,
		"another":        errBoom,
		"stale":          apierrs.NewConflict(resource, "b", errBoom),
		"without detail": &apierrs.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonConflict}},
	} {
		if got := reconcilers.NewApplyConflictError("", other); got != nil {
			t.Errorf("%s: returned %v", name, got)
		}
	}
}

func TestAnotherObjectOfTheNameIsAConflict(t *testing.T) {
	kind := schema.GroupKind{Kind: "ConfigMap"}
	invalid := func(path string) error {
		return apierrs.NewInvalid(kind, "b", field.ErrorList{field.Invalid(field.NewPath("metadata", path), "x", "field is immutable")})
	}
	if err := reconcilers.AsStale(invalid("uid")); !apierrs.IsConflict(err) {
		t.Errorf("returned %v, want a conflict", err)
	}
	for name, err := range map[string]error{
		"none": nil, "another": errBoom, "another field": invalid("name"),
		"without detail": &apierrs.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid}},
	} {
		if got := reconcilers.AsStale(err); got != err {
			t.Errorf("%s: returned %v", name, got)
		}
	}
}
