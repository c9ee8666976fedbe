package gotemplate_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/generator/gotemplate"
)

func TestParameterTransformer(t *testing.T) {
	tests := map[string]struct {
		text       string
		parameters generator.Unstructurable
		want       map[string]any
		err        string
	}{
		"all": {
			text:       "name: {{ .Namespace }}-{{ .Name }}\nreplicas: {{ .replicas }}\nnone: {{ .none }}\nlist: {{ toJson .list }}",
			parameters: generator.UnstructurableMap{"replicas": 3, "list": []any{"a"}},
			want:       map[string]any{"name": "garden-shop", "replicas": int64(3), "none": nil, "list": []any{"a"}},
		},
		"its own names win": {
			text: "name: {{ .Name }}", parameters: generator.UnstructurableMap{"Name": "x"}, want: map[string]any{"name": "shop"},
		},
		"a large number":        {text: "a: 1234567890123", want: map[string]any{"a": int64(1234567890123)}},
		"nothing":               {text: "", want: map[string]any{}},
		"a comment":             {text: "# {{ .Name }}", want: map[string]any{}},
		"no parameters":         {text: "a: {{ .a }}", parameters: generator.UnstructurableMap(nil), want: map[string]any{"a": nil}},
		"changes what it gets":  {text: `{{ $_ := set .m "a" 2 }}{{ $_ := set . "b" 1 }}a: b`, parameters: generator.UnstructurableMap{"m": map[string]any{"a": 1}}, want: map[string]any{"a": "b"}},
		"a list":                {text: "- a", err: "the output of folder/file.yaml is not a map"},
		"a text":                {text: "a", err: "the output of folder/file.yaml is not a map"},
		"not YAML":              {text: "a: b: c", err: "the output of folder/file.yaml: it is not valid YAML"},
		"a loop":                {text: "{{ range 1000000000000 }}text{{ end }}", err: "limit of a template: size: template \"folder/file.yaml\""},
		"fails":                 {text: "\n{{ fail \"no\" }}", err: "template: folder/file.yaml:2:"},
		"looks up":              {text: `{{ lookup "v1" "Secret" "a" "b" }}`, err: "client not found in context"},
		"parameters that panic": {text: "a: b", parameters: panics{}, err: "parameters cannot be read: ToUnstructured panicked"},
		"no map":                {text: "a: {{ .Name }}", parameters: none{}, want: map[string]any{"a": "shop"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			folder := fstest.MapFS{"folder/file.yaml": {Data: []byte(tc.text)}}
			transformer, err := gotemplate.NewParameterTransformer(folder, "folder/file.yaml", gotemplate.Options{Limits: gotemplate.Limits{Size: 1 << 20}})
			if err != nil {
				t.Fatal(err)
			}
			if !generator.IsDeterministic(transformer) {
				t.Error("it is not deterministic, want it to be")
			}
			before := map[string]any{}
			given, isMap := tc.parameters.(generator.UnstructurableMap)
			if isMap {
				before = given.ToUnstructured()
			}
			got, err := transformer.TransformParameters("garden", "shop", tc.parameters)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("want error %q, got %v", tc.err, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.ToUnstructured()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(before, given.ToUnstructured()); isMap && diff != "" {
				t.Errorf("what it got changed: (-want +got)\n%s", diff)
			}
		})
	}
}

type panics struct{}

func (panics) ToUnstructured() map[string]any { panic("no map") }

type none struct{}

func (none) ToUnstructured() map[string]any { return nil }

func TestNewParameterTransformerErrors(t *testing.T) {
	disk := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(disk, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(disk, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := func(target, name string) {
		t.Helper()
		if err := os.Symlink(target, filepath.Join(disk, name)); err != nil {
			t.Fatal(err)
		}
	}
	write("outside.yaml", "outside: true")
	write("inside/data/real.yaml", "inside: true")
	write("inside/wrong.yaml", "\n{{ if }}")
	link("../outside.yaml", "inside/out.yaml")
	link(filepath.Join(disk, "outside.yaml"), "inside/absolute.yaml")
	link("..", "inside/up")
	link("data", "inside/in")
	link("in/real.yaml", "inside/linked.yaml")
	link("loop.yaml", "inside/loop.yaml")
	inside := filepath.Join(disk, "inside")
	root, err := os.OpenRoot(inside)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	for name, folder := range map[string]fs.FS{"DirFS": os.DirFS(inside), "Root": root.FS(), "disk": nil} {
		for path, ok := range map[string]bool{
			"data/real.yaml": true, "in/real.yaml": true, "linked.yaml": true, "./data/../data/real.yaml": true,
			"out.yaml": false, "absolute.yaml": false, "up/outside.yaml": false, "../outside.yaml": false, "loop.yaml": false,
			"none.yaml": false, "data": false, "": false, "wrong.yaml": false,
		} {
			if folder == nil {
				if path == "up/outside.yaml" || path == "../outside.yaml" {
					// The folder of the file is the limit.
					continue
				}
				path = filepath.Join(inside, path)
			}
			transformer, err := gotemplate.NewParameterTransformer(folder, path, gotemplate.Options{})
			if (err == nil) != ok {
				t.Errorf("%s, %s: the error is %v, want none: %t", name, path, err, ok)
			}
			if err != nil && strings.Contains(err.Error(), "outside: true") {
				t.Errorf("%s, %s: the error shows the content, want it hidden: %v", name, path, err)
			}
			if err == nil {
				if _, err := transformer.TransformParameters("a", "b", nil); err != nil {
					t.Errorf("%s, %s: got %v", name, path, err)
				}
			}
		}
	}
}

func TestZeroParameterTransformer(t *testing.T) {
	for _, transformer := range []*gotemplate.ParameterTransformer{nil, {}} {
		if _, err := transformer.TransformParameters("a", "b", nil); err == nil {
			t.Error("the error is nil, want one")
		}
	}
}

func FuzzParameterTransformer(f *testing.F) {
	for _, text := range []string{
		"a: {{ .a }}", "{{ toYaml . }}", "{{ range . }}- {{ . }}\n{{ end }}", "{{ tpl .a . }}", "a: &a [*a]", "a: &a [b]\nc: *a",
		"{{ define \"x\" }}{{ include \"x\" . }}{{ end }}{{ include \"x\" . }}", "{{ fromYaml .a | toJson }}",
		"{{ $_ := set . \"x\" . }}{{ . }}", "{{ merge . (dict \"a\" .) }}", "{{ .a | repeat 100000000 }}",
	} {
		f.Add(text, "text")
		f.Add(text, "{{ . }}")
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		for _, slow := range []string{"gen", "bcrypt", "htpasswd", "derive"} {
			if strings.Contains(text+value, slow) {
				return
			}
		}
		folder := fstest.MapFS{"file": {Data: []byte(text)}}
		limits := gotemplate.Limits{Time: 1e9, Size: 1 << 20}
		transformer, err := gotemplate.NewParameterTransformer(folder, "file", gotemplate.Options{Limits: limits})
		if err != nil {
			return
		}
		made, err := transformer.TransformParameters("a", "b", generator.UnstructurableMap{"a": value, "m": map[string]any{}})
		if err == nil && made == nil {
			t.Error("there are neither parameters nor an error, want one of them")
		}
	})
}
