package gotemplate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"
	"text/template"
	"time"
)

// file has methods, as the files of a chart have.
type file map[string]string

func (f file) Get(name string) string { return f[name] }

func (f file) AsConfig() string { return fmt.Sprint(len(f), " files") }

// version is printed by a method of its pointer.
type release struct{ Major int }

func (v *release) String() string { return fmt.Sprintf("v%d", v.Major) }

type thing struct {
	Version release
	Pointer *release
	List    []release
	Array   [2]int
	Err     error
	Func    func(string) string
}

// String has no address, which functions such as upper and sha256sum would keep a comparison from recognising.
func (*thing) String() string { return "thing" }

func instrumentData() map[string]any {
	var none *release
	return map[string]any{
		"s": "text", "n": 5, "f": 2.5, "t": true, "z": 0, "no": false, "nil": nil, "none": none, "empty": "",
		"bytes": []byte("abc"), "m": map[string]any{"b": 2, "a": map[string]any{"x": "y"}}, "l": []any{1, "two", nil, 3.5},
		"ints": []int{3, 2, 1}, "typed": map[string]int{"one": 1}, "err": errors.New("broken"),
		"big": strings.Repeat("0123456789", 50), "text": `<{{ .s }}{{ define "late" }}late{{ end }}{{ template "late" }}>`,
		"Files": file{"a": "A"}, "thing": &thing{
			Version: release{3}, Pointer: &release{4}, List: []release{{1}, {2}}, Err: errors.New("field"),
			Func: func(s string) string { return s + s },
		},
	}
}

// plain executes templates as they are.
func plain(left, right, text string, data any) (string, error) {
	return execute(left, right, text, data, nil)
}

// execute executes a text as Helm does, with a guard if there is one.
func execute(left, right, text string, data any, guard *Guard) (string, error) {
	var build func(parent *template.Template) template.FuncMap
	build = func(t *template.Template) template.FuncMap {
		return template.FuncMap{
			"include": func(name string, data any) (string, error) {
				var out bytes.Buffer
				err := t.ExecuteTemplate(&out, name, data)
				return out.String(), err
			},
			"tpl": func(text string, data any) (string, error) {
				clone, err := t.Clone()
				if err != nil {
					return "", err
				}
				clone.Funcs(build(clone)).Option("missingkey=zero")
				parsed, err := clone.New("tpl").Parse(text)
				if err != nil {
					return "", err
				}
				var out bytes.Buffer
				err = parsed.Execute(&out, data)
				return out.String(), err
			},
		}
	}
	functions := Functions(context.Background())
	delete(functions, "uuidv4")
	delete(functions, "now")
	if guard != nil {
		maps.Copy(functions, guard.Functions())
	}
	t := template.New("file").Delims(left, right).Option("missingkey=zero").Funcs(functions)
	t.Funcs(build(t))
	t, err := t.Parse(text)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	err = t.Execute(&out, data)
	return out.String(), err
}

func guarded(left, right, text string, data any) (string, error) {
	instrumented, err := Instrument("file", text, left, right)
	if err != nil {
		return "", err
	}
	guard := NewGuard(context.Background(), Limits{})
	out, err := execute(left, right, instrumented, data, guard)
	if limit := guard.Err(err); limit != nil {
		return "", limit
	}
	return out, err
}

var sameOutput = []string{
	"", " ", "\n\n", "text", "a {{ .s }} b", "{{ .missing }}", "{{ .m.missing }}", "{{ .m.a.missing.deeper }}", "{{ .nil }}",
	"{{ .none }}", "{{ .no }}{{ .z }}{{ .empty }}", "{{ .m }}{{ .l }}{{ .ints }}{{ .typed }}", "{{ .err }}", "{{ .bytes }}",
	"{{ .thing.Version }} {{ .thing.Pointer }} {{ .thing.Array }} {{ .thing.Err }}", "{{ . | len }}", "{{ .thing.Func }}",
	"{{ range .thing.List }}{{ . }}{{ end }}", "{{ $v := .thing.Version }}{{ $v }}", "{{ with .thing.Version }}{{ . }}{{ end }}",
	"{{ with $x := .thing }}{{ $x.Version }}{{ (index $x.List 1) }}{{ end }}", "{{ .thing.Version.String }}",
	`{{ call .thing.Func "a" }}`, `{{ "a" | call .thing.Func }}`, `{{ (call .thing.Func "a") | upper }}`,
	`{{ .Files.Get "a" }}{{ "a" | .Files.Get }}{{ (.Files.Get "a") }}{{ .Files.AsConfig }}`,
	`{{ indent 2 .Files.AsConfig }}{{ $f := .Files }}{{ $f.AsConfig | indent 1 }}{{ (.Files).AsConfig }}`,
	`{{ "str\"ing}}" }}` + "{{ `raw\n}}` }}" + `{{ 'x' }}{{ 0x1F }}{{ 1e3 }}{{ 1i }}{{ -1 }}{{ 1_000 }}{{ +2 }}{{ true }}`,
	"{{ nil }}", "{{ $x := nil }}", "{{- /* comment */ -}} a {{/* another\n */}} b", "a\n{{- .s -}}\nb", "a{ {{- .s -}} }b",
	"a{{/* */}}{ .s }}", "{ {{- \"{\" }}.s }}", "a{{ \"{{\" }}b", "{{ \"}}\" }}", "{{ .s }}}", "a{\n{{- .s }}", "{{{ .s }}",
	"{{ if .s }}yes{{ end }}", "{{ if .no }}yes{{ else }}no{{ end }}", "{{ if .no }}1{{ else if .z }}2{{ else if .t }}3{{ else }}4{{ end }}",
	"{{ if $x := .s }}{{ $x }}{{ else }}{{ $x }}none{{ end }}", "{{ if $x := .no }}a{{ else if $y := .s }}{{ $x }}{{ $y }}{{ end }}",
	"{{ with .no }}1{{ else with .s }}{{ . }}{{ else }}3{{ end }}", "{{ with .m }}{{ .b }}{{ $.s }}{{ else }}x{{ end }}",
	"{{ range .l }}[{{ . }}]{{ end }}", "{{ range $i, $e := .l }}{{ $i }}={{ $e }};{{ end }}", "{{ range $k, $v := .m }}{{ $k }}{{ $v }}{{ end }}",
	"{{ range 3 }}{{ . }}{{ end }}", "{{ range $i := .n }}{{ $i }}{{ end }}", "{{ range .nil }}x{{ else }}none{{ end }}",
	"{{ range .missing }}x{{ else }}none{{ end }}", "{{ $i := 0 }}{{ range $i = .ints }}{{ end }}{{ $i }}",
	"{{ range .ints }}{{ if eq . 2 }}{{ continue }}{{ end }}{{ . }}{{ end }}", "{{ range .ints }}{{ if eq . 2 }}{{ break }}{{ end }}{{ . }}{{ else }}e{{ end }}",
	"{{ break }}", "{{ range .l }}{{ else }}{{ break }}{{ end }}", "{{ range until 3 }}{{ range until . }}{{ . }}{{ end }}|{{ end }}",
	"{{ $x := 1 }}{{ $x = add $x 1 }}{{ $x }}", "{{ $x := .s | upper }}{{ $x }}", "{{ $x := ($y := .s) }}{{ $x }}{{ $y }}", "{{ $nope }}",
	`{{ define "a" }}A{{ . }}{{ end }}{{ template "a" .s }}{{ include "a" .n }}{{ include "a" . | len }}`,
	`{{ template "a" }}{{ define "a" }}A{{ . }}{{ end }}`, `{{ define "a" }}1{{ end }}{{ define "a" }}2{{ end }}`,
	`{{ define "a" }}1{{ end }}{{ define "a" }} {{ end }}{{ template "a" }}`, `{{ define "file" }}1{{ end }}`, `{{ define "file" }}1{{ end }}x`,
	`{{ block "b" .s }}B{{ . }}{{ end }}{{ template "b" 1 }}`, `{{ if .t }}{{ block "b" .m }}{{ .b }}{{ end }}{{ end }}x`,
	`{{ define "q\"uo" }}Q{{ end }}{{ template "q\"uo" . }}`, `{{ define "r" }}{{ if . }}{{ . }}{{ template "r" (sub . 1) }}{{ end }}{{ end }}{{ template "r" 4 }}`,
	`{{ tpl .text . }}{{ .text | len }}`, `{{ tpl (.text | upper | lower) . }}`, `{{ tpl "{{ .s }}" . | upper }}`, `{{ . | tpl "{{ .s }}" }}`,
	`{{ (tpl "{{ . }}" 1) }}{{ list (tpl "x{{ . }}" "y") | join "," }}`, `{{ tpl "{{ tpl .text . }}" . }}`, `{{ tpl .nil . }}`, `{{ tpl 1 . }}`,
	`{{ tpl "{{" . }}`, `{{ tpl "{{ nofunction }}" . }}`, `{{ "x" | tpl }}`, `{{ tpl .missing . }}`, `{{ tpl .bytes . }}`,
	`{{ toYaml .m }}{{ .m | toYaml | nindent 2 }}{{ toJson .l }}{{ .m.a | toPrettyJson }}{{ toRawJson "<" }}{{ toJson .nil }}{{ toYaml .missing }}`,
	`{{ (dict "a" (list 1 2)).a | first }}{{ (index .l 1) }}{{ get .m "b" }}{{ .m.a.x }}{{ (.m).a.x }}{{ ((.m).a).x }}`,
	`{{ printf "%s-%v-%05d" .s .m .n }}{{ print 1 2 "a" }}{{ println .nil }}{{ html "<" }}{{ js "'" }}{{ urlquery "a b" }}{{ html .missing }}`,
	`{{ repeat 3 "ab" }}{{ "ab" | repeat -1 }}`, `{{ indent 2 "a\nb" }}{{ nindent 2 "a" }}{{ "a" | indent -1 }}`, `{{ until 4 }}{{ until -3 }}{{ until 0 }}{{ until 1 }}`,
	`{{ untilStep 1 10 3 }}{{ untilStep 5 1 -2 }}{{ untilStep 1 5 0 }}{{ untilStep 5 1 1 }}{{ untilStep 1 1 1 }}`,
	`{{ seq }}{{ seq 5 }}{{ seq -3 }}{{ seq 2 4 }}{{ seq 4 2 }}{{ seq 1 2 9 }}{{ seq 9 -3 1 }}{{ seq 1 0 3 }}{{ seq 1 2 3 4 }}{{ seq 9 3 1 }}`,
	`{{ replace "t" "TT" .s }}{{ replace "" "-" .s }}{{ join "," .l }}{{ join "," .s }}{{ join "-" .ints }}{{ join "," .nil }}`,
	`{{ wrap 2 "a bc def ghij" }}{{ wrapWith 3 "|" "a bc def ghij" }}{{ wrap 0 "ab cd" }}{{ cat .s .n .nil .l }}{{ quote .s .nil 1 }}{{ squote .m }}`,
	`{{ regexReplaceAll "t(.)" .s "<${1}>" }}{{ regexReplaceAllLiteral "t" .s "$0" }}{{ mustRegexReplaceAll "(" .s "" }}`, `{{ regexReplaceAll "(" .s "" }}`,
	`{{ mustRegexReplaceAll "t" .s "$0$0" }}{{ regexFindAll "t" .s -1 }}{{ regexSplit "e" .s -1 }}{{ split "e" .s }}{{ splitList "" .s }}{{ splitn "t" 2 .s }}`,
	`{{ uniq (list 1 1 2 "a" "a" nil nil) }}{{ uniq .ints }}{{ mustUniq .l }}`, `{{ uniq .s }}`, `{{ mustUniq .nil }}`, `{{ uniq .nil }}`,
	`{{ merge (dict "a" 1) .m }}{{ mergeOverwrite (dict "b" 1 "a" (dict "z" 1)) .m }}{{ .m }}{{ mustMerge (dict) .m (dict "c" 3) }}`,
	`{{ merge .m .m }}{{ $d := dict "a" (dict "b" 1) }}{{ mergeOverwrite $d $d.a }}{{ $d }}`, `{{ merge .nil .m }}`, `{{ merge .s .m }}`,
	`{{ $d := dict }}{{ $_ := set $d "a" .m }}{{ set $d "b" $d.a }}`, `{{ set .nil "a" 1 }}`, `{{ dict 1 2 .n 3 }}{{ dict "a" }}{{ dict .l 1 }}`,
	`{{ int "5" }}{{ int .l }}{{ int64 .f }}{{ float64 "x" }}{{ add 1 "2" .m }}{{ sub 3 1 }}{{ max 1 2 .n }}{{ round 1.255 2 }}{{ addf 1 .5 }}{{ toDecimal "777" }}`,
	`{{ div 1 0 }}`, `{{ fail "stop" }}`, `{{ required "need" .nil }}`, `{{ required "need" .s }}{{ required "x" .z }}`, `{{ first (list) }}`, `{{ mustFirst .s }}`,
	`{{ default "d" .missing }}{{ default "d" .s }}{{ coalesce .nil .z .s }}{{ ternary "a" "b" .t }}{{ .t | ternary "a" "b" }}{{ empty .missing }}`,
	`{{ and .s .z }}{{ or .z .s }}{{ not .s }}{{ and }}`, `{{ or .nil .missing }}{{ eq .s "text" "b" }}{{ lt 1 2 }}{{ index .m "a" "x" }}{{ index .l 9 }}`,
	`{{ len .nil }}`, `{{ slice .s 1 2 }}`, `{{ slice .l 1 2 }}{{ rest .l }}{{ initial .l }}{{ reverse .l }}{{ append .l 1 }}{{ prepend .l 0 }}{{ concat .l .l }}{{ without .l 1 }}`,
	`{{ toJson (keys) }}{{ toJson (keys (dict)) }}{{ toJson (values (dict)) }}{{ deepCopy .m }}{{ keys .m | sortAlpha }}{{ pick .m "b" }}{{ omit .m "b" }}{{ values .typed }}`, `{{ values (dict "a" 1) }}{{ pluck "b" .m }}{{ chunk 2 .l }}{{ dig "a" "x" "d" .m }}`,
	`{{ b64enc .s | b64dec }}{{ sha256sum .s }}{{ upper .s }}{{ title .s }}{{ trunc 2 .s }}{{ abbrev 5 "abcdefgh" }}{{ substr 1 2 .s }}{{ nospace "a b" }}{{ toString .m }}`,
	`{{ fromYaml "a: [1]" }}{{ fromYamlArray "- 1" }}{{ fromJson "{\"a\":1}" }}{{ fromYaml "a: b: c" }}`, `{{ (fromYaml "a: 12345678").a }}`,
	`{{ .s.x }}`, `{{ .n.x }}`, `{{ .m.a.x.y }}`, `{{ index .nil 1 }}`, `{{ nofunction }}`, `{{ .s | nofunction }}`, `{{ "a" "b" }}`, `{{ .s "b" }}`, `{{ 1 | 2 }}`, `{{ .s | "b" }}`,
	`{{`, `{{ end }}`, `{{ if }}`, `{{ .s }`, `{{ "a`, "{{ `a", `{{ if .s }}`, `{{ template }}`, `{{ define }}`, `{{ define "a" }}`, `{{ .s | }}`, `{{ $x = 1 }}`, `{{ ( }}`, `{{ () }}`,
	"{{ dict\n\t\"a\" 1\n\t\"b\" (list\n 1 2)\n}}\n{{ .s\n| upper }}", "{{ .big }}{{ if .t }}{{ .big }}{{ else }}{{ .big }}{{ end }}",
	"{{ range .ints -}}\n  a\n  {{- end }}", "{{ range .ints }}\n  {{- . }}\n{{ end -}}\n x", "{{ range .ints }}{{ /* c */ }}{{ end }}",
	"{{ if .t }}{{- end }}", "a {{- if .t }} b {{ else -}} c {{ end }} d", "\ufeff{{ .s }}\r\n", "{{ .s }}\x00\xff", "{{ \"\\x00\\xff\" }}", `{{ "\u00e9" }}`, "é{{ .é }}",
	`{{ (.s) }}{{ (1) }}{{ ("a") }}{{ (nil) }}`, `{{ ("a" | upper) | lower }}`, `{{ $.s }}{{ $ | len }}`, `{{ with $x := 1 }}{{ $x }}{{ end }}{{ $x }}`,
	"{{ tpl \"{{$}}\" $ | upper }}", `{{ sha256sum .thing }}`, `{{ range $i, $c := .s }}{{ $c }}{{ end }}`, `{{ template "x" }}`, `{{ template .s }}`, `{{ include "nothing" . }}`, `{{ range .err }}{{ end }}`,
}

func TestInstrumentedTemplatesHaveTheSameOutput(t *testing.T) {
	for _, text := range sameOutput {
		compare(t, "{{", "}}", text)
		compare(t, "<%", "%>", strings.NewReplacer("{{", "<%", "}}", "%>").Replace(text))
	}
}

var lineOf = regexp.MustCompile(`file:\d+`)

func compare(t *testing.T, left, right, text string) {
	t.Helper()
	want, wantErr := plain(left, right, text, instrumentData())
	got, gotErr := guarded(left, right, text, instrumentData())
	switch {
	case errors.Is(gotErr, ErrLimit) && !errors.Is(wantErr, ErrLimit):
		t.Errorf("%q: the error is %v, want a limit only where the plain template has one: %v", text, gotErr, wantErr)
	case (wantErr == nil) != (gotErr == nil):
		t.Errorf("%q: want error %v, got %v", text, wantErr, gotErr)
	case wantErr != nil:
		want, got := lineOf.FindString(wantErr.Error()), lineOf.FindString(gotErr.Error())
		// An instrumented template may call functions that do not exist, as those of a Set may.
		if want != got && !strings.Contains(wantErr.Error(), "not defined") {
			t.Errorf("%q: want line %q, got %q: %v, %v", text, want, got, wantErr, gotErr)
		}
	case want != got:
		instrumented, _ := Instrument("file", text, left, right)
		t.Errorf("%q:\nwant %q\ngot  %q\nof %q", text, want, got, instrumented)
	}
}

func FuzzInstrument(f *testing.F) {
	for _, text := range sameOutput {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		// A plain template has no limits, and some functions are random.
		if len(text) > 500 || strings.Contains(text, "define") && strings.Contains(text, "range") {
			return
		}
		for _, word := range []string{"rand", "gen", "uuid", "now", "shuffle", "ago", "date", "keys", "values", "bcrypt", "htpasswd", "derive",
			"encrypt", "until", "seq", "repeat", "indent", "wrap", "%", "000", "espalier", "range 9"} {
			if strings.Contains(text, word) {
				return
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		done := make(chan struct{})
		go func() {
			defer close(done)
			compare(t, "{{", "}}", text)
		}()
		select {
		case <-done:
		case <-ctx.Done():
			t.Fatalf("%q has not ended: %v", text, ctx.Err())
		}
	})
}
