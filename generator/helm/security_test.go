package helm_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/espalier-dev/espalier/generator/gotemplate"
	"github.com/espalier-dev/espalier/generator/helm"
)

const secret = "s3cret"

func fails(t *testing.T, f files, c *cluster, parameters string) error {
	t.Helper()
	objects, err := load(t, f, helm.Options{}).Generate(c.context(t.Context()), "north", "shop", values(t, parameters))
	if err == nil {
		t.Fatalf("want an error, got\n%s", rendered(t, objects))
	}
	if strings.Contains(err.Error(), secret) {
		t.Errorf("want no value in the error, got %v", err)
	}
	return err
}

func TestErrorsOfRenderingHaveNoValues(t *testing.T) {
	t.Parallel()
	main := func(expression string) files {
		return files{"templates/_a.tpl": `{{ define "a" }}{{ tpl .Values.text . }}{{ end }}`,
			"templates/main.yaml": configMap("main", "  a: "+expression)}
	}
	schema := func(text string) files { return simple.and(files{"values.schema.json": text}) }
	for name, row := range map[string]struct {
		chart            files
		parameters, want string
	}{
		"YAML": {
			files{"templates/main.yaml": "---\na:\n  b: c\n d: {{ .Values.s }}"}, "s: s3cret",
			"chart demo: demo/templates/main.yaml: document 1: line 2: it is not valid YAML",
		},
		"no map": {
			files{"templates/main.yaml": "{{ .Values.s }}"}, "s: s3cret",
			"chart demo: demo/templates/main.yaml: document 1: it is not a map",
		},
		"no kind": {
			files{"templates/main.yaml": "---\n# a\n---\napiVersion: v1\nx: {{ .Values.s }}"}, "s: s3cret",
			"chart demo: demo/templates/main.yaml: document 2: it has no kind",
		},
		"kind is no text": {
			files{"templates/main.yaml": "apiVersion: v1\nkind: {a: {{ .Values.s }}}"}, "s: s3cret",
			"chart demo: demo/templates/main.yaml: document 1: it has no kind",
		},
		"values of a sub-chart": {
			simple.and(sub("one").in("charts/one")), "one: s3cret", "chart demo: values of chart one: it is not a map",
		},
		"required":     {main(`{{ required "name is needed" .Values.name }}`), "{}", "name is needed"},
		"fail":         {main(`{{ fail "not so" }}`), "{}", "demo/templates/main.yaml:6"},
		"missing":      {main(`{{ include "b" . }}`), "{}", `no template "b"`},
		"nil":          {main(`{{ .Values.a.b }}`), "{}", "nil pointer evaluating interface {}.b"},
		"function":     {main(`{{ mustToDate "2006" .Values.s }}`), "s: s3cret", "mustToDate: it does not accept its arguments"},
		"JSON":         {main(`{{ mustFromJson .Values.s }}`), "s: s3cret", "mustFromJson: it does not accept its arguments"},
		"token in tpl": {main(`{{ tpl .Values.s . }}`), "s: '{{ \"a\" | s3cret }}'", "the text is not a template"},
		"field in tpl": {main(`{{ tpl .Values.s . }}`), "s: '{{ if }} s3cret'", "the text is not a template"},
		"function in tpl": {
			main(`{{ tpl .Values.s . }}`), "s: '{{ mustToDate \"2006\" \"s3cret\" }}'", "mustToDate: it does not accept",
		},
		"tpl": {main(`{{ tpl .Values.s . }}`), "s: 's3cret {{'", "demo/templates/main.yaml:6"},
		"tpl that fails": {
			main(`{{ include "a" . }}`), "text: 's3cret: \" template: {{ fail \"no\" }}'", "demo/templates/main.yaml:6",
		},
		"range":         {main(`{{ range .Values.s }}{{ end }}`), "s: s3cret", "can't iterate over a value"},
		"pattern":       {schema(`{"properties": {"s": {"pattern": "^a"}}}`), "s: s3cret", `values.s: it does not match pattern "^a"`},
		"type":          {schema(`{"properties": {"s": {"type": "integer"}}}`), "s: s3cret", "values.s: got string, want integer"},
		"in a list":     {schema(`{"properties": {"s": {"items": {"const": 1}}}}`), "s: [s3cret]", "values.s[0]: value must be 1"},
		"enum":          {schema(`{"properties": {"s": {"enum": ["a", "b"]}}}`), "s: s3cret", "values.s: value must be one of 'a', 'b'"},
		"maximum":       {schema(`{"properties": {"s": {"maximum": 3}}}`), "s: 4711", "values.s: maximum: want 3"},
		"missing value": {schema(`{"required": ["s"]}`), "{}", "values: missing property 's'"},
		"any of":        {schema(`{"anyOf": [{"required": ["b"]}, {"required": ["a"]}]}`), "s: s3cret", "values: missing property 'a'\nvalues: missing property 'b'"},
		"schema of a sub-chart": {
			simple.and(sub("one").and(files{"values.schema.json": `{"properties": {"x": {"type": "integer"}}}`}).in("charts/one")),
			"one: {x: s3cret}", "values.one.x: got string, want integer",
		},
		"version": {
			simple.and(files{"Chart.yaml": chartYAML + "kubeVersion: '>=1.99'\n"}), "{}",
			"kubeVersion: the chart needs >=1.99, and the cluster has v1.34.2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := newCluster()
			first := fails(t, row.chart, cluster, row.parameters)
			if !strings.Contains(first.Error(), row.want) || !strings.HasPrefix(first.Error(), "chart demo: ") {
				t.Errorf("want an error with %q, got %v", row.want, first)
			}
			if strings.Contains(first.Error(), "4711") {
				t.Errorf("want no value in the error, got %v", first)
			}
			for range 5 {
				if diff := cmp.Diff(first.Error(), fails(t, row.chart, cluster, row.parameters).Error()); diff != "" {
					t.Errorf("the error differs from the first, want the same (-first +now):\n%s", diff)
				}
			}
		})
	}
}

func TestTemplatesAreBounded(t *testing.T) {
	t.Parallel()
	main := func(text string) files { return files{"templates/main.yaml": text} }
	limits := gotemplate.Limits{Time: time.Second, Size: 1 << 20}
	for name, row := range map[string]struct {
		chart      files
		parameters string
	}{
		"loops":                  {main(`{{ range until 100000 }}{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}{{ end }}`), "{}"},
		"large list":             {main(`{{ until 1000000000 }}`), "{}"},
		"large text":             {main(`{{ repeat 1000000000 "x" }}`), "{}"},
		"doubling":               {main(`{{ $x := "x" }}{{ range until 60 }}{{ $x = printf "%s%s" $x $x }}{{ end }}{{ $x }}`), "{}"},
		"recursion":              {main(`{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}`), "{}"},
		"recursion of templates": {main(`{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" . }}`), "{}"},
		"recursion of two": {main(`{{ define "b" }}{{ include "a" . }}{{ end }}` +
			`{{ define "a" }}{{ template "b" . }}{{ end }}{{ include "a" . }}`), "{}"},
		"recursion of tpl": {main(`{{ tpl .Values.x . }}`), "x: '{{ tpl .Values.x . }}'"},
		"loops in tpl": {
			main(`{{ tpl .Values.x . }}`), "x: '{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}'",
		},
		"text in tpl":      {main(`{{ tpl .Values.x . }}`), `x: '{{ repeat 1000000000 "x" }}'`},
		"brackets in TOML": {main(`{{ tpl .Values.x . }}`), `x: '{{ fromToml (print "a=" (repeat 500000 "[")) }}'`},
		"points in TOML": {
			main(`{{ tpl .Values.x . }}`), `x: '{{ print "[" (repeat 100000 "a.") "b]" | fromToml }}'`,
		},
		"aliases in YAML": {main(`{{ tpl .Values.x . }}`),
			`x: '{{ fromYaml (print "a: &a " (repeat 100000 "A") "\nb: [" (repeat 20000 "*a,") "]") }}'`},
		"values in JSON": {main(`{{ tpl .Values.x . }}`), `x: '{{ fromJsonArray (print "[" (repeat 300000 "1,") "1]") }}'`},
		"many objects": {
			main(`{{ range until 11000 }}{{ "---\napiVersion: v1\nkind: C\n" }}{{ end }}`), "{}",
		},
		"many objects in a list": {main("apiVersion: v1\nkind: List\nitems:\n" +
			`{{ range until 11000 }}{{ "- {apiVersion: v1, kind: C}\n" }}{{ end }}`), "{}"},
		"in a sub-chart": {
			simple.and(files{"templates/a.yaml": `{{ repeat 1000000000 "x" }}`,
				"Chart.yaml": sub("one")["Chart.yaml"]}.in("charts/one")), "{}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			generator := load(t, row.chart, helm.Options{Limits: limits})
			start := time.Now()
			_, err := generator.Generate(newCluster().context(t.Context()), "north", "shop", values(t, row.parameters))
			if err == nil {
				t.Fatal("want an error")
			}
			if !errors.Is(err, gotemplate.ErrLimit) && !strings.HasPrefix(name, "recursion") {
				t.Errorf("want the error of a limit, got %v", err)
			}
			if took := time.Since(start); took > time.Minute {
				t.Errorf("want an error after about %s, got one after %s", limits.Time, took)
			}
		})
	}
}

// What charts contain and print is not parsed if that would need much memory.
func TestDocumentsAreBounded(t *testing.T) {
	t.Parallel()
	grows := "a: &a " + strings.Repeat("A", 100_000) + "\nb: [" + strings.Repeat("*a,", 20_000) + "]\n"
	object := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n" + grows
	for name, row := range map[string]struct {
		chart      files
		parameters string
		want       string
	}{
		"output": {files{"templates/main.yaml": object}, "{}", "main.yaml: document 1: it is too large: aliases"},
		"output of tpl": {files{"templates/main.yaml": "{{ tpl .Values.x . }}"}, "x: |\n  " +
			strings.ReplaceAll(object, "\n", "\n  "), "main.yaml: document 1: it is too large: aliases"},
		"crds":             {simple.and(files{"crds/a.yaml": object}), "{}", "a.yaml: document 1: it is too large: aliases"},
		"values.yaml":      {simple.and(files{"values.yaml": grows}), "{}", "values.yaml: it is too large: aliases"},
		"packed sub-chart": {simple.and(files{"charts/one-1.0.0.tgz": packed(t, sub("one").in("one").and(files{"one/values.yaml": grows}))}), "{}", "values.yaml: it is too large: aliases"},
	} {
		t.Run(name, func(t *testing.T) {
			made, err := helm.NewGenerator(row.chart.folder(), "", helm.Options{})
			if err == nil {
				_, err = made.Generate(newCluster().context(t.Context()), "north", "shop", values(t, row.parameters))
			}
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("the error is %v, want %s", err, row.want)
			}
		})
	}
}

func TestContextEndsRendering(t *testing.T) {
	t.Parallel()
	generator := load(t, files{
		"templates/a.yaml": `{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}`,
	}, helm.Options{})
	ctx, cancel := context.WithTimeout(newCluster().context(t.Context()), 50*time.Millisecond)
	defer cancel()
	_, err := generator.Generate(ctx, "north", "shop", values(t, "{}"))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("want the error of the context, got %v", err)
	}
	if _, err = generator.Generate(ctx, "north", "shop", values(t, "{}")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("want the error of the context, got %v", err)
	}
}

var lookingUp = files{"templates/main.yaml": configMap("main",
	`  got: {{ (lookup "v1" "Secret" "south" "key").data | toJson | quote }}`+"\n"+
		`  all: {{ range (lookup "v1" "Secret" "south" "").items }}{{ .metadata.name }} {{ end }}`)}

func newSecret(data string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "south", Name: "key"}, Data: map[string][]byte{"a": []byte(data)},
	}
}

func TestLookup(t *testing.T) {
	t.Parallel()
	generator, cluster := load(t, lookingUp, helm.Options{}), newCluster()
	if diff := cmp.Diff(map[string]any{"got": "null", "all": nil}, dataOf(t, generate(t, generator, cluster, "{}"))); diff != "" {
		t.Errorf("the data differ (-want +got):\n%s", diff)
	}
	without := inputs(t, generator, cluster)
	if without != inputs(t, generator, cluster) {
		t.Error("want the same inputs while nothing changes")
	}
	if err := cluster.client.Create(t.Context(), newSecret("1")); err != nil {
		t.Fatal(err)
	}
	if without == inputs(t, generator, cluster) {
		t.Error("want other inputs since there is a Secret")
	}
	want := map[string]any{"got": `{"a":"MQ=="}`, "all": "key"}
	if diff := cmp.Diff(want, dataOf(t, generate(t, generator, cluster, "{}"))); diff != "" {
		t.Errorf("the data differ (-want +got):\n%s", diff)
	}
	with := inputs(t, generator, cluster)
	if err := cluster.client.Update(t.Context(), newSecret("2")); err != nil {
		t.Fatal(err)
	}
	if with == inputs(t, generator, cluster) {
		t.Error("want other inputs since the Secret has changed")
	}
}

func TestLookupWithoutRights(t *testing.T) {
	t.Parallel()
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "key",
		errors.New(`User "tenant" cannot get resource "secrets" in API group "" in the namespace "south"`))
	cluster := intercepted(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return denied
		},
	})
	err := fails(t, lookingUp, cluster, "{}")
	if !apierrors.IsForbidden(err) {
		t.Errorf("want the error of the API server to be wrapped, got %#v", err)
	}
	for _, want := range []string{"demo/templates/main.yaml:6", `User "tenant" cannot get resource "secrets"`, "key"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
	// The rendering is what says which template needs the rights.
	generator := load(t, lookingUp, helm.Options{})
	if _, err := generator.Generate(cluster.context(t.Context()), "north", "shop", values(t, "{}")); err == nil {
		t.Error("want an error")
	}
	if first := inputs(t, generator, cluster); first != inputs(t, generator, cluster) {
		t.Error("want the same inputs while the rights are missing")
	}
}

func TestLookupOfUnknownKind(t *testing.T) {
	t.Parallel()
	main := func(apiVersion, kind string) files {
		return files{"templates/main.yaml": configMap("main", `  got: {{ lookup "`+apiVersion+`" "`+kind+`" "" "x" | toJson | quote }}`)}
	}
	noMatch := intercepted(interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
			kind := o.GetObjectKind().GroupVersionKind()
			return &meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}}
		},
	})
	generator := load(t, main("v1", "Nothing"), helm.Options{})
	if got := dataOf(t, generate(t, generator, noMatch, "{}"))["got"]; got != "{}" {
		t.Errorf("want nothing of a kind that v1 does not have, got %v", got)
	}
	if first := inputs(t, generator, noMatch); first != inputs(t, generator, noMatch) {
		t.Error("want the same inputs while the kind does not exist")
	}
	fails(t, main("example.com/v1", "Nothing"), noMatch, "{}")
}
