package gotemplate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"text/template"
	"time"

	"github.com/espalier-dev/espalier/generator/gotemplate"
)

func TestSet(t *testing.T) {
	ctx := context.Background()
	set, err := gotemplate.Parse(map[string]string{
		"a.yaml":   "{{ include \"name\" . }}-{{ .missing }}-{{ .no.value }}-{{ tpl .text . }}{{ extra 1 }}",
		"b.yaml":   "{{ template \"a.yaml\" . }}{{ include \"a.yaml\" . | upper }}",
		"_helpers": "{{ define \"name\" }}{{ .name }}{{ .nothing }}{{ end }}",
		"c.yaml":   "a\n\n{{ fail \"no\" }}",
		"twice-1":  `{{ define "twice" }}1{{ end }}`,
		"twice-2":  `{{ define "twice" }}2{{ end }}`,
		"twice":    `{{ template "twice" }}`,
		"tpl":      `{{ tpl "{{ define \"late\" }}late{{ end }}{{ include \"late\" . }}{{ include \"name\" . }}" . }}{{ include "late" . }}`,
	}, gotemplate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	data := map[string]any{"name": "shop", "text": "{{ .name }}{{ .nil }}", "no": map[string]any{}}
	functions := template.FuncMap{
		"extra": func(n int) string { return fmt.Sprint("<", n, ">") },
		"upper": func(s string) string { return "mine " + s },
	}
	for name, want := range map[string]string{"a.yaml": "shop---shop<1>", "b.yaml": "shop---shop<1>mine shop---shop<1>", "_helpers": ""} {
		if got, err := set.Execute(ctx, name, data, functions); err != nil || got != want {
			t.Errorf("%s: want %q, got %q, %v", name, want, got, err)
		}
	}
	for name, want := range map[string]string{
		"none": `there is no template "none"`, "c.yaml": "template: c.yaml:3:", "a.yaml": `"extra" is not a defined function`,
		"tpl": `there is no template "late"`,
	} {
		if _, err := set.Execute(ctx, name, data, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: want error %q, got %v", name, want, err)
		}
	}
	if _, err := (&gotemplate.Set{}).Execute(ctx, "", nil, nil); err == nil {
		t.Error("the error of an empty set is nil, want one")
	}
}

func TestSetDelimiters(t *testing.T) {
	set, err := gotemplate.Parse(map[string]string{"a": `{{ helm }} <% .a %> <% tpl "<% .a %> {{ .a }}" . %>`},
		gotemplate.Options{LeftDelimiter: "<%", RightDelimiter: "%>"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := set.Execute(context.Background(), "a", map[string]any{"a": 1}, nil)
	if want := "{{ helm }} 1 1 {{ .a }}"; err != nil || got != want {
		t.Errorf("want %q, got %q, %v", want, got, err)
	}
	for _, delimiter := range []string{"a", "-", "(", "|", ".", `"`, "$", " ", "{{ ", "/*", "é"} {
		if _, err := gotemplate.Parse(nil, gotemplate.Options{LeftDelimiter: delimiter}); err == nil {
			t.Errorf("%q is a left delimiter, want an error", delimiter)
		}
		if _, err := gotemplate.Parse(nil, gotemplate.Options{RightDelimiter: delimiter}); err == nil {
			t.Errorf("%q is a right delimiter, want an error", delimiter)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"\n{{ if }}{{ end }}":            "template: a.yaml:2: missing value for if",
		"{{":                             "template: a.yaml:1: unclosed action",
		"\n\n{{ $x }}":                   "template: a.yaml:3: undefined variable \"$x\"",
		"{{ espalierGuardRound }}":       `template "a.yaml": function "espalierGuardRound" is reserved`,
		"{{ (espalierGuardText 1).a }}":  `is reserved`,
		strings.Repeat("{{ 1 }}", 60000): `limit of a template: size: template "a.yaml" has more than 50000 actions`,
	} {
		_, err := gotemplate.Parse(map[string]string{"a.yaml": text}, gotemplate.Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.50q: want %q, got %v", text, want, err)
		}
	}
}

// A template cannot call the guard through tpl either.
func TestGuardIsReserved(t *testing.T) {
	if _, err := execute(t, context.Background(), `{{ tpl "{{ espalierGuardRound }}" . }}`); err == nil || !strings.Contains(err.Error(), "the text is not a template") {
		t.Errorf("the error is %v, want that the text is not a template", err)
	}
}

func TestLimitsAreNamed(t *testing.T) {
	templates := map[string]string{
		"loop.yaml": "{{ range 1000000000000 }}{{ end }}", "large.yaml": `{{ include "inner" . }}`,
		"inner": `{{ repeat 2000 "x" }}`, "self.yaml": `{{ $x := dict }}{{ set $x "a" (list $x) }}`, "deep.yaml": `{{ template "deep.yaml" . }}`,
	}
	for name, tc := range map[string]struct {
		limits gotemplate.Limits
		want   string
	}{
		"loop.yaml":  {gotemplate.Limits{Time: 50 * time.Millisecond, Size: 1 << 40}, `limit of a template: time: template "loop.yaml" takes longer than 50ms`},
		"large.yaml": {gotemplate.Limits{Size: 1000}, `limit of a template: size: template "inner" computes more than 1000 bytes`},
		"self.yaml":  {gotemplate.Limits{}, `limit of a template: size: template "self.yaml" puts a value into itself`},
		"deep.yaml":  {gotemplate.Limits{}, `limit of a template: size: template "deep.yaml" nests templates too deep`},
	} {
		set, err := gotemplate.Parse(templates, gotemplate.Options{Limits: tc.limits})
		if err != nil {
			t.Fatal(err)
		}
		_, err = set.Execute(context.Background(), name, nil, nil)
		if !errors.Is(err, gotemplate.ErrLimit) || err.Error() != tc.want {
			t.Errorf("want %q, got %v", tc.want, err)
		}
	}
}

func TestExecuteEndsWithItsContext(t *testing.T) {
	set, err := gotemplate.Parse(map[string]string{"a": "{{ range 1000000000000 }}{{ end }}"}, gotemplate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := set.Execute(ctx, "a", nil, nil); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, gotemplate.ErrLimit) {
		t.Errorf("the error is %v, want the deadline and no limit", err)
	}
}

func TestSetIsSafeForConcurrentUse(t *testing.T) {
	set, err := gotemplate.Parse(map[string]string{
		"a": `{{ range until 20 }}{{ include "b" . }}{{ tpl "{{ . }}" . }}{{ end }}{{ $.n }}`, "b": "{{ . }};",
	}, gotemplate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for n := range 32 {
		wait.Go(func() {
			got, err := set.Execute(context.Background(), "a", map[string]any{"n": n}, nil)
			if err != nil || !strings.HasSuffix(got, fmt.Sprint("19;19", n)) {
				t.Errorf("the output is %q (%v), want it to end with 19;19%d", got, err, n)
			}
		})
	}
	wait.Wait()
}

// Data that many functions change is that of one execution.
func TestErrorsAreShort(t *testing.T) {
	set, err := gotemplate.Parse(map[string]string{"a": `{{ if . }}{{ include "a" (sub . 1) }}{{ else }}{{ fail "the reason" }}{{ end }}`}, gotemplate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = set.Execute(context.Background(), "a", 500, nil)
	if err == nil || len(err.Error()) > 2100 || !strings.HasSuffix(err.Error(), "the reason") {
		t.Errorf("the error is %v, want at most 2100 bytes that end with the reason", err)
	}
}
