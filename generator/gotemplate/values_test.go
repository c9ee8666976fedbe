package gotemplate_test

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/generator/gotemplate"
)

// secretData is what a hostile template makes errors of.
var secretData = map[string]any{
	"s": "s3cret(", "m": map[string]any{"a": "s3cret", "urlx": 1}, "url": "http://s3cret(%zz@\x7f", "f": func() {},
	"alias": "a: *s3cret", "tag": "!!int s3cret", "list": "- s3cret", "twice": "s3cret: 1\ns3cret: 2", "line": "a: b\n c: s3cret",
	"call": "{{ s3cret }}", "operand": "{{ s3cret( }}", "quoted": "s3cret {{ \"s3cret\" | upper 1 }}",
	"include": "{{ define \"s3cret\" }}{{ end }}{{ mustToDate \"2006\" \"s3cret\" }}",
}

var secretTexts = map[string]string{
	`{{ mustFromJson .s }}`:                    "it is not valid JSON",
	`{{ fromJson "1e999" }}`:                   "it is not valid JSON",
	`{{ fromJsonArray "{}" }}`:                 "it has a value of another type: object",
	`{{ fromYaml .alias }}`:                    "it is not valid YAML",
	`{{ fromYaml .tag }}`:                      "it is not valid YAML",
	`{{ fromYaml .line }}`:                     "line 2: it is not valid YAML",
	`{{ fromYamlArray .alias }}`:               "it is not valid YAML",
	`{{ mustRegexMatch .s "x" }}`:              "error calling mustRegexMatch: it does not accept its arguments",
	`{{ regexFind .s "x" }}`:                   "error calling regexFind: it does not accept its arguments",
	`{{ mustRegexReplaceAll .s "x" "" }}`:      "error calling mustRegexReplaceAll: it does not accept its arguments",
	`{{ semverCompare .s "1" }}`:               "error calling semverCompare: it does not accept its arguments",
	`{{ mustToDate "2006" .s }}`:               "error calling mustToDate: it does not accept its arguments",
	`{{ mustDateModify .s now }}`:              "error calling mustDateModify: it does not accept its arguments",
	`{{ urlParse .url }}`:                      "error calling urlParse: it does not accept its arguments",
	`{{ tpl .call . }}`:                        "in its text: a function is not defined",
	`{{ tpl .operand . }}`:                     "error calling tpl: the text is not a template",
	`{{ tpl .quoted . }}`:                      "in its text: wrong number of args for upper",
	`{{ tpl .include . }}`:                     "it does not accept its arguments",
	`{{ range .s }}{{ end }}`:                  "range can't iterate over a value",
	`{{ required "name is needed" .nothing }}`: "error calling required: name is needed",
	`{{ fail "not so" }}`:                      "error calling fail: not so",
}

func TestErrorsShowNoValues(t *testing.T) {
	t.Parallel()
	for text, want := range secretTexts {
		set, err := gotemplate.Parse(map[string]string{"test": text}, gotemplate.Options{})
		if err != nil {
			t.Error(err)
			continue
		}
		_, err = set.Execute(context.Background(), "test", secretData, nil)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: want an error with %q, got %v", text, want, err)
		}
	}
}

func TestErrorsOfParametersShowNoValues(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a: *{{ .s }}":          "the output of p.yaml: it is not valid YAML",
		"!!int {{ .s }}":        "the output of p.yaml: it is not valid YAML",
		"a: b\n c: {{ .s }}":    "the output of p.yaml: line 2: it is not valid YAML",
		"{{ .s }}":              "the output of p.yaml is not a map",
		"a: {{ semver .s }}":    "error calling semver: it does not accept its arguments",
		"{{ tpl .template . }}": "error calling tpl: the text is not a template",
	} {
		folder := fstest.MapFS{"p.yaml": {Data: []byte(text)}}
		transformer, err := gotemplate.NewParameterTransformer(folder, "p.yaml", gotemplate.Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = transformer.TransformParameters("ns", "n", generator.UnstructurableMap{"s": "s3cret", "template": "{{ s3cret("})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: want an error with %q, got %v", text, want, err)
		}
	}
}
