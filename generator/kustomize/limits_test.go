package kustomize_test

import (
	"errors"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/generator/gotemplate"
	"github.com/espalier-dev/espalier/generator/kustomize"
)

func TestTemplatesAreBounded(t *testing.T) {
	t.Parallel()
	for name, template := range map[string]string{
		"large text": `{{ repeat 1000000000 "x" }}`,
		"large list": `{{ until 1000000000 }}`,
		"loops":      `{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}`,
		"doubling":   `{{ $x := "x" }}{{ range until 60 }}{{ $x = printf "%s%s" $x $x }}{{ end }}{{ $x }}`,
		"recursion":  `{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}`,
		"tpl":        `{{ $_ := set . "x" "{{ tpl .x . }}" }}{{ tpl .x . }}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := valueOf(contextOf(t), t, map[string]string{"app/made.yaml.tpl": dataTemplate(template)},
				kustomize.Options{Limits: gotemplate.Limits{Size: 1 << 20}})
			if !errors.Is(err, gotemplate.ErrLimit) {
				t.Errorf("want the error of a limit, got %v", err)
			}
		})
	}
}

func TestL8SameInputSameObjects(t *testing.T) {
	t.Parallel()
	many := map[string]any{}
	for i := range 40 {
		many["k"+strconv.Itoa(i)] = i
	}
	contents := map[string]string{
		"app/kustomization.yaml": "resources: [made.yaml, b.yaml]\nnameSuffix: -x\nconfigMapGenerator:\n" +
			"- {name: generated, literals: [b=1, a=2, d=3, c=4]}\n",
		"app/b.yaml": configMapNamed("b"),
		"app/made.yaml.tpl": dataTemplate(`{{ toYaml .many | quote }}`) + `
  json: {{ toJson .many | quote }}
  range: {{ range $k, $v := .many }}{{ $k }}{{ $v }}{{ end }}
  keys: {{ keys .many | join "" }}
  printed: {{ print .many (dict "b" 1 "a" 2) (omit .many "k1") | quote }}
`,
	}
	var want []map[string]any
	for range 50 {
		made, err := kustomize.NewGenerator(inMemory(contents), "app", kustomize.Options{})
		must(t, err)
		objects, err := made.Generate(contextOf(t), "ns", "n", generator.UnstructurableMap{"many": many})
		must(t, err)
		if got := contentsOf(objects); want == nil {
			want = got
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("the objects differ (-want +got):\n%s", diff)
		}
	}
}
