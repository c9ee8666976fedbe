package manifest_test

import (
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/manifest"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// No field goes because a Go type does not know it, and none comes because a Go type would write it, even of kinds that the
// scheme knows, and of types that define types.
func TestNoFieldGoesOrComes(t *testing.T) {
	definition := crd("example.com", "Widget", "Namespaced")
	definition.Object["spec"].(m)["versions"] = []any{m{"name": "v1", "schema": m{"openAPIV3Schema": m{"x-kubernetes-tomorrow": true}}}}
	definition.Object["spec"].(m)["tomorrow"] = m{"a": int64(1)}
	generated := []client.Object{
		object("apps/v1 Deployment", "home/a", m{"spec": m{"tomorrow": "x", "replcas": int64(3), "template": m{"spec": m{"containers": []any{m{"name": "a", "alsoTomorrow": []any{}}}}}}}),
		object("v1 Pod", "home/b", m{"spec": m{"containers": []any{m{"name": "a"}}}, "extra": nil}),
		definition,
	}
	var want []m
	for _, o := range generated {
		want = append(want, o.DeepCopyObject().(interface{ UnstructuredContent() map[string]any }).UnstructuredContent())
	}
	for i, o := range prepare(t, generated...) {
		if diff := cmp.Diff(want[i], made(t, o).Object); diff != "" {
			t.Errorf("unexpected (-want, +got):\n%s", diff)
		}
	}
}

// What was not asked for is neither recreated, nor replaced, nor written again and again, nor adopted.
func TestDefaultsAreMild(t *testing.T) {
	got := prepare(t, object("apps/v1 Deployment", "a"))[0].Desired
	if got.UpdatePolicy != apis.UpdateApply || got.ReapplyInterval != 0 || got.AdoptionPolicy != apis.AdoptNever {
		t.Errorf("the desired object is %+v, want it applied once, and never adopted", got)
	}
}

// An expression that cannot be evaluated is an error of the object, before anything is written.
func TestReadyWhenThatCannotBe(t *testing.T) {
	const name = "objects[0] (ConfigMap a): annotation ready-when: "
	for expression, want := range map[string]string{
		"object.":                    "Syntax error: no viable alternative at input '.' (line 1, column 8)",
		"1 + 1":                      "must be true or false, not of type int",
		"self.x == 1":                "undeclared reference to 'self' (in container '') (line 1, column 1)",
		`["a"].join(object.x) == ""`: "the function join is not available",
	} {
		wantError(t, options(), []client.Object{annotated(object("v1 ConfigMap", "a"), "ready-when", expression)}, name+want)
	}
	// Whether it can be evaluated for this object remains to be seen.
	good := annotated(object("v1 ConfigMap", "b"), "ready-when", "object.data.ready == 'yes'")
	if got := prepare(t, good)[0].Settings.ReadyWhen; got != "object.data.ready == 'yes'" {
		t.Errorf(`ready-when is %q, want "object.data.ready == 'yes'"`, got)
	}
	// All that is wrong is told at once, for all objects, and a good object does not help.
	cache := &manifest.Cache{}
	bad := func() []client.Object {
		return []client.Object{good, annotated(crd("example.com", "Widget", "Cluster"), "ready-when", "1", "purge-order", "2")}
	}
	for range 2 {
		prepared, err := manifest.Prepare(bad(), options(), cache)
		if prepared != nil || err == nil || strings.Count(err.Error(), "objects[1] (CustomResourceDefinition widgets.example.com): ") != 2 {
			t.Errorf("%d objects were prepared and the error is %v, want none, and two faults of objects[1]",
				len(prepared), err)
		}
	}
}

// All that an annotation asks for reaches the plan.
func TestForeignInstances(t *testing.T) {
	got := prepare(t, annotated(crd("example.com", "Widget", "Cluster"), "foreign-instances", "ignore"), crd("example.com", "Gadget", "Cluster"))
	if !got[0].Desired.IgnoreForeignInstances || got[1].Desired.IgnoreForeignInstances {
		t.Errorf("the desired objects are %+v and %+v, want foreign instances ignored of the first one alone",
			got[0].Desired, got[1].Desired)
	}
}

// An object in a namespace that has no name is named by its kind.
func TestNamelessInANamespace(t *testing.T) {
	wantError(t, options(), []client.Object{object("v1 ConfigMap", "home/")}, "objects[0] (ConfigMap): it has no name")
}
