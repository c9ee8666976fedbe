package helm_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/generator/gotemplate"
	"github.com/espalier-dev/espalier/generator/helm"
)

// mapsOfMany prints maps in all ways that charts know.
var mapsOfMany = configMap("main", `
  yaml: {{ toYaml .Values | quote }}
  json: {{ toJson .Values | quote }}
  range: {{ range $k, $v := .Values.many }}{{ $k }}{{ $v }}{{ end }}
  keys: {{ keys .Values.many | join "" }}{{ values .Values.many | join "" }}{{ range keys .Values.many }}{{ . }}{{ end }}
  dict: {{ dict "b" 1 "a" 2 | toJson | quote }}
  merged: {{ merge (dict "x" 1) .Values.many | toYaml | quote }}
  picked: {{ omit .Values.many "k1" "k2" | toString | quote }}
  printed: {{ printf "%v" .Values.many | quote }}
  files: {{ range $name, $_ := .Files.Glob "files/*" }}{{ $name }}{{ end }}
  config: {{ (.Files.Glob "files/*").AsConfig | quote }}
  toml: {{ toToml .Values.many | quote }}
`)

func manyValues() generator.UnstructurableMap {
	many := map[string]any{}
	for i := range 40 {
		many["k"+strconv.Itoa(i)] = i
	}
	return generator.UnstructurableMap{"many": many}
}

func TestL8SameInputSameObjects(t *testing.T) {
	t.Parallel()
	chart := rich().and(files{"templates/maps.yaml": mapsOfMany, "templates/b.yaml": configMap("b", "  a: b\n"),
		"files/b.txt": "b", "files/c.txt": "c", "files/d.txt": "d"})
	want := ""
	for range 50 {
		objects, err := load(t, chart, helm.Options{}).Generate(newCluster().context(t.Context()), "north", "shop", manyValues())
		if err != nil {
			t.Fatal(err)
		}
		if got := rendered(t, objects); want == "" {
			want = got
		} else if got != want {
			t.Fatalf("want the same objects each time, got\n%s\nand\n%s", want, got)
		}
	}
}

// The values are 5 MB. Printing them once is within the default limit, and printing them often is not.
func TestLargeValues(t *testing.T) {
	t.Parallel()
	large := generator.UnstructurableMap{"text": strings.Repeat("0123456789", 500_000), "times": 1}
	made := load(t, files{
		"templates/a.yaml": configMap("main", "  a: {{ range until (int .Values.times) }}{{ $.Values.text | trim }}{{ end }}\n"),
	}, helm.Options{})
	objects, err := made.Generate(newCluster().context(t.Context()), "north", "shop", large)
	if err != nil {
		t.Fatal(err)
	}
	if got := dataOf(t, objects)["a"]; len(text(got)) != 5_000_000 {
		t.Errorf("want all of the text, got %d bytes", len(text(got)))
	}
	large["times"] = 100
	_, err = made.Generate(newCluster().context(t.Context()), "north", "shop", large)
	if !errors.Is(err, gotemplate.ErrLimit) {
		t.Errorf("want the error of a limit, got %v", err)
	}
}
