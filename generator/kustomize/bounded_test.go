package kustomize_test

import (
	"errors"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/generator/gotemplate"
	"github.com/espalier-dev/espalier/generator/kustomize"
)

// grows is a small document that is 2 GB with its aliases replaced.
func grows() string {
	return "a: &a " + strings.Repeat("A", 100_000) + "\nb: [" + strings.Repeat("*a,", 20_000) + "]\n"
}

func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestDocumentsAreBounded: nothing is parsed that would need much memory.
func TestDocumentsAreBounded(t *testing.T) {
	indented := strings.ReplaceAll("    "+grows(), "\n", "\n    ")
	for name, contents := range map[string]map[string]string{
		"file":                 {"app/a.yaml": configMap + grows()},
		"kustomization":        {"app/kustomization.yaml": "resources: [x.yaml]\n" + grows(), "app/x.yaml": configMap},
		"inline patch":         {"app/kustomization.yaml": "resources: [x.yaml]\npatches:\n- patch: |\n" + indented, "app/x.yaml": configMap},
		"file with settings":   {"app/.component-config.yaml": grows(), "app/a.yaml": configMap},
		"output of a template": {"app/a.yaml.tpl": configMap + `a: &a {{ repeat 100000 "A" }}` + "\nb: [{{ repeat 20000 \"*a,\" }}]\n"},
	} {
		var err error
		used := allocated(func() { err = tryBuild(contents) })
		if err == nil || !strings.Contains(err.Error(), "is too large: aliases give a document more than") {
			t.Errorf("%s: the error is %.300v, want one about aliases", name, err)
		}
		if used > 100<<20 {
			t.Errorf("%s: it took %d MiB, want at most 100", name, used>>20)
		}
	}
}

// TestObjectsAreBounded: a build that would hold up others does not begin.
func TestObjectsAreBounded(t *testing.T) {
	objects := `{{ range until 6000 }}{{ printf "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a%d}\n" . }}{{ end }}`
	items := `{{ range until 6000 }}{{ printf "- {apiVersion: v1, kind: ConfigMap, metadata: {name: a%d}}\n" . }}{{ end }}`
	const slow, many = "kustomize would need longer than 10s for 6000 objects", "there are more than 100 objects"
	for name, test := range map[string]struct {
		contents map[string]string
		limits   gotemplate.Limits
		want     string
	}{
		"documents":           {map[string]string{"app/a.yaml.tpl": objects}, gotemplate.Limits{}, slow},
		"a list":              {map[string]string{"app/a.yaml.tpl": "apiVersion: v1\nkind: List\nitems:\n" + items}, gotemplate.Limits{}, slow},
		"a list in a list":    {map[string]string{"app/a.yaml.tpl": "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: List\n  \"it\\u0065ms\":\n" + strings.ReplaceAll(items, `"- `, `"  - `)}, gotemplate.Limits{}, slow},
		"generated":           {map[string]string{"app/kustomization.yaml.tpl": "configMapGenerator: [{{ range until 6000 }}{name: a{{ . }}},{{ end }}]"}, gotemplate.Limits{}, slow},
		"in a folder below":   {map[string]string{"app/kustomization.yaml": "resources: [b]", "app/b/kustomization.yaml": "resources: [a.txt]", "app/b/a.txt.tpl": objects}, gotemplate.Limits{}, slow},
		"folders that repeat": {repeated(), gotemplate.Limits{}, "there are more than 10000 objects"},
		"more than is said":   {map[string]string{"app/a.yaml.tpl": objects}, gotemplate.Limits{Objects: 100}, many},
	} {
		made, err := kustomize.NewGenerator(inMemory(test.contents), "app", kustomize.Options{Limits: test.limits})
		must(t, err)
		start := time.Now()
		_, err = made.Generate(contextOf(t), "", "", nil)
		if !errors.Is(err, gotemplate.ErrLimit) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: the error is %v, want %s", name, err, test.want)
		}
		if took := time.Since(start); took > time.Minute {
			t.Errorf("%s: it took %s, want an error at once", name, took)
		}
	}
}

// repeated has folders of which each builds the one below twice, 20 times.
func repeated() map[string]string {
	contents := map[string]string{"app/f20/kustomization.yaml": "resources: [a.yaml]", "app/f20/a.yaml": configMap}
	for i := range 20 {
		folder, below := "app/f"+strconv.Itoa(i), "../../f"+strconv.Itoa(i+1)
		contents[folder+"/kustomization.yaml"] = "resources: [a, b]"
		contents[folder+"/a/kustomization.yaml"] = "namePrefix: a\nresources: [" + below + "]"
		contents[folder+"/b/kustomization.yaml"] = "namePrefix: b\nresources: [" + below + "]"
	}
	contents["app/kustomization.yaml"] = "resources: [f0]"
	return contents
}

// TestPatchesAreBounded: a patch in a spec needs little memory.
func TestPatchesAreBounded(t *testing.T) {
	target := &kustomize.Target{Kind: "ConfigMap"}
	copies := `[{"op": "add", "path": "/data", "value": {"z": ["` + strings.Repeat("x", 1000) + `"]}}` +
		strings.Repeat(`,{"op": "COPY", "from": "/data/z", "path": "/data/z/-"}`, 30) + `]`
	var many []client.Object
	for i := range 500 {
		many = append(many, parse(t, configMapNamed("a"+strconv.Itoa(i)))...)
	}
	for name, test := range map[string]struct {
		objects []client.Object
		patch   string
		want    string
	}{
		"copies":          {many[:1], strings.ReplaceAll(copies, "COPY", "copy"), "exceeding the limit 3145728"},
		"copies, escaped": {many[:1], strings.ReplaceAll(copies, "COPY", `c\u006fpy`), "exceeding the limit 3145728"},
		"copies in many":  {many, strings.ReplaceAll(copies, "COPY", "copy"), "patches[0]: patch: it would give the objects more than 67108864 bytes"},
		"large in many":   {many, "data: {a: " + strings.Repeat("a", 500_000) + "}", "patches[0]: patch: it would give the objects more than 67108864 bytes"},
		"aliases":         {many[:1], grows(), "patches[0]: patch: is too large: aliases give a document more than"},
	} {
		var err error
		transformer := &kustomize.ObjectTransformer{Patches: []kustomize.Patch{{Patch: test.patch, Target: target}}}
		used := allocated(func() { _, err = transformer.TransformObjects("", "", test.objects) })
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: the error is %.300v, want %s", name, err, test.want)
		}
		if used > 200<<20 {
			t.Errorf("%s: it took %d MiB, want at most 200", name, used>>20)
		}
	}
	few := &kustomize.ObjectTransformer{Patches: []kustomize.Patch{
		{Patch: `[{"op": "copy", "from": "/metadata/name", "path": "/data"}]`, Target: target}}}
	if _, err := few.TransformObjects("", "", many); err != nil {
		t.Errorf("the error of a copy in %d objects is %v, want none", len(many), err)
	}
}

// TestFilesThatAreNoTemplates: what does not end in the suffix is copied byte for byte.
func TestFilesThatAreNoTemplates(t *testing.T) {
	dashboard := `{"legendFormat":"{{namespace}}/{{name}}"}`
	contents := map[string]string{
		"app/kustomization.yaml":           "configMapGenerator: [{name: made, files: [value=dashboard.json]}]\ngeneratorOptions: {disableNameSuffixHash: true}\n",
		"app/dashboard.json":               dashboard,
		"app/.github/workflows/ci.yaml":    "run: ${{ matrix.os - }}",
		"app/dashboards/picture.png":       "\x89PNG{{\x00\x01",
		"app/values-of-another-chart.tmpl": "{{ .Values",
	}
	got, err := valueOf(contextOf(t), t, contents, kustomize.Options{})
	if err != nil || got != dashboard {
		t.Errorf("the value is %q (%v), want %q", got, err, dashboard)
	}
}
