package kustomize_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/espalier-dev/espalier/generator/kustomize"
)

// inMemory makes a file system from the contents of files.
func inMemory(contents map[string]string) fstest.MapFS {
	files := fstest.MapFS{}
	for name, content := range contents {
		files[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return files
}

const (
	configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\n"
	secret    = "apiVersion: v1\nkind: Secret\nmetadata: {name: access}\nstringData: {password: hunter2}\n"
)

// tryBuild makes a generator for the folder app, with the base ../base, and generates.
func tryBuild(contents map[string]string) error {
	generator, err := kustomize.NewGenerator(inMemory(contents), "app", kustomize.Options{})
	if err != nil {
		return err
	}
	_, err = generate(generator)
	return err
}

// TestAttacks: what each attack is stopped by. A server and programs that are called git and helm notice whether any of
// them got through.
func TestAttacks(t *testing.T) {
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		_, _ = w.Write([]byte(configMap))
	}))
	defer server.Close()
	called := fakePrograms(t, "git", "helm")

	const remote, outside, absolute = "remote files and bases are not supported", "is outside the folder", "the path is absolute"
	overHTTP := server.URL + "/x.yaml"
	for _, test := range []struct {
		name          string
		kustomization string
		files         map[string]string
		want          string
	}{
		{"base by https", "resources: [https://github.com/org/repo]", nil, remote},
		{"base by http, in capitals", "resources: ['" + strings.ToUpper(server.URL) + "/x.yaml']", nil, remote},
		{"file by http", "resources: ['" + overHTTP + "']", nil, remote},
		{"base by git::", "resources: ['git::https://example.test/org/repo']", nil, remote},
		{"base by GIT:: twice", "resources: ['GIT::git::file:///etc']", nil, remote},
		{"base by ssh", "resources: ['ssh://git@example.test/org/repo']", nil, remote},
		{"base by scp", "resources: ['git@example.test:org/repo.git']", nil, remote},
		{"base by host", "resources: [github.com/org/repo]", nil, remote},
		{"base by host, in capitals", "resources: ['GitHub.com:org/repo']", nil, remote},
		{"base by host and ref", "resources: ['example.test/org/repo?ref=main']", nil, remote},
		{"base by file", "resources: ['file:///etc']", nil, remote},
		{"folder that looks like a host", "resources: [github.com/org/repo]",
			map[string]string{"github.com/org/repo/kustomization.yaml": "resources: [a.yaml]", "github.com/org/repo/a.yaml": configMap}, remote},
		{"field bases", "bases: ['" + overHTTP + "']", nil, remote},
		{"component", "components: ['" + overHTTP + "']", nil, remote},
		{"crd", "crds: ['" + overHTTP + "']", nil, remote},
		{"configuration", "configurations: ['" + overHTTP + "']", nil, remote},
		{"openapi", "openapi: {path: '" + overHTTP + "'}", nil, remote},
		{"generator", "generators: ['" + overHTTP + "']", nil, remote},
		{"transformer", "transformers: ['" + overHTTP + "']", nil, remote},
		{"validator", "validators: ['" + overHTTP + "']", nil, remote},
		{"patch", "patches: [{path: '" + overHTTP + "'}]", nil, remote},
		{"JSON patch", "patchesJson6902: [{path: '" + overHTTP + "', target: {kind: ConfigMap}}]", nil, remote},
		{"strategic patch", "patchesStrategicMerge: ['" + overHTTP + "']", nil, remote},
		{"replacement", "replacements: [{path: '" + overHTTP + "'}]", nil, remote},
		{"file of a ConfigMap", "configMapGenerator: [{name: a, files: ['" + overHTTP + "']}]", nil, remote},
		{"file of a ConfigMap, with key", "configMapGenerator: [{name: a, files: ['k=" + overHTTP + "']}]", nil, remote},
		{"envs of a Secret", "secretGenerator: [{name: a, envs: ['" + overHTTP + "']}]", nil, remote},
		{"env of a Secret", "secretGenerator: [{name: a, env: '" + overHTTP + "'}]", nil, remote},
		{"field in capitals", "RESOURCES: ['" + overHTTP + "']", nil, remote},
		{"base of a base", "resources: [below]", map[string]string{"below/kustomization.yml": "resources: ['" + overHTTP + "']"}, remote},
		{"plugin in a file", "transformers: [t.yaml]", map[string]string{
			"t.yaml": "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: p}\npath: '" + overHTTP + "'\n"}, remote},
		{"plugin with an escaped version and a field in capitals", "transformers: [t.yaml]", map[string]string{
			"t.yaml": "apiVersion: \"\\x62uiltin\"\nkind: PatchTransformer\nmetadata: {name: p}\nPATH: '" + overHTTP + "'\n"}, remote},
		{"plugin with an alias", "transformers: [t.yaml]", map[string]string{
			"t.yaml": "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: p, annotations: {a: &a '" + overHTTP + "'}}\npath: *a\n"}, remote},
		{"plugin in a list", "generators: [t.yaml]", map[string]string{
			"t.yaml": "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: builtin, kind: ConfigMapGenerator, metadata: {name: p}, name: p, files: ['" + overHTTP + "']}\n"}, remote},
		{"plugin inline", "transformers: ['{apiVersion: builtin, kind: ReplacementTransformer, metadata: {name: p}, replacements: [{path: \"" + overHTTP + "\"}]}']", nil, remote},
		{"plugin whose path is computed", "transformers: [plugins]", map[string]string{
			"plugins/kustomization.yaml": "resources: [t.yaml]\npatches: [{target: {kind: PatchTransformer}, patch: '[{op: replace, path: /path, value: x}]'}]\n",
			"plugins/t.yaml":             "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: p}\npath: a\n"}, "may only have resources"},
		{"plugin whose path is computed, deeper", "transformers: [plugins]", map[string]string{
			"plugins/kustomization.yaml":       "resources: [below]\n",
			"plugins/below/kustomization.yaml": "resources: [t.yaml]\nnamePrefix: a\n",
			"plugins/below/t.yaml":             "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: p}\npath: a\n"}, "may only have resources"},
		{"program as a plugin", "transformers: [t.yaml]", map[string]string{
			"t.yaml": "apiVersion: example.test/v1\nkind: Evil\nmetadata: {name: p, annotations: {config.kubernetes.io/function: \"exec: {path: /bin/git}\"}}\n"}, "external plugins disabled"},
		{"charts", "helmCharts: [{name: a, repo: 'https://example.test'}]", nil, "charts are not supported"},
		{"globals of charts", "helmGlobals: {chartHome: x}", nil, "charts are not supported"},
		{"old charts", "helmChartInflationGenerator: [{chartName: a}]", nil, "charts are not supported"},
		{"chart as a plugin", "generators: [t.yaml]", map[string]string{
			"t.yaml": "apiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: a}\nname: a\n"}, "charts are not supported"},
		{"file outside", "resources: [../outside.yaml]", nil, outside},
		{"base outside", "resources: [../base]", nil, outside},
		{"path traversal", "configMapGenerator: [{name: a, files: [../../../etc/passwd]}]", nil, outside},
		{"path traversal inside", "patches: [{path: below/../../outside.yaml}]", nil, outside},
		{"absolute path", "configMapGenerator: [{name: a, files: [k=/etc/passwd]}]", nil, absolute},
		{"aliases without end", "resources: [a.yaml]", map[string]string{"a.yaml": bomb()}, "is too large: aliases"},
		{"aliases without end in a patch", "resources: [x.yaml]\npatches:\n- target: {kind: ConfigMap}\n  patch: |\n    " + strings.ReplaceAll(bomb(), "\n", "\n    "), nil, "is too large: aliases"},
		{"alias of itself", "resources: [a.yaml]", map[string]string{"a.yaml": configMap + "data: &a {x: *a}\n"}, "an alias contains itself"},
	} {
		t.Run(test.name, func(t *testing.T) {
			contents := map[string]string{
				"app/kustomization.yaml": test.kustomization, "app/x.yaml": configMap, "outside.yaml": configMap,
				"base/kustomization.yaml": "resources: [y.yaml]", "base/y.yaml": configMap,
			}
			for name, content := range test.files {
				contents["app/"+name] = content
			}
			err := tryBuild(contents)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want it to contain %q", err, test.want)
			}
		})
	}
	if requests.Load() > 0 {
		t.Errorf("there were %d requests, want none", requests.Load())
	}
	if name := called(); name != "" {
		t.Errorf("%s was called, want nothing called", name)
	}
}

// bomb is a document that has a billion nodes once its aliases are replaced.
func bomb() string {
	text := configMap + "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for _, pair := range []string{"10", "21", "32", "43", "54", "65", "76", "87"} {
		item := "*a" + pair[1:] + ", "
		text += "a" + pair[:1] + ": &a" + pair[:1] + " [" + strings.Repeat(item, 9) + item[:3] + "]\n"
	}
	return text
}

// fakePrograms puts programs in the path that write a file. The function says which one was called.
func fakePrograms(t *testing.T, names ...string) func() string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		script := "#!/bin/sh\necho called >" + dir + "/" + name + ".called\nexit 1\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return func() string {
		for _, name := range names {
			if _, err := os.Stat(filepath.Join(dir, name+".called")); err == nil {
				return name
			}
		}
		return ""
	}
}

// TestKrustyWouldCallGit: the test of attacks could notice a call of git, because kustomize itself makes one.
func TestKrustyWouldCallGit(t *testing.T) {
	called := fakePrograms(t, "git")
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/kustomization.yaml", []byte("resources: [github.com/org/repo]"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := krustyError(dir); err == nil || called() != "git" {
		t.Errorf("the error is %v and %q was called, want an error and git", err, called())
	}
}

// TestSymbolicLinks: what leads out of the folder is an error that names it, on the disk and in a file system.
func TestSymbolicLinks(t *testing.T) {
	for name, test := range map[string]struct {
		links map[string]string
		want  string
	}{
		"inside":               {map[string]string{"app/link.yaml": "real/x.yaml"}, ""},
		"volume of ConfigMap":  {map[string]string{"app/..data": "real", "app/link.yaml": "..data/x.yaml"}, ""},
		"up and inside":        {map[string]string{"app/real/link.yaml": "../a.yaml"}, ""},
		"relative, outside":    {map[string]string{"app/link.yaml": "../outside.yaml"}, "app/link.yaml"},
		"absolute":             {map[string]string{"app/link.yaml": "/etc/passwd"}, "link.yaml"},
		"through a folder":     {map[string]string{"app/..data": "..", "app/link.yaml": "..data/outside.yaml"}, "..data: the symbolic link leaves"},
		"loop":                 {map[string]string{"app/link.yaml": "other", "app/other": "link.yaml"}, "link"},
		"folder":               {map[string]string{"app/folder": "real"}, "app/folder: it is a symbolic link to a folder"},
		"missing":              {map[string]string{"app/link.yaml": "gone.yaml"}, "gone.yaml"},
		"folder, outside":      {map[string]string{"app/folder": "../base"}, "folder"},
		"hidden link, outside": {map[string]string{"app/.hidden": "../outside.yaml"}, ".hidden"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, content := range map[string]string{
				"app/a.yaml": configMap, "app/real/x.yaml": secret, "outside.yaml": configMap, "base/y.yaml": configMap,
			} {
				must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700))
				must(t, os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600))
			}
			for link, target := range test.links {
				must(t, os.Symlink(target, filepath.Join(dir, link)))
			}
			_, disk := kustomize.NewGenerator(nil, filepath.Join(dir, "app"), kustomize.Options{})
			_, files := kustomize.NewGenerator(os.DirFS(dir), "app", kustomize.Options{})
			for what, err := range map[string]error{"disk": disk, "file system": files} {
				want := test.want
				if what == "disk" {
					want = strings.TrimPrefix(want, "app/")
				}
				if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("%s: the error is %v, want %q in it, or none if that is empty", what, err, want)
				}
			}
		})
	}
}

// TestSymbolicLinkToTheFolder: the path of the folder must not be a link in a file system, which could lead anywhere.
func TestSymbolicLinkToTheFolder(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Symlink("/etc", dir+"/app"))
	if _, err := kustomize.NewGenerator(os.DirFS(dir), "app", kustomize.Options{}); err == nil ||
		!strings.Contains(err.Error(), "app: it is a symbolic link") {
		t.Errorf("the error is %v, want that it is a symbolic link", err)
	}
	for _, path := range []string{"../x", "..", "a/../../b", "missing"} {
		if _, err := kustomize.NewGenerator(os.DirFS(dir), path, kustomize.Options{}); err == nil {
			t.Errorf("the error of %s is nil, want one", path)
		}
	}
}

// TestSecretsInErrors: an error of kustomize says what is wrong without what is secret.
func TestSecretsInErrors(t *testing.T) {
	for name, test := range map[string]struct{ kustomization, want string }{
		"literals":               {"secretGenerator: [{name: a, literals: [password=hunter2, hunter2]}]", "literal"},
		"literals, invalid name": {"secretGenerator: [{name: '', literals: [password=hunter2]}]", "must have a name"},
		"env file":               {"secretGenerator: [{name: a, envs: [env]}]", "env"},
		"twice the same": {"secretGenerator: [{name: a, literals: [p=hunter2]}, {name: a, literals: [p=hunter2]}]",
			"exists"},
		"unknown type": {"secretGenerator: [{name: a, type: {x: 1}, literals: [p=hunter2]}]", ""},
		"patch":        {"resources: [s.yaml]\npatches: [{patch: \"kind: Secret\\nstringData: hunter2\"}]", "patch"},
		"patch that is neither": {"resources: [s.yaml]\npatches:\n- target: {kind: Secret}\n  patch: |\n    password: hunter2\n    x: [",
			"patch"},
		"JSON patch": {"resources: [s.yaml]\npatches:\n- target: {kind: Secret}\n  patch: |\n    - {op: test, path: /stringData/password, value: hunter2x}",
			"test"},
		"conflict of namespaces": {"namespace: elsewhere\nresources: [s.yaml, t.yaml]", "conflict"},
		"malformed":              {"resources: [malformed.yaml]", "malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			other := strings.Replace(secret, "name: access", "name: access, namespace: other", 1)
			err := tryBuild(map[string]string{
				"app/kustomization.yaml": test.kustomization, "app/s.yaml": secret, "app/t.yaml": other,
				"app/env": "1x=hunter2\nhunter2\xff=1\n", "app/malformed.yaml": secret + " x: : hunter2\n\t- a",
			})
			if err == nil {
				t.Fatal("the error is nil, want one")
			}
			if text := err.Error(); strings.Contains(text, "hunter2") || strings.Contains(text, "aHVudGVyMg") || !strings.Contains(text, test.want) {
				t.Errorf("the error is %v, want %q in it and no secret", err, test.want)
			}
		})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
