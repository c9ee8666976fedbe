package registry_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/testing/internal/registry"

	gocmp "github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// definitionStrategy returns the strategy of definitions.
func definitionStrategy(t testing.TB) registry.Strategy {
	t.Helper()
	kind := apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")
	definitions, ok := registry.BuiltIn(kind)
	if !ok || definitions.Resource != "customresourcedefinitions" || definitions.Scope != registry.Cluster {
		t.Fatalf("the definitions are %v, found: %v, want customresourcedefinitions of the cluster", definitions, ok)
	}
	return definitions.Versions[0].Strategy
}

// TestDefinitions creates definitions with the strategy. It answers as a real API server did.
func TestDefinitions(t *testing.T) {
	t.Parallel()
	strategy := definitionStrategy(t)
	got := answers{}
	for row, change := range definitionRows {
		definition := changed(t, change)
		definition.UID = "uid"
		definition.CreationTimestamp = metav1.Unix(1, 0)
		strategy.PrepareForCreate(definition)
		errs := strategy.Validate(definition)
		if len(errs) == 0 {
			registry.AcceptNames(definition, nil, definition.CreationTimestamp)
			got[row] = append(got[row], definitionAcceptance(t, definition))
			continue
		}
		got[row] = append(got[row], refusal(errs).withoutValues())
	}
	compareRecorded(t, "definitions", got)
}

// TestInvalidDefinitions creates objects of definitions that an API server would refuse: none makes a library panic, and
// what does not compile refuses the objects.
func TestInvalidDefinitions(t *testing.T) {
	t.Parallel()
	for _, row := range invalidRows {
		definition := changed(t, func(d *crd) {
			spec := root(d).Properties["spec"]
			addProperty(&spec, "x", row.property)
		})
		strategy := strategyOf(t, definition)
		obj := strategy.New().(*unstructured.Unstructured)
		obj.SetNamespace("default")
		obj.SetName("name")
		obj.SetUID("uid")
		obj.SetCreationTimestamp(metav1.Unix(1, 0))
		obj.Object["spec"] = map[string]any{}
		if row.value != nil {
			obj.Object["spec"] = map[string]any{"x": row.value}
		}
		strategy.PrepareForCreate(obj)
		got := strategy.Validate(obj)
		if row.refused == "" && len(got) > 0 {
			t.Errorf("%s: got the errors %v, want none", row.property, got)
		}
		if row.refused != "" && !strings.Contains(fmt.Sprint(got), row.refused) {
			t.Errorf("%s: got the errors %v, want one that names %s", row.property, got, row.refused)
		}
		strategy.Converter()
	}
}

// TestDefinitionsOnServer creates definitions on a real API server.
func TestDefinitionsOnServer(t *testing.T) {
	t.Parallel()
	c, _ := server(t)
	got := answers{}
	for row, change := range definitionRows {
		definition := changed(t, change)
		if err := c.Create(t.Context(), definition.DeepCopy(), client.DryRunAll); err != nil {
			got[row] = append(got[row], serverAnswer(t, nil, err).withoutValues())
			continue
		}
		t.Run(row, func(t *testing.T) {
			establish(t, c, definition)
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(definition), definition); err != nil {
				t.Fatal(err)
			}
			got[row] = append(got[row], definitionAcceptance(t, definition))
		})
		awaitGone(t, c, definition) // the next row has one of the same name
	}
	recordServer(t, "definitions", got)
}

// TestDefinitionUpdates updates a definition with the strategy. It answers as a real API server did.
func TestDefinitionUpdates(t *testing.T) {
	t.Parallel()
	strategy := definitionStrategy(t)
	live := changed(t, inGroupOfItsOwn)
	live.UID, live.ResourceVersion, live.CreationTimestamp = "uid", "1", metav1.Unix(1, 0)
	strategy.PrepareForCreate(live)
	registry.AcceptNames(live, nil, live.CreationTimestamp)
	before := live.DeepCopy()
	got := answers{}
	for row, change := range updateRows {
		next := live.DeepCopy()
		change(next)
		strategy.PrepareForUpdate(next, live, "")
		if errs := strategy.ValidateUpdate(next, live, ""); len(errs) > 0 {
			got[row] = []answer{refusal(errs).withoutValues()}
		} else {
			got[row] = []answer{definitionAcceptance(t, next)}
		}
		if diff := gocmp.Diff(before, live); diff != "" {
			t.Fatalf("row %q: the old definition has changed, want it as it was (-before +after):\n%s", row, diff)
		}
	}
	compareRecorded(t, "updates", got)
}

// TestDefinitionUpdatesOnServer updates a definition of a real API server, in dry runs.
func TestDefinitionUpdatesOnServer(t *testing.T) {
	t.Parallel()
	c, _ := server(t)
	live := changed(t, inGroupOfItsOwn)
	establish(t, c, live)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
		t.Fatal(err)
	}
	got := answers{}
	for row, change := range updateRows {
		next := live.DeepCopy()
		change(next)
		if err := c.Update(t.Context(), next, client.DryRunAll); err != nil {
			got[row] = []answer{serverAnswer(t, nil, err).withoutValues()}
		} else {
			got[row] = []answer{definitionAcceptance(t, next)}
		}
	}
	recordServer(t, "updates", got)
}

// inGroupOfItsOwn lets a definition exist next to those of other tests.
func inGroupOfItsOwn(d *crd) {
	d.Name, d.Spec.Group = "checks.updates.espalier.dev", "updates.espalier.dev"
}

// definitionAcceptance leaves out the schemas, and the times and order of conditions.
func definitionAcceptance(t *testing.T, definition *apiextensionsv1.CustomResourceDefinition) answer {
	t.Helper()
	definition = definition.DeepCopy()
	definition.Spec.Versions = nil
	for i := range definition.Status.Conditions {
		definition.Status.Conditions[i].LastTransitionTime = metav1.Time{}
	}
	slices.SortFunc(definition.Status.Conditions, func(a, b apiextensionsv1.CustomResourceDefinitionCondition) int {
		return strings.Compare(string(a.Type), string(b.Type))
	})
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(definition)
	if err != nil {
		t.Fatal(err)
	}
	delete(content, "kind")
	delete(content, "apiVersion")
	return acceptance(&unstructured.Unstructured{Object: content})
}

// withoutValues leaves the values out of messages: those of a server are of Go types of its own.
func (a answer) withoutValues() answer {
	for i, c := range a.Causes {
		if rest, ok := strings.CutPrefix(c.Message, "Invalid value: "); ok {
			_, a.Causes[i].Message, _ = strings.Cut(rest, ": ")
		}
	}
	return a
}
