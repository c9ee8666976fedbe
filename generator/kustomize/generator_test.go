package kustomize_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/generator/kustomize"
)

func namesOf(objects []client.Object) string {
	var names []string
	for _, object := range objects {
		names = append(names, object.GetObjectKind().GroupVersionKind().Kind+" "+object.GetName())
	}
	return strings.Join(names, ", ")
}

func configMapNamed(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n"
}

// TestFolders: which files of a folder are built.
func TestFolders(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"plain manifests": {map[string]string{"b.yaml": configMapNamed("b"), "a/c.yml": configMapNamed("c"), "readme.md": "no"},
			"ConfigMap c, ConfigMap b"},
		"hidden files": {map[string]string{".b.yaml": configMapNamed("b"), ".a/c.yml": configMapNamed("c"), "d.yaml": configMapNamed("d")},
			"ConfigMap d"},
		"kustomization below": {map[string]string{"below/kustomization.yaml": "namePrefix: x-\nresources: [in/a.yaml]",
			"below/in/a.yaml": configMapNamed("a"), "b.yaml": configMapNamed("b")}, "ConfigMap b, ConfigMap x-a"},
		"nothing":                    {map[string]string{"readme.md": "no"}, ""},
		"empty files":                {map[string]string{"a.yaml": "", "b.yaml": "# comment\n", "c.yaml": "---\n---\n"}, ""},
		"no resources":               {map[string]string{"kustomization.yaml": "resources:\n"}, ""},
		"no resources, with a kind":  {map[string]string{"kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"}, ""},
		"a base without resources":   {map[string]string{"kustomization.yaml": "resources: [b, a.yaml]", "b/kustomization.yaml": "resources:\n", "a.yaml": configMapNamed("a")}, "ConfigMap a"},
		"a component without fields": {map[string]string{"kustomization.yaml": "resources: [a.yaml]\ncomponents: [b]", "b/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n", "a.yaml": configMapNamed("a")}, "ConfigMap a"},
		"ignored files": {map[string]string{".component-ignore": "/a.yaml\nb/\n*.tmp.yaml\n!keep.tmp.yaml\n",
			"a.yaml": configMapNamed("a"), "sub/a.yaml": configMapNamed("sub"), "b/x.yaml": configMapNamed("x"), "c/b/y.yaml": configMapNamed("y"),
			"z.tmp.yaml": configMapNamed("z"), "keep.tmp.yaml": configMapNamed("keep")}, "ConfigMap keep, ConfigMap sub"},
	} {
		t.Run(name, func(t *testing.T) {
			generator, err := kustomize.NewGenerator(inMemory(test.files), "", kustomize.Options{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := generate(generator)
			if err != nil || namesOf(got) != test.want {
				t.Errorf("the objects are %q (%v), want %q", namesOf(got), err, test.want)
			}
		})
	}
}

// TestErrors: an error names the file or the field, and what to do.
func TestErrors(t *testing.T) {
	for name, test := range map[string]struct {
		files   map[string]string
		options kustomize.Options
		want    string
	}{
		"no folder":             {map[string]string{}, kustomize.Options{}, "kustomization app: lstat app: file does not exist"},
		"empty kustomization":   {map[string]string{"app/kustomization.yaml": " \n"}, kustomize.Options{}, "kustomization.yaml is empty"},
		"two kustomizations":    {map[string]string{"app/kustomization.yaml": "resources: []", "app/Kustomization": "resources: []"}, kustomize.Options{}, "Found multiple kustomization files under: /app"},
		"unknown field":         {map[string]string{"app/kustomization.yaml": "resource: []"}, kustomize.Options{}, `unknown field "resource"`},
		"missing file":          {map[string]string{"app/kustomization.yaml": "resources: [gone.yaml]"}, kustomize.Options{}, "'/app/gone.yaml' doesn't exist"},
		"no name":               {map[string]string{"app/a.yaml": "apiVersion: v1\nkind: ConfigMap\n"}, kustomize.Options{}, "missing metadata.name"},
		"no apiVersion":         {map[string]string{"app/a.yaml": "kind: ConfigMap\nmetadata: {name: a}\n"}, kustomize.Options{}, "has no apiVersion"},
		"unknown key of config": {map[string]string{"app/.component-config.yaml": "suffix: a"}, kustomize.Options{}, `app/.component-config.yaml: error unmarshaling JSON: while decoding JSON: json: unknown field "suffix"`},
		"pattern of ignore":     {map[string]string{"app/.component-ignore": "a\n[\n"}, kustomize.Options{}, `app/.component-ignore: line 2: "[" is no pattern`},
		"included file inside":  {map[string]string{"app/.component-config.yaml": "includedFiles: [a]"}, kustomize.Options{}, `app/.component-config.yaml: includedFiles[0]: "a" is inside the folder`},
		"included file outside": {map[string]string{"app/.component-config.yaml": "includedFiles: [../a]", "a": ""}, kustomize.Options{}, `includedFiles[0]: "../a": it is outside the folder of the kustomization; add its folder to Options.Bases`},
		"absolute included":     {map[string]string{"app/.component-config.yaml": "includedKustomizations: [/a]"}, kustomize.Options{}, `app/.component-config.yaml: includedKustomizations[0]: "/a" is no relative path`},
		"included, not allowed": {map[string]string{"app/.component-config.yaml": "includedKustomizations: [../base]", "base/a": ""}, kustomize.Options{}, `includedKustomizations[0]: "../base": it is outside`},
		"base that is above":    {map[string]string{"app/a": ""}, kustomize.Options{Bases: []string{".."}}, `Options.Bases[0]: ".." overlaps with the folder app`},
		"base inside":           {map[string]string{"app/a": ""}, kustomize.Options{Bases: []string{"a"}}, `Options.Bases[0]: "a" is inside`},
		"base above all":        {map[string]string{"app/a": ""}, kustomize.Options{Bases: []string{"../../x"}}, `Options.Bases[0]: "../../x" leaves the file system`},
		"remote base":           {map[string]string{"app/a": ""}, kustomize.Options{Bases: []string{"https://example.test/a"}}, `Options.Bases[0]: "https://example.test/a": remote`},
		"missing base":          {map[string]string{"app/a": ""}, kustomize.Options{Bases: []string{"../base"}}, "lstat base: file does not exist"},
		"bases that overlap":    {map[string]string{"app/a": "", "b/c/d": ""}, kustomize.Options{Bases: []string{"../b", "../b/c"}}, `Options.Bases[1]: "../b/c" overlaps with the folder b`},
		"only a suffix":         {map[string]string{"app/x/.tpl": ""}, kustomize.Options{TemplateSuffix: ".tpl"}, "app/x/.tpl: without the suffix of templates, it has no name"},
		"file and template":     {map[string]string{"app/a.yaml": "", "app/a.yaml.tpl": ""}, kustomize.Options{TemplateSuffix: ".tpl"}, "app/a.yaml.tpl: there is another file or template for app/a.yaml"},
		"not decrypted": {map[string]string{"app/a.yaml": ""}, kustomize.Options{Decrypt: func([]byte, string) ([]byte, error) { return nil, errors.New("no key") }},
			"decrypting app/a.yaml: no key"},
	} {
		t.Run(name, func(t *testing.T) {
			generator, err := kustomize.NewGenerator(inMemory(test.files), "app", test.options)
			if err == nil {
				_, err = generate(generator)
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want it to contain %q", err, test.want)
			}
		})
	}
}

// TestDecrypt: files are decrypted before anything looks at them.
func TestDecrypt(t *testing.T) {
	generator, err := kustomize.NewGenerator(inMemory(map[string]string{"app/a.yaml": "sealed"}), "app", kustomize.Options{
		Decrypt: func(content []byte, path string) ([]byte, error) {
			if string(content) != "sealed" || path != "app/a.yaml" {
				return nil, fmt.Errorf("unexpected %s of %s", content, path)
			}
			return []byte(configMap), nil
		},
	})
	must(t, err)
	if got, err := generate(generator); err != nil || namesOf(got) != "ConfigMap plain" {
		t.Errorf("the objects are %q (%v), want ConfigMap plain", namesOf(got), err)
	}
}

// TestNotMade: a generator that was not made by NewGenerator is an error, and no panic.
func TestNotMade(t *testing.T) {
	for _, generator := range []*kustomize.Generator{nil, {}} {
		if _, err := generate(generator); err == nil {
			t.Error("the error is nil, want one")
		}
		if inputs, err := generator.Inputs(t.Context(), "", ""); inputs != "" || err != nil {
			t.Errorf("the inputs are %q (%v), want none", inputs, err)
		}
	}
}

// TestContextThatIsDone: nothing is built for a request that has ended.
func TestContextThatIsDone(t *testing.T) {
	generator, err := kustomize.NewGenerator(inMemory(map[string]string{"a.yaml": configMap}), "", kustomize.Options{})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := generator.Generate(ctx, "", "", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v, want %v", err, context.Canceled)
	}
	if got, err := generate(generator); err != nil || len(got) != 1 {
		t.Errorf("afterwards the objects are %q (%v), want one", namesOf(got), err)
	}
}

// TestInParallel: 32 components are built at a time, some with schemas of their own. Each gets what it gets alone.
func TestInParallel(t *testing.T) {
	examples := corpus(t)
	want := map[string][]map[string]any{}
	for _, e := range examples {
		want[e.name] = byKrusty(t, filepath.Join("testdata/corpus", e.app))
	}
	if cmp.Equal(want["openapi"], want["openapi-none"]) {
		t.Fatal("the schema makes no difference, want one")
	}
	reference.Lock()
	defer reference.Unlock()
	var wait sync.WaitGroup
	for i := range 32 {
		wait.Go(func() {
			for j := range 2 {
				e := examples[(i*5+j*7)%len(examples)]
				if j%2 == 0 {
					e = examples[i%2+openAPIExample(examples)]
				}
				generator, err := kustomize.NewGenerator(os.DirFS("testdata/corpus"), e.app, kustomize.Options{Bases: e.bases})
				if err != nil {
					t.Error(err)
					return
				}
				got, err := generate(generator)
				if diff := cmp.Diff(want[e.name], contentsOf(got)); err != nil || diff != "" {
					t.Errorf("%s: the error is %v, want none, and the objects differ (-want +got):\n%s", e.name, err,
						diff)
				}
				transformer := &kustomize.ObjectTransformer{Labels: map[string]string{"i": fmt.Sprint(i)}}
				if _, err := transformer.TransformObjects("", "", got); err != nil {
					t.Errorf("%s: %v", e.name, err)
				}
			}
		})
	}
	wait.Wait()
}

// openAPIExample is the index of the example with a schema. The next one has the same objects without it.
func openAPIExample(examples []example) int {
	for i, e := range examples {
		if e.name == "openapi" {
			return i
		}
	}
	return 0
}

// TestPanicOfKustomize: a panic is an error, and the next build is as if it had not happened.
func TestPanicOfKustomize(t *testing.T) {
	broken := `{"definitions": {"a": {"x-kubernetes-group-version-kind": [{"group": 1}]}}}`
	for name, schema := range map[string]string{"type": broken, "text": "{"} {
		err := tryBuild(map[string]string{
			"app/kustomization.yaml": "openapi: {path: schema.json}\nresources: [d.yaml]\npatches: [{path: d.yaml}]", "app/schema.json": schema, "app/d.yaml": deployment,
		})
		if err == nil || !strings.Contains(err.Error(), "folder app: kustomize panicked: ") {
			t.Errorf("%s: the error is %v, want that kustomize panicked for folder app", name, err)
		}
	}
	if err := tryBuild(map[string]string{"app/kustomization.yaml": "resources: [d.yaml]\npatches: [{path: d.yaml}]", "app/d.yaml": deployment}); err != nil {
		t.Errorf("afterwards, the error is %v", err)
	}
}
