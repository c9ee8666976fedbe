package source_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/source"
	"github.com/espalier-dev/espalier/generator"
)

func write(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// namesOf loads sources, and returns the names of their objects, or the error.
func namesOf(t *testing.T, sources, values []string) (names []string, digest string, err error) {
	t.Helper()
	set, err := source.Load(sources, values, strings.NewReader("apiVersion: v1\nkind: A\nmetadata: {name: input}"))
	if err != nil {
		return nil, "", err
	}
	ctx := generator.NewContext(context.Background()).WithReconcilerName("a.example.com").WithComponentRevision(1)
	objects, err := set.Objects(ctx, "default", "shop")
	for _, object := range objects {
		names = append(names, object.GetName())
	}
	return names, set.Digest, err
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"chart/Chart.yaml":          "apiVersion: v2\nname: c\nversion: 1.0.0\n",
		"chart/templates/a.yaml":    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Values.name | default \"none\" }}}\n",
		"base/kustomization.yaml":   "resources: [a.yaml]\n",
		"base/a.yaml":               "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
		"middle/kustomization.yaml": "resources: [../base]\nnamePrefix: middle-\n",
		"top/Kustomization":         "resources: [../middle]\nnamePrefix: top-\n",
		"plain/b.yaml":              "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n",
		"one.yaml":                  "name: one\nother: {x: 1}\n",
		"two.yaml":                  "name: two\n",
		"null.yaml":                 "name: null\n",
		"bad.yaml":                  "a: 1\nb: [\n",
		"list.yaml":                 "[1]\n",
	})
	in := func(names ...string) (paths []string) {
		for _, name := range names {
			paths = append(paths, filepath.Join(dir, name))
		}
		return paths
	}
	for _, tc := range []struct {
		why             string
		sources, values []string
		want            []string
		wantErr         string
	}{
		{"a chart", in("chart"), nil, []string{"none"}, ""},
		{"the later values win", in("chart"), in("one.yaml", "two.yaml"), []string{"two"}, ""},
		{"a null removes a value", in("chart"), in("one.yaml", "null.yaml"), []string{"none"}, ""},
		{"a kustomization with the bases of its base", in("top"), nil, []string{"top-middle-a"}, ""},
		{"a folder, and the standard input", append(in("plain"), "-"), nil, []string{"b", "input"}, ""},
		{"values that nothing takes", in("plain"), in("one.yaml"), nil, "no source that takes them"},
		{"values that are broken", in("chart"), in("bad.yaml"), nil, "bad.yaml:"},
		{"values that are no map", in("chart"), in("list.yaml"), nil, "list.yaml:1: it is not a map of values"},
		{"no such file", in("gone"), nil, nil, "gone: no such file or directory"},
	} {
		got, _, err := namesOf(t, tc.sources, tc.values)
		if tc.wantErr != "" {
			if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("%s: the error is %v, want %q in it", tc.why, err, tc.wantErr)
			}
			continue
		}
		if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
			t.Errorf("%s: the names differ (-want +got), error %v:\n%s", tc.why, err, diff)
		}
	}
}

// The digest says whether what is applied is the same.
func TestDigest(t *testing.T) {
	dir := t.TempDir()
	chart := map[string]string{"Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n"}
	write(t, filepath.Join(dir, "chart"), chart)
	write(t, dir, map[string]string{"one.yaml": "a: 1", "two.yaml": "a: 2", "m/a.yaml": "apiVersion: v1\nkind: A\nmetadata: {name: a}"})
	digest := func(source string, values ...string) string {
		for i := range values {
			values[i] = filepath.Join(dir, values[i])
		}
		_, digest, err := namesOf(t, []string{filepath.Join(dir, source)}, values)
		if err != nil {
			t.Fatal(err)
		}
		return digest
	}
	first, same, values := digest("chart", "one.yaml"), digest("chart", "one.yaml"), digest("chart", "two.yaml")
	plain := digest("m")
	write(t, dir, map[string]string{"m/a.yaml": "apiVersion: v1\nkind: A\nmetadata: {name: b}"})
	if changed := digest("m"); first != same || first == values || plain == changed {
		t.Errorf("the digests are %q again %q, with other values %q, of manifests %q and others %q: "+
			"want the first two to be the same, and the others to differ", first, same, values, plain, changed)
	}
}
