package registry_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/testing/internal/registry"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// definitionFrom reads a definition from the test data.
func definitionFrom(t testing.TB, name string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	encoded, err := os.ReadFile("testdata/definitions/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(encoded, definition); err != nil {
		t.Fatal(err)
	}
	return definition
}

// strategyOf returns the strategy of the stored version of a definition.
func strategyOf(t testing.TB, definition *apiextensionsv1.CustomResourceDefinition) registry.Strategy {
	t.Helper()
	defined, err := registry.FromDefinition(definition)
	if err != nil {
		t.Fatal(err)
	}
	return defined.Versions[0].Strategy
}

// server returns a client of the real API server, and a namespace.
func server(t *testing.T) (client.WithWatch, string) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(plane.Config(t), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c, plane.Namespace(t)
}

// establish creates a definition on the real server and waits until it is established. The end of the test deletes it.
func establish(t *testing.T, c client.Client, definition *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	// A test that runs again may meet the definition of the run before, which is being deleted.
	awaitGone(t, c, definition)
	definition = definition.DeepCopy()
	if err := c.Create(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The context of the test has ended.
		if err := c.Delete(context.Background(), definition); err != nil {
			t.Error(err)
		}
	})
	controlplanetest.Eventually(t, "the definition is not established", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(definition), definition); err != nil {
			return err
		}
		established := func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
			return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
		}
		if conditions := definition.Status.Conditions; !slices.ContainsFunc(conditions, established) {
			return fmt.Errorf("its conditions are %v", conditions)
		}
		return nil
	})
	list := &unstructured.UnstructuredList{Object: map[string]any{
		"apiVersion": definition.Spec.Group + "/" + definition.Spec.Versions[0].Name,
		"kind":       definition.Spec.Names.ListKind,
	}}
	controlplanetest.Eventually(t, "the kind is not served", func(ctx context.Context) error {
		return c.List(ctx, list)
	})
}

// awaitGone waits until there is no definition of the name.
func awaitGone(t *testing.T, c client.Client, definition *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	controlplanetest.Eventually(t, "the definition is still there", func(ctx context.Context) error {
		live := &apiextensionsv1.CustomResourceDefinition{}
		err := c.Get(ctx, client.ObjectKeyFromObject(definition), live)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("reading it returns %w, and its conditions are %v", errors.Join(err), live.Status.Conditions)
	})
}

// withContent returns a copy of an object with other contents than its metadata.
func withContent(t testing.TB, obj *unstructured.Unstructured, content string) *unstructured.Unstructured {
	t.Helper()
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(content), &fields); err != nil {
		t.Fatal(err)
	}
	fields["apiVersion"], fields["kind"] = obj.GetAPIVersion(), obj.GetKind()
	fields["metadata"] = runtime.DeepCopyJSONValue(obj.Object["metadata"])
	encoded, err := (&unstructured.Unstructured{Object: fields}).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	next := &unstructured.Unstructured{}
	// Numbers are integers where they can be, as in what a client sends.
	if err := next.UnmarshalJSON(encoded); err != nil {
		t.Fatal(err)
	}
	return next
}
