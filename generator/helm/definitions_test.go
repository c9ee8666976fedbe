package helm_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/generator/helm"
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
		"":                        {first, first},
		helm.DefinitionsManaged:   {first, first},
		helm.DefinitionsInstalled: {onceAndOrphan, onceAndOrphan},
		helm.DefinitionsSkipped:   nil,
	} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			made := load(t, chart, helm.Options{Definitions: policy})
			var got []map[string]string
			for _, object := range generate(t, made, newCluster(), "{}") {
				got = append(got, object.GetAnnotations())
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the annotations differ (-want +got):\n%s", diff)
			}
		})
	}
}

var (
	first         = map[string]string{"shops.example.com/apply-order": "-202"}
	onceAndOrphan = map[string]string{
		"espalier.dev/reconcile-policy": "once", "espalier.dev/delete-policy": "orphan",
		"shops.example.com/apply-order": "-202",
	}
	readOnly = map[string]string{"espalier.dev/presence": "read-only", "shops.example.com/apply-order": "-202"}
)

// Helm installs what is in the folders crds before the hooks with the lowest weight.
func TestDefinitionsComeBeforeHooks(t *testing.T) {
	t.Parallel()
	annotated := func(name, annotations string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\n  annotations: {" + annotations + "}\n"
	}
	made := load(t, files{
		"crds/a.yaml": annotated("own", "espalier.dev/apply-order: '7'") +
			"---\n" + annotated("prefixed", "shops.example.com/apply-order: '8'") +
			"---\n" + annotated("kept", "helm.sh/resource-policy: keep") +
			"---\n" + annotated("old", "helm.sh/hook: crd-install") +
			"---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: item}}\n",
		"templates/a.yaml": annotated("hook", "helm.sh/hook: pre-install, helm.sh/hook-weight: '-100'"),
	}, helm.Options{})
	got := map[string]string{}
	for _, object := range generate(t, made, newCluster(), "{}") {
		settings, err := generator.ReadSettings("shops.example.com", object.GetAnnotations())
		if err != nil {
			t.Error(err)
		}
		got[object.GetName()] = fmt.Sprintf("%d %s", settings.ApplyOrder, settings.DeletePolicy)
	}
	want := map[string]string{
		"own": "7 ", "prefixed": "8 ", "kept": "-202 Orphan", "old": "-202 ", "item": "-202 ", "hook": "-201 ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the annotations differ (-want +got):\n%s", diff)
	}
}

func TestDefinitionsAreNamedInErrors(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		"apiVersion: v1\nkind: X\nmetadata: {name: a, annotations: {espalier.dev/apply-order: x}}\n": "chart demo: X a: ",
		"apiVersion: v1\nkind: X\nmetadata: {name: a, annotations: {b: 1}}\n":                        "chart demo: X a: annotation b: ",
	} {
		for _, policy := range []helm.DefinitionsPolicy{helm.DefinitionsManaged, helm.DefinitionsSkipped} {
			made := load(t, files{"crds/a.yaml": content}, helm.Options{Definitions: policy})
			_, err := made.Generate(newCluster().context(t.Context()), "north", "shop", values(t, "{}"))
			if policy == helm.DefinitionsSkipped {
				if err != nil {
					t.Error(err)
				}
			} else if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("want an error with %q, got %v", want, err)
			}
		}
	}
	_, err := helm.NewGenerator(files{"crds/a.yaml": "apiVersion: v1\nkind: List\nitems: [1]\n"}.folder(), "", helm.Options{})
	if err == nil || !strings.Contains(err.Error(), "demo/crds/a.yaml: List: items[0]: it is not a map") {
		t.Errorf("want an error that names the item, got %v", err)
	}
}

func TestDefinitionsThatExistAreOnlyRead(t *testing.T) {
	t.Parallel()
	made := load(t, files{
		"crds/a.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n",
	}, helm.Options{Definitions: helm.DefinitionsInstalled})
	cluster := newCluster()
	objects := generate(t, made, cluster, "{}")
	if diff := cmp.Diff(onceAndOrphan, objects[0].GetAnnotations()); diff != "" {
		t.Errorf("the annotations differ (-want +got):\n%s", diff)
	}
	before := inputs(t, made, cluster)
	if err := cluster.client.Create(t.Context(), objects[0]); err != nil {
		t.Fatal(err)
	}
	created := inputs(t, made, cluster)
	if before == created {
		t.Error("want other inputs when the definition exists")
	}
	if diff := cmp.Diff(readOnly, generate(t, made, cluster, "{}")[0].GetAnnotations()); diff != "" {
		t.Errorf("the annotations differ (-want +got):\n%s", diff)
	}
	settled := inputs(t, made, cluster)
	if err := cluster.client.Delete(t.Context(), objects[0]); err != nil {
		t.Fatal(err)
	}
	if inputs(t, made, cluster) != settled {
		t.Error("want a definition that existed to be forgotten")
	}
}

func inputs(t *testing.T, made *helm.Generator, c *cluster) string {
	t.Helper()
	identity, err := made.Inputs(c.context(t.Context()), "north", "shop")
	if err != nil {
		t.Fatal(err)
	}
	return identity
}
