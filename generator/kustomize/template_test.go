package kustomize_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/generator/gotemplate"
	"github.com/espalier-dev/espalier/generator/kustomize"
	fakeclient "github.com/espalier-dev/espalier/testing/fake"
)

// dataTemplate is a ConfigMap with one value, which is a template.
func dataTemplate(value string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: made}\ndata:\n  value: " + value + "\n"
}

func served() discovery.DiscoveryInterface {
	return &fake.FakeDiscovery{
		Fake:               &clienttesting.Fake{Resources: []*metav1.APIResourceList{{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{{Name: "deployments", Kind: "Deployment"}}}}},
		FakedServerVersion: &version.Info{Major: "1", Minor: "36", GitVersion: "v1.36.3"},
	}
}

// contextOf is the context of a generator, with clients that know the objects.
func contextOf(t testing.TB, objects ...client.Object) generator.Context {
	t.Helper()
	scheme := runtime.NewScheme()
	must(t, corev1.AddToScheme(scheme))
	c := fakeclient.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	return generator.NewContext(t.Context()).WithReconcilerName("test").WithClient(c).WithLocalClient(c).WithDiscovery(served()).
		WithComponent(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "resource", UID: "1", Labels: map[string]string{"size": "big"}}}).
		WithComponentDigest("digest").WithComponentRevision(7)
}

// valueOf builds the folder app, and returns the value of the ConfigMap with the name made.
func valueOf(ctx context.Context, t testing.TB, contents map[string]string, options kustomize.Options) (string, error) {
	t.Helper()
	made, err := kustomize.NewGenerator(inMemory(contents), "app", options)
	if err != nil {
		return "", err
	}
	parameters := generator.UnstructurableMap{"size": int64(1000000), "nested": map[string]any{"a": "given", "gone": nil}, "list": []any{"x"}}
	objects, err := made.Generate(ctx, "target", "app", parameters)
	if err != nil {
		return "", err
	}
	for _, object := range contentsOf(objects) {
		if object["metadata"].(map[string]any)["name"] == "made" {
			return object["data"].(map[string]any)["value"].(string), nil
		}
	}
	t.Fatalf("the objects are %s, want the one that is made", namesOf(objects))
	return "", nil
}

// TestTemplates: what templates see.
func TestTemplates(t *testing.T) {
	config := "values:\n  size: 3\n  default: 2000000\n  nested: {a: b, c: d, gone: e}\n"
	for name, test := range map[string]struct {
		template string
		want     string
	}{
		"parameter":             {`"{{ .size }}"`, "1000000"},
		"default":               {`"{{ .default }}"`, "2000000"},
		"merged":                {`"{{ .nested.a }} {{ .nested.c }} {{ hasKey .nested "gone" }}"`, "given d false"},
		"missing":               {`"[{{ .missing }}]"`, "[]"},
		"name and namespace":    {`"{{ namespace }}/{{ name }}"`, "target/app"},
		"component":             {`"{{ component.Name }} {{ component.Labels.size }} {{ componentDigest }} {{ componentRevision }}"`, "resource big digest 7"},
		"version":               {`"{{ kubernetesVersion.GitVersion }}"`, "v1.36.3"},
		"resources":             {`"{{ range apiResources }}{{ .GroupVersion }}{{ range .APIResources }}:{{ .Kind }}{{ end }}{{ end }}"`, "apps/v1:Deployment"},
		"files":                 {`"{{ listFiles "files/*" | join "," }} {{ listFiles "**/*.txt" | join "," }} {{ existsFile "files/a.txt" }} {{ existsFile "b" }}"`, "files/a.txt,files/b.ini files/a.txt,files/below/c.txt true false"},
		"content of a file":     {`{{ readFile "files/a.txt" | quote }}`, "text"},
		"ignored file":          {`{{ readFile "files/below/c.txt" | quote }}`, "ignored"},
		"included file":         {`'{{ readFile "../shared/x.txt" }} {{ listFiles "../shared/*" | join "," }}'`, "shared ../shared/x.txt"},
		"include":               {`'{{ include "greet" . }}'`, "hello 1000000"},
		"tpl":                   {`'{{ tpl "{{ .size }}" . }}'`, "1000000"},
		"lookup":                {`'{{ (lookup "v1" "Secret" "target" "access").data.password | b64dec }}'`, "hunter2"},
		"changes of the values": {`'{{ $_ := set . "size" 1 }}{{ .size }}'`, "1"},
		"sprig":                 {`{{ list "a" "b" | join "-" | upper }}`, "A-B"},
	} {
		t.Run(name, func(t *testing.T) {
			access := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "target", Name: "access"}, Data: map[string][]byte{"password": []byte("hunter2")}}
			got, err := valueOf(contextOf(t, access), t, map[string]string{
				"app/.component-config.yaml": config + "includedFiles: [../shared]\n", "app/.component-ignore": "files/\n_*\n",
				"app/made.yaml.tpl": dataTemplate(test.template), "app/z.yaml": configMapNamed("'{{ .size }}'"), "app/files/a.txt": "text", "app/files/b.ini": "b", "app/files/below/c.txt": "ignored",
				"app/helpers.tpl": `{{ define "greet" }}hello {{ .size }}{{ end }}`, "shared/x.txt": "shared",
			}, kustomize.Options{Bases: []string{"../shared"}})
			if err != nil || got != test.want {
				t.Errorf("the value is %q (%v), want %q", got, err, test.want)
			}
		})
	}
}

// TestTemplateOptions: the suffix and the delimiters, from the options and from the config; and bases with templates.
func TestTemplateOptions(t *testing.T) {
	for name, test := range map[string]struct {
		files   map[string]string
		options kustomize.Options
		want    string
	}{
		"suffix":                {map[string]string{"app/made.yaml.t": dataTemplate(`"{{ .size }}"`), "app/x.yaml": configMapNamed("'{{ x }}'")}, kustomize.Options{TemplateSuffix: ".t"}, "1000000"},
		"suffix in the config":  {map[string]string{"app/.component-config.yaml": "templateSuffix: .t", "app/made.yaml.t": dataTemplate(`"{{ .size }}"`)}, kustomize.Options{TemplateSuffix: ".tpl"}, "1000000"},
		"delimiters":            {map[string]string{"app/made.yaml.tpl": dataTemplate(`"<< .size >> {{ x }}"`)}, kustomize.Options{LeftDelimiter: "<<", RightDelimiter: ">>"}, "1000000 {{ x }}"},
		"delimiters in config":  {map[string]string{"app/.component-config.yaml": "leftTemplateDelimiter: '<<'\nrightTemplateDelimiter: '>>'", "app/made.yaml.tpl": dataTemplate(`"<< .size >> {{ x }}"`)}, kustomize.Options{}, "1000000 {{ x }}"},
		"base":                  {map[string]string{"app/kustomization.yaml": "resources: [../base]", "base/made.yaml.tpl": dataTemplate(`"{{ .size }}"`), "base/kustomization.yaml": "resources: [made.yaml]"}, kustomize.Options{Bases: []string{"../base"}}, "1000000"},
		"base with the options": {map[string]string{"app/kustomization.yaml": "resources: [../base]", "base/made.yaml.t": dataTemplate(`"{{ .size }}"`), "base/kustomization.yaml": "resources: [made.yaml]"}, kustomize.Options{Bases: []string{"../base"}, TemplateSuffix: ".t"}, "1000000"},
		"included kustomization has no options": {map[string]string{"app/.component-config.yaml": "includedKustomizations: [../base]", "app/kustomization.yaml": "resources: [../base]",
			"base/made.yaml.tpl": dataTemplate(`"{{ .size }} {{ .own }}"`), "base/kustomization.yaml": "resources: [made.yaml]", "base/.component-config.yaml": "values: {own: 1}"},
			kustomize.Options{Bases: []string{"../base"}, TemplateSuffix: ".t"}, "1000000 1"},
		"all files are templates": {map[string]string{"app/.component-config.yaml": "templateSuffix: ''",
			"app/made.yaml": dataTemplate(`"{{ .size }}"`)}, kustomize.Options{}, "1000000"},
		"templated kustomization": {map[string]string{"app/kustomization.yaml.tpl": "resources:\n{{- range .list }}\n- {{ . }}.yaml\n{{- end }}", "app/x.yaml": dataTemplate("plain"), "app/y.yaml": "no"}, kustomize.Options{}, "plain"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := valueOf(contextOf(t), t, test.files, test.options)
			if err != nil || got != test.want {
				t.Errorf("the value is %q (%v), want %q", got, err, test.want)
			}
		})
	}
}

// TestTemplateErrors: an error names the template, and has no secrets.
func TestTemplateErrors(t *testing.T) {
	for name, test := range map[string]struct{ template, want string }{
		"malformed":              {`{{ .a`, "made.yaml"},
		"missing file":           {`{{ readFile "gone" }}`, `there is no file "gone"`},
		"file outside":           {`{{ readFile "../outside" }}`, `there is no file "../outside"`},
		"file far outside":       {`{{ readFile "../../../etc/passwd" }}`, "is no relative path"},
		"absolute file":          {`{{ readFile "/etc/passwd" }}`, "is no relative path"},
		"malformed pattern":      {`{{ listFiles "[" }}`, "the pattern is malformed"},
		"required":               {`{{ required "a size is needed" .missing }}`, "a size is needed"},
		"loop without end":       {`{{ range until 1000000 }}{{ range until 1000000 }}{{ end }}{{ end }}`, "limit of a template"},
		"recursion without end":  {`{{ define "r" }}{{ include "r" . }}{{ end }}{{ include "r" . }}`, "folder app: "},
		"allocation without end": {`{{ repeat 1000000000 "x" }}`, "limit of a template"},
		"environment":            {`{{ env "PATH" }}`, "env"},
		"remote base, computed":  {`x`, "remote files and bases are not supported"},
	} {
		t.Run(name, func(t *testing.T) {
			limits := gotemplate.Limits{Size: 1 << 20}
			if name == "loop without end" {
				limits.Time = 100 * time.Millisecond
			}
			_, err := valueOf(contextOf(t), t, map[string]string{
				"app/kustomization.yaml.tpl": "resources: ['{{ if not .nested.b }}made.yaml{{ end }}'{{ if eq (readFile \"made.yaml.tpl\" | trim) \"x\" }}, '{{ printf \"%s://example.test\" \"https\" }}'{{ end }}]",
				"app/made.yaml.tpl":          test.template, "outside": "hunter2",
			}, kustomize.Options{Limits: limits})
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error is %v, want %q in it and no secret", err, test.want)
			}
		})
	}
}

// TestInputs: the identity changes with what the last build depended on, and only then.
func TestInputs(t *testing.T) {
	inputs := func(t *testing.T, g *kustomize.Generator, ctx context.Context) string {
		t.Helper()
		identity, err := g.Inputs(ctx, "target", "app")
		must(t, err)
		return identity
	}
	make := func(t *testing.T, template string) *kustomize.Generator {
		t.Helper()
		g, err := kustomize.NewGenerator(inMemory(map[string]string{"made.yaml.tpl": dataTemplate(template)}), "", kustomize.Options{})
		must(t, err)
		return g
	}
	build := func(t *testing.T, g *kustomize.Generator, ctx context.Context) {
		t.Helper()
		_, err := g.Generate(ctx, "target", "app", generator.UnstructurableMap{})
		must(t, err)
	}

	t.Run("plain", func(t *testing.T) {
		if got := inputs(t, make(t, "a"), context.Background()); got != "" {
			t.Errorf("the inputs are %q, want none", got)
		}
	})
	t.Run("values only", func(t *testing.T) {
		if got := inputs(t, make(t, "'{{ .a }}'"), context.Background()); got != "" {
			t.Errorf("the inputs are %q, want none", got)
		}
	})
	t.Run("lookup", func(t *testing.T) {
		ctx := contextOf(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "target", Name: "access"}})
		g := make(t, `'{{ lookup "v1" "Secret" "target" "access" | toJson | len }}'`)
		unknown := inputs(t, g, ctx)
		if again := inputs(t, g, ctx); again == unknown {
			t.Errorf("the identity stays %q before the first build, want another", again)
		}
		build(t, g, ctx)
		first := inputs(t, g, ctx)
		if again := inputs(t, g, ctx); again != first || first == unknown {
			t.Errorf("the identity is %q and then %q, want it the same and another than before, %q", first, again,
				unknown)
		}
		c, err := generator.ClientFromContext(ctx)
		must(t, err)
		must(t, c.Update(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "target", Name: "access"}, Data: map[string][]byte{"a": []byte("hunter2")}}))
		if again := inputs(t, g, ctx); again == first {
			t.Errorf("the identity is %q after a change of the Secret, want another", again)
		}
	})
	t.Run("version", func(t *testing.T) {
		g := make(t, `'{{ kubernetesVersion.Minor }}'`)
		first := inputs(t, g, contextOf(t))
		newer := served().(*fake.FakeDiscovery)
		newer.FakedServerVersion.Minor = "37"
		second := inputs(t, g, contextOf(t).WithDiscovery(newer))
		if first == "" || first == second {
			t.Errorf("the identity is %q and then %q, want some and then another", first, second)
		}
	})
	t.Run("component", func(t *testing.T) {
		g := make(t, `'{{ component.Labels.size }}'`)
		first := inputs(t, g, contextOf(t))
		second := inputs(t, g, contextOf(t).WithComponent(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"size": "small"}}}))
		if first == "" || first == second {
			t.Errorf("the identity is %q and then %q, want some and then another", first, second)
		}
	})
}

// TestParametersStay: a build does not change the parameters of the caller.
func TestParametersStay(t *testing.T) {
	g, err := kustomize.NewGenerator(inMemory(map[string]string{"made.yaml.tpl": dataTemplate(`'{{ $_ := set .a "b" 2 }}{{ .a.b }}'`)}), "", kustomize.Options{})
	must(t, err)
	parameters := generator.UnstructurableMap{"a": map[string]any{"b": int64(1)}}
	_, err = g.Generate(contextOf(t), "", "", parameters)
	must(t, err)
	if diff := cmp.Diff(generator.UnstructurableMap{"a": map[string]any{"b": int64(1)}}, parameters); diff != "" {
		t.Errorf("the parameters were changed, want them as they were (-want +got):\n%s", diff)
	}
}
