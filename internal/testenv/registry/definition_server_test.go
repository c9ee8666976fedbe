package registry_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/registry"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/wait"
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

// establish creates a definition on the real server and waits until it is established.
func establish(t *testing.T, c client.Client, definition *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
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
	eventually(t, func(ctx context.Context) bool {
		if err := c.Get(ctx, client.ObjectKeyFromObject(definition), definition); err != nil {
			return false
		}
		return slices.ContainsFunc(definition.Status.Conditions,
			func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
				return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
			})
	})
	list := &unstructured.UnstructuredList{Object: map[string]any{
		"apiVersion": definition.Spec.Group + "/" + definition.Spec.Versions[0].Name,
		"kind":       definition.Spec.Names.ListKind,
	}}
	eventually(t, func(ctx context.Context) bool { return c.List(ctx, list) == nil })
}

func eventually(t *testing.T, condition func(context.Context) bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 30*time.Second, true,
		func(ctx context.Context) (bool, error) { return condition(ctx), nil })
	if err != nil {
		t.Fatal(err)
	}
}

// answer is what an API server says to a write, without what it only says in messages of another version.
type answer struct {
	// Object is the content with the generation.
	Object map[string]any
	Causes []cause
}

type cause struct{ Type, Field, Message string }

// refusal returns what an error list says.
func refusal(errs field.ErrorList) answer {
	var a answer
	for _, err := range errs {
		// A server answers so for an error without a field.
		a.Causes = append(a.Causes, cause{string(err.Type), err.Field, err.ErrorBody()})
	}
	return a
}

// serverAnswer returns what a real server has answered.
func serverAnswer(t *testing.T, obj *unstructured.Unstructured, err error) answer {
	t.Helper()
	if err == nil {
		return answer{Object: contentOf(obj)}
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		t.Fatal(err)
	}
	var a answer
	for _, c := range status.Status().Details.Causes {
		a.Causes = append(a.Causes, cause{string(c.Type), c.Field, c.Message})
	}
	if len(a.Causes) == 0 {
		t.Fatal(err)
	}
	return a
}

// contentOf returns an object without its metadata, but for the generation.
func contentOf(obj *unstructured.Unstructured) map[string]any {
	content := runtime.DeepCopyJSON(obj.Object)
	content["metadata"] = map[string]any{"generation": obj.GetGeneration()}
	return content
}

func diffAnswers(want, got answer) string {
	return cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.SortSlices(func(a, b cause) int {
		return strings.Compare(a.Field+a.Type+a.Message, b.Field+b.Type+b.Message)
	}))
}

// inMemory makes the calls of a table with a strategy, as a store would.
type inMemory struct {
	registry.Strategy
	stored *unstructured.Unstructured
}

func (m *inMemory) create(obj *unstructured.Unstructured) answer {
	obj = obj.DeepCopy()
	obj.SetUID("uid")
	obj.SetResourceVersion("1")
	obj.SetCreationTimestamp(metav1.Unix(1, 0))
	m.PrepareForCreate(obj)
	if errs := m.Validate(obj); len(errs) > 0 {
		return refusal(errs)
	}
	m.stored = obj
	return answer{Object: contentOf(obj)}
}

func (m *inMemory) update(obj *unstructured.Unstructured, subresource string) answer {
	old := m.stored.DeepCopy()
	m.PrepareForUpdate(obj, m.stored, subresource)
	if errs := m.ValidateUpdate(obj, m.stored, subresource); len(errs) > 0 {
		return refusal(errs)
	}
	if diff := cmp.Diff(old, m.stored); diff != "" {
		panic("the stored object has changed:\n" + diff)
	}
	m.stored = obj
	return answer{Object: contentOf(obj)}
}

// withContent returns a copy of an object with other contents than its metadata.
func withContent(t *testing.T, obj *unstructured.Unstructured, content string) *unstructured.Unstructured {
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
