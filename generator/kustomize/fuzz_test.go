package kustomize_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/generator/kustomize"
)

type noNetwork struct{ t *testing.T }

func (n noNetwork) RoundTrip(request *http.Request) (*http.Response, error) {
	n.t.Errorf("there is a request to %s, want none", request.URL)
	return nil, http.ErrNotSupported
}

// FuzzKustomization: no kustomization panics, fetches anything, or calls git. An error names the folder or the file.
func FuzzKustomization(f *testing.F) {
	for _, e := range corpus(f) {
		for _, name := range []string{"kustomization.yaml", "kustomization.yml", "Kustomization"} {
			if text, err := os.ReadFile(filepath.Join("testdata/corpus", e.app, name)); err == nil {
				f.Add(string(text), configMap)
			}
		}
	}
	f.Add("transformers: [x.yaml]", "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: p}\npath: https://example.test\n")
	f.Add("resources: [github.com/org/repo, 'git::https://example.test/a', x.yaml]", secret)
	f.Add("resources: [x.yaml]\nconfigMapGenerator: [{name: plain, behavior: merge, literals: [a=b]}]", configMap+"data: [a]\n")
	f.Add("resources: [x.yaml]\nreplacements: [{source: {kind: ConfigMap}, targets: [{select: {}, fieldPaths: [a.*.b]}]}]", configMap)
	f.Fuzz(func(t *testing.T, kustomization, resource string) {
		called := fakePrograms(t, "git", "helm")
		before := http.DefaultTransport
		http.DefaultTransport = noNetwork{t}
		defer func() { http.DefaultTransport = before }()
		err := tryBuild(map[string]string{"app/kustomization.yaml": kustomization, "app/x.yaml": resource,
			"app/deployment.yaml": deployment, "app/base/kustomization.yaml": "resources: [y.yaml]", "app/base/y.yaml": configMapNamed("y")})
		if err != nil && !strings.Contains(err.Error(), "app") {
			t.Errorf("the error is %v, want it to name the folder", err)
		}
		if name := called(); name != "" {
			t.Errorf("%s was called, want nothing called", name)
		}
	})
}

// FuzzPatch: no patch and no target panics. An error names the patch.
func FuzzPatch(f *testing.F) {
	f.Add(`[{"op": "replace", "path": "/spec/replicas", "value": 5}]`, "Deployment", "web", "app=web")
	f.Add(secret, "", "", "")
	f.Add("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {template: {spec: {containers: [{name: web, $patch: delete}]}}}", "Deployment", ".*", "!x")
	f.Add("$patch: delete\napiVersion: v1\nkind: Secret\nmetadata: {name: access}", "", "(", "a in (b")
	f.Add(bomb(), "Secret", "", "")
	f.Add("[]", "Secret", "a", "")
	f.Add("0", "0", "0", "0")
	f.Fuzz(func(t *testing.T, patch, kind, name, labels string) {
		p := kustomize.Patch{Patch: patch, Target: &kustomize.Target{Kind: kind, Name: name, LabelSelector: labels}}
		if kind+name+labels == "" {
			p.Target = nil
		}
		transformer := &kustomize.ObjectTransformer{Patches: []kustomize.Patch{p}}
		_, err := transformer.TransformObjects("", "", parse(t, deployment, secret, widget))
		if err != nil && !strings.HasPrefix(err.Error(), "patches[0]: ") {
			t.Errorf("the error is %v, want it to name the patch", err)
		}
	})
}

// FuzzObjects: a transformer changes nothing but what it is for, whatever the texts of an object are.
func FuzzObjects(f *testing.F) {
	for _, text := range []string{"012", "yes", "1e3", "0x1F", "~", "", " a ", "a: b", "- a", "#", "a\nb\n", "\t", "é", "'", `"`, "!!binary x", "&a", "*a", "2001-01-01", "\u2028", "\x7f", "\u0085", "\ufeff", "{{", "$(A)", "\\"} {
		f.Add(text, text)
	}
	f.Fuzz(func(t *testing.T, key, value string) {
		if !utf8.ValidString(key) || !utf8.ValidString(value) {
			return
		}
		make := func() []client.Object {
			return []client.Object{&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "annotations": map[string]any{"x": value}},
				"data": map[string]any{key: value, "other": []any{value, int64(1), 1.5, true, nil}},
			}}}
		}
		transformer := &kustomize.ObjectTransformer{Labels: map[string]string{"a": "b"}, Patches: []kustomize.Patch{
			{Patch: `[{"op": "add", "path": "/metadata/labels", "value": {"c": "d"}}]`, Target: &kustomize.Target{Kind: "ConfigMap"}}}}
		got, err := transformer.TransformObjects("", "", make())
		if err != nil {
			return
		}
		want := make()
		want[0].SetLabels(map[string]string{"a": "b", "c": "d"})
		if diff := cmp.Diff(contentsOf(want), contentsOf(got)); diff != "" {
			t.Errorf("it differs (-want +got):\n%s", diff)
		}
	})
}
