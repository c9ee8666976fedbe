package gotemplate_test

import (
	"context"
	"testing"

	"github.com/espalier-dev/espalier/generator/gotemplate"
)

func TestL8SameInputSameOutput(t *testing.T) {
	t.Parallel()
	many := map[string]any{}
	for _, key := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m"} {
		many[key] = map[string]any{"x" + key: key}
	}
	for _, text := range []string{
		`{{ toYaml .m }}{{ toJson .m }}{{ toPrettyJson .m }}{{ .m }}`, `{{ range $k, $v := .m }}{{ $k }}{{ $v }}{{ end }}`,
		`{{ keys .m | sortAlpha }}`, `{{ keys .m }}`, `{{ values .m }}`, `{{ omit .m "a" | toYaml }}{{ pick .m "b" "c" }}`,
		`{{ merge (dict "z" 1) .m | toJson }}`, `{{ print .m | quote }}`, `{{ pluck "a" .m .m }}`, `{{ toString .m }}`,
		`{{ range keys .m }}{{ . }}{{ end }}`, `{{ join "," (keys .m .m) }}`,
	} {
		set, err := gotemplate.Parse(map[string]string{"test": text}, gotemplate.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want := ""
		for range 50 {
			got, err := set.Execute(context.Background(), "test", map[string]any{"m": many}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if want == "" {
				want = got
			} else if got != want {
				t.Errorf("%s: want the same output each time, got\n%s\nand\n%s", text, want, got)
				break
			}
		}
	}
}
