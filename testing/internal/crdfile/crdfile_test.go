package crdfile_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/testing/internal/crdfile"
)

const definition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %s
spec:
  group: example.com
`

func named(name string) string { return strings.Replace(definition, "%s", name, 1) }

// write writes files, whose names may have a folder, and returns the folder that they are in.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestRead(t *testing.T) {
	dir := write(t, map[string]string{
		"b.yaml":       named("bs.example.com") + "---\nkind: Other\nunknown: 1\n---\n" + named("cs.example.com"),
		"a.yml":        named("as.example.com"),
		"empty.yaml":   "",
		"README.md":    "no: yaml: at: all",
		"below/d.yaml": named("ds.example.com"),
	})
	found, err := crdfile.Read([]string{dir, filepath.Join(dir, "missing"), filepath.Join(dir, "below", "d.yaml")}, true)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range found {
		got = append(got, d.Name+" in "+strings.TrimPrefix(d.Source, dir+"/"))
	}
	want := []string{
		"as.example.com in a.yml, document 1", "bs.example.com in b.yaml, document 1",
		"cs.example.com in b.yaml, document 3", "ds.example.com in below/d.yaml, document 1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("read %q, want %q", got, want)
	}
}

func TestReadErrors(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"a field that there is not": {
			"kind: Other\n---\n" + named("a") + "  versoins: []\n", `file.yaml, document 2: .*unknown field "spec.versoins"`,
		},
		"a field of another type": {
			named("a") + "  scope: {}\n", `file.yaml, document 1: .*spec.scope`,
		},
		"no YAML":         {"a: [", "file.yaml, document 1: .*line 1"},
		"another version": {strings.Replace(named("a"), "/v1", "/v1beta1", 1), `document 1: apiVersion .*v1beta1.* want`},
		"no name":         {named(""), "document 1: metadata.name of the CustomResourceDefinition is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := write(t, map[string]string{"file.yaml": tc.text})
			_, err := crdfile.Read([]string{dir}, false)
			for _, part := range strings.Split(tc.want, ".*") {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("the error is %v, want %q in it", err, part)
				}
			}
		})
	}
	if _, err := crdfile.Read([]string{"missing"}, false); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("the error of a path that does not exist is %v", err)
	}
}
