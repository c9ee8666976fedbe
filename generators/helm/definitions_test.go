package helm_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/generators/helm"
)

type clientObject = client.Object

func text(value any) string {
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

// The objects in the folders crds of a test are ConfigMaps, which every client knows.
func TestDefinitions(t *testing.T) {
	t.Parallel()
	chart := files{
		"crds/a.yaml": configMap("a", "  x: '{{ not a template }}'\n") + "---\n" + configMap("b", "  x: y\n"),
		"crds/README": "nothing",
	}.and(files{"crds/a.yaml": configMap("a", "  x: other\n"), "Chart.yaml": "apiVersion: v2\nname: one\nversion: 1.0.0\n"}.
		in("charts/one"))
	for policy, want := range map[helm.DefinitionsPolicy][]map[string]string{
		"":                        {nil, nil},
		helm.DefinitionsManaged:   {nil, nil},
		helm.DefinitionsInstalled: {onceAndOrphan, onceAndOrphan},
		helm.DefinitionsSkipped:   nil,
	} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			generator := load(t, chart, helm.Options{Definitions: policy})
			var got []map[string]string
			for _, object := range generate(t, generator, newCluster(), "{}") {
				got = append(got, object.GetAnnotations())
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

var (
	onceAndOrphan = map[string]string{
		"espalier.dev/reconcile-policy": "once", "espalier.dev/delete-policy": "orphan",
	}
	readOnly = map[string]string{"espalier.dev/presence": "read-only"}
)

func TestDefinitionsThatExistAreOnlyRead(t *testing.T) {
	t.Parallel()
	generator := load(t, files{
		"crds/a.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n",
	}, helm.Options{Definitions: helm.DefinitionsInstalled})
	cluster := newCluster()
	objects := generate(t, generator, cluster, "{}")
	if diff := cmp.Diff(onceAndOrphan, objects[0].GetAnnotations()); diff != "" {
		t.Error(diff)
	}
	before := inputs(t, generator, cluster)
	if err := cluster.client.Create(t.Context(), objects[0]); err != nil {
		t.Fatal(err)
	}
	created := inputs(t, generator, cluster)
	if before == created {
		t.Error("want other inputs when the definition exists")
	}
	if diff := cmp.Diff(readOnly, generate(t, generator, cluster, "{}")[0].GetAnnotations()); diff != "" {
		t.Error(diff)
	}
	settled := inputs(t, generator, cluster)
	if err := cluster.client.Delete(t.Context(), objects[0]); err != nil {
		t.Fatal(err)
	}
	if inputs(t, generator, cluster) != settled {
		t.Error("want a definition that existed to be forgotten")
	}
}

func inputs(t *testing.T, generator *helm.Generator, c *cluster) string {
	t.Helper()
	identity, err := generator.Inputs(c.context(t.Context()), "north", "shop")
	if err != nil {
		t.Fatal(err)
	}
	return identity
}
