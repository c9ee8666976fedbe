package registry_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/testing/internal/registry"

	gocmp "github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestCustomResources makes calls with the strategy of a definition. It answers as a real API server did.
func TestCustomResources(t *testing.T) {
	t.Parallel()
	strategy := strategyOf(t, definitionFrom(t, "gadgets"))
	got := answers{}
	for row, calls := range gadgetCalls {
		memory := &inMemory{Strategy: strategy}
		for _, call := range calls {
			got[row] = append(got[row], memory.answer(t, call))
		}
	}
	compareRecorded(t, "gadgets", got)
}

// TestRatchetedCustomResources does the same with objects that were valid when they were created.
func TestRatchetedCustomResources(t *testing.T) {
	t.Parallel()
	lax, strict := strategyOf(t, definitionFrom(t, "ratchets")), strategyOf(t, definitionFrom(t, "ratchets-strict"))
	got := answers{}
	for row, calls := range ratchetCalls {
		memory := &inMemory{Strategy: lax}
		for _, call := range calls {
			got[row] = append(got[row], memory.answer(t, call))
			memory.Strategy = strict
		}
	}
	compareRecorded(t, "ratchets", got)
}

// TestCustomResourcesOnServer makes the calls to a real API server.
func TestCustomResourcesOnServer(t *testing.T) {
	t.Parallel()
	c, namespace := server(t)
	definition := definitionFrom(t, "gadgets")
	establish(t, c, definition)
	got := answers{}
	for row, calls := range gadgetCalls {
		obj := objectOf(t, definition, namespace, row)
		for i, call := range calls {
			got[row] = append(got[row], onServer(t, c, obj, row, i, call))
		}
	}
	recordServer(t, "gadgets", got)
}

// TestRatchetedCustomResourcesOnServer makes the calls to a real API server, whose definition changes.
func TestRatchetedCustomResourcesOnServer(t *testing.T) {
	t.Parallel()
	c, namespace := server(t)
	definition := definitionFrom(t, "ratchets")
	establish(t, c, definition)
	got, objs := answers{}, map[string]*unstructured.Unstructured{}
	for row, calls := range ratchetCalls {
		objs[row] = objectOf(t, definition, namespace, row)
		got[row] = append(got[row], onServer(t, c, objs[row], row, 0, calls[0]))
	}

	live := &apiextensionsv1.CustomResourceDefinition{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(definition), live); err != nil {
		t.Fatal(err)
	}
	live.Spec = definitionFrom(t, "ratchets-strict").Spec
	if err := c.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	probe := objectOf(t, definition, namespace, "probe")
	controlplanetest.Eventually(t, "the schema is not the new one", func(ctx context.Context) error {
		invalid := withContent(t, probe, `spec: {mode: odd}`)
		if err := c.Create(ctx, invalid, client.DryRunAll); !apierrors.IsInvalid(err) {
			return fmt.Errorf("creating what it does not allow returns %w", errors.Join(err))
		}
		return nil
	})
	for row, calls := range ratchetCalls {
		for i, call := range calls[1:] {
			got[row] = append(got[row], onServer(t, c, objs[row], row, i+1, call))
		}
	}
	recordServer(t, "ratchets", got)
}

// objectOf returns an object of a row, without content.
func objectOf(
	t *testing.T, definition *apiextensionsv1.CustomResourceDefinition, namespace, row string,
) *unstructured.Unstructured {
	t.Helper()
	obj := strategyOf(t, definition).New().(*unstructured.Unstructured)
	obj.SetNamespace(namespace)
	obj.SetName(strings.ReplaceAll(row, " ", "-"))
	return obj
}

// onServer makes a call to the real server. The object becomes what it has answered.
func onServer(
	t *testing.T, c client.Client, obj *unstructured.Unstructured, row string, i int, call call,
) answer {
	t.Helper()
	var err error
	next := withContent(t, obj, call.content)
	switch call.verb {
	case "create":
		err = c.Create(t.Context(), next)
	case "update":
		err = c.Update(t.Context(), next)
	case "status":
		err = c.Status().Update(t.Context(), next)
	default:
		t.Fatalf("the verb is %q, want create, update or status", call.verb)
	}
	if refused := err != nil; refused != call.refused {
		t.Errorf("row %q, call %d: the server answers %v, want it refused, as the table says: %v", row, i, err,
			call.refused)
	}
	if err == nil {
		obj.Object = next.DeepCopy().Object
	}
	return serverAnswer(t, next, err)
}

// inMemory makes calls with a strategy, as a store would.
type inMemory struct {
	registry.Strategy
	stored *unstructured.Unstructured
}

func (m *inMemory) answer(t *testing.T, call call) answer {
	t.Helper()
	if call.verb == "create" {
		obj := m.New().(*unstructured.Unstructured)
		obj.SetNamespace("default")
		obj.SetName("name")
		obj.SetUID("uid")
		obj.SetResourceVersion("1")
		obj.SetCreationTimestamp(metav1.Unix(1, 0))
		obj = withContent(t, obj, call.content)
		m.PrepareForCreate(obj)
		if errs := m.Validate(obj); len(errs) > 0 {
			return refusal(errs)
		}
		m.stored = obj
		return acceptance(obj)
	}
	subresource := ""
	if call.verb == "status" {
		subresource = call.verb
	}
	obj, before := withContent(t, m.stored, call.content), m.stored.DeepCopy()
	m.PrepareForUpdate(obj, m.stored, subresource)
	errs := m.ValidateUpdate(obj, m.stored, subresource)
	if diff := gocmp.Diff(before, m.stored); diff != "" {
		t.Errorf("the old object has changed, want it as it was (-before +after):\n%s", diff)
	}
	if len(errs) > 0 {
		return refusal(errs)
	}
	m.stored = obj
	return acceptance(obj)
}
