package main

import (
	"reflect"
	"strings"
	"testing"
)

const tinyProgram = `package main

import (
	"{{.Module}}/a"
	"{{.Module}}/b"
	notes "{{.Notes}}"
)

func main() {
	b.Two()
	notes.Measure("walk", new(a.Box[string, int]).Walk)
	notes.Measure("{{if call .Has "b"}}two{{end}}{{if call .Has "c"}}three{{end}}", b.Two)
}
`

func TestRun(t *testing.T) {
	trace, err := run(t.Context(), "testdata/tiny", tinyProgram, []string{"skipped"})
	if err != nil {
		t.Fatal(err)
	}
	one, two := call{"b/b.go", "One"}, call{"b/b.go", "Two"}
	want := []scenario{
		{"walk", []call{{"a/a.go", "Box.Walk"}, one, {"a/helper.go", "helper"}, two, one}},
		{"two", []call{two, one}},
	}
	if !reflect.DeepEqual(trace, want) {
		t.Errorf("got  %v\nwant %v", trace, want)
	}

	var out strings.Builder
	if err := report(&out, trace, true, false); err != nil {
		t.Fatal(err)
	}
	const wantReport = `
  functions  files  moves  returns  scenario
          4      3      4        1  walk
          2      1      1        0  two

walk:
	a/a.go
	b/b.go
	a/helper.go

two:
	b/b.go
`
	if out.String() != wantReport[1:] {
		t.Errorf("got\n%s\nwant\n%s", out.String(), wantReport[1:])
	}
}

// A scenario that no call was counted of would report zeros.
func TestScenariosAreCounted(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the module")
	}
	trace, err := run(t.Context(), "../../..", scenarios, defaultWithout)
	if err != nil {
		t.Fatal(err)
	}
	if len(trace) == 0 {
		t.Error("got no scenario, want those of scenarios.go.tmpl")
	}
	for _, s := range trace {
		if len(s.Calls) == 0 {
			t.Errorf("%s: got no call, want some", s.Name)
		}
	}
}

func TestRunFails(t *testing.T) {
	for name, program := range map[string]string{
		"a template":         "{{",
		"a program":          "package main",
		"a run":              "package main; func main() { panic(1) }",
		"a print of its own": "package main; import \"os\"; func main() { _, _ = os.Stdout.WriteString(\"hello\\n\") }",
	} {
		if trace, err := run(t.Context(), "testdata/tiny", program, nil); err == nil {
			t.Errorf("%s: got %v, want an error", name, trace)
		}
	}
	if _, err := run(t.Context(), t.TempDir(), tinyProgram, nil); err == nil {
		t.Error("a folder without a module has no error")
	}
}
