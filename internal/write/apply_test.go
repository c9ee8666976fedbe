package write_test

import (
	"context"
	"errors"
	"testing"

	"github.com/espalier-dev/espalier/internal/write"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// answers is a client that answers each apply with an error.
type answers struct {
	client.Client
	err error
}

func (a answers) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	return a.err
}

func TestAnotherObjectOfTheNameIsAConflict(t *testing.T) {
	apply := func(err error) error {
		body := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		_, err = write.Writer{Client: answers{err: err}}.Apply(t.Context(), body, write.Version{UID: "1"})
		return err
	}
	kind := schema.GroupKind{Kind: "ConfigMap"}
	invalid := func(path string) error {
		return apierrs.NewInvalid(kind, "b", field.ErrorList{field.Invalid(field.NewPath("metadata", path), "x", "field is immutable")})
	}
	if err := apply(invalid("uid")); !apierrs.IsConflict(err) {
		t.Errorf("returned %v, want a conflict", err)
	}
	for name, err := range map[string]error{
		"none": nil, "another": errors.New("boom"), "another field": invalid("name"),
		"without detail": &apierrs.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid}},
	} {
		if got := apply(err); got != err {
			t.Errorf("%s: returned %v, want %v", name, got, err)
		}
	}
}
