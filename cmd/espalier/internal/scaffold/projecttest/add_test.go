package projecttest

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/command"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
)

// existing is a project that has one version of its API already, in the layout of Kubebuilder.
var existing = map[string]string{
	"PROJECT": `domain: example.com
layout: [go.kubebuilder.io/v4]
projectName: shop
repo: example.com/shop
resources:
- {group: shop, version: v1, kind: Shop, domain: example.com, path: example.com/shop/api/v1}
version: "3"
`,
	"go.mod": "module example.com/shop\n\ngo 1.26.0\n",
	"api/v1/groupversion_info.go": `// Package v1 is the API.
//
// +kubebuilder:object:generate=true
// +groupName=shop.example.com
package v1

import "k8s.io/apimachinery/pkg/runtime/schema"

var GroupVersion = schema.GroupVersion{Group: "shop.example.com", Version: "v1"}
`,
	"cmd/main.go": `package main

import (
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
)

var (
	scheme   = runtime.NewScheme()
	setupLog = ctrl.Log.WithName("setup")
)

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
}

func main() {
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{Scheme: scheme})
	if err != nil {
		os.Exit(1)
	}
	if err := mgr.Start(ctrl.SetupSignalHandler()); err != nil {
		setupLog.Error(err, "it has ended")
		os.Exit(1)
	}
}
`,
}

// writeExisting writes the project, and returns its folder.
func writeExisting(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range existing {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// add runs "espalier new --add" in a folder, and returns what it prints.
func add(t *testing.T, dir string, flags ...string) (string, error) {
	t.Helper()
	out := &bytes.Buffer{}
	c := command.New(out, out)
	c.SetArgs(append([]string{"new", dir, "--add", "--espalier-version=v0.1.0"}, flags...))
	err := c.ExecuteContext(t.Context())
	return out.String(), err
}

// section returns the lines of what the command prints below a title.
func section(t *testing.T, printed, title string) string {
	t.Helper()
	match := regexp.MustCompile(`(?ms)^` + title + `[^\n]*:\n\n?(.*?)(\n\n|\z)`).FindStringSubmatch(printed)
	if match == nil {
		t.Fatalf("there is no section %q in\n%s", title, printed)
	}
	return match[1] + "\n"
}

// TestAdd adds roots to a project, changes main.go as the command says, and builds and tests the project.
func TestAdd(t *testing.T) {
	controlplanetest.SkipIfShort(t)
	generator := strings.TrimSpace(run(t, repository, "go", "-C", "hack/tools", "tool", "-n", "controller-gen"))
	root, err := filepath.Abs(repository)
	if err != nil {
		t.Fatal(err)
	}
	for name, roots := range map[string][][]string{
		"tree in a version that is there": {{"--group=shop", "--version=v1", "--kind=Branch"}},
		"component in a new version": {{
			"--group=shop.example.com", "--kind=Branch", "--component=code", "--license=MIT",
		}},
		"trees with names of other things": {
			{"--group=3d-shop", "--kind=Type"}, {"--group=3d-shop", "--kind=Branch", "--plural=web-branches"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := writeExisting(t)
			before := maps.Clone(existing)
			if len(roots) > 1 {
				before["PROJECT"] += "multigroup: true\n"
				write(t, dir, "PROJECT", before["PROJECT"])
			}
			main, get := before["cmd/main.go"], ""
			for _, flags := range roots {
				flags = append(flags, "--replace="+root)
				printed, err := add(t, dir, flags...)
				if err != nil {
					t.Fatal(err)
				}
				for name, content := range before {
					if got := read(t, filepath.Join(dir, name)); got != content {
						t.Errorf("%s was changed:\n%s", name, got)
					}
				}
				for file := range strings.FieldsSeq(section(t, printed, "Added")) {
					if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
						t.Error(err)
					}
				}
				if _, err := add(t, dir, flags...); err != nil {
					t.Errorf("another run: %v", err)
				}
				main = withAddition(t, main, printed)
				get, _, _ = strings.Cut(section(t, printed, "Then run"), "\n")
			}
			write(t, dir, "cmd/main.go", main)
			run(t, dir, "sh", "-c", get)
			sums := read(t, filepath.Join(root, "go.sum"))
			write(t, dir, "go.sum", sums)
			run(t, dir, "go", "mod", "tidy")
			run(t, dir, generator, "object", "paths=./api/...")
			run(t, dir, generator, "crd", "rbac:roleName=manager", "paths=./...", "output:crd:dir=config/crd/bases")
			run(t, dir, "go", "vet", "./...")
			run(t, dir, "go", "test", "-vet=off", "-ldflags=-w", "./...")
			if files := run(t, dir, "gofmt", "-l", "api", "internal"); files != "" {
				t.Errorf("not formatted: %s", files)
			}
			role := read(t, filepath.Join(dir, "config/rbac/role.yaml"))
			if !strings.Contains(role, "- deployments\n") {
				t.Errorf("the role has no Deployments:\n%s", role)
			}
		})
	}
}

// withAddition returns main.go with the lines that the command prints, of which it may have some imports.
func withAddition(t *testing.T, main, printed string) string {
	t.Helper()
	imports := ""
	for line := range strings.Lines(section(t, printed, "Add to the imports")) {
		if !strings.Contains(main, line) {
			imports += line
		}
	}
	return strings.NewReplacer(
		"import (\n", "import (\n"+imports,
		"func init() {\n", "func init() {\n"+section(t, printed, "Add to its function init"),
		"	if err := mgr.Start", section(t, printed, "Add to its function main")+"	if err := mgr.Start",
	).Replace(main)
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestAddErrors(t *testing.T) {
	t.Parallel()
	dir := writeExisting(t)
	theirs := filepath.Join(dir, "internal/controller/tills/controller.go")
	if err := os.MkdirAll(filepath.Dir(theirs), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(theirs, []byte("package tills\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	many := writeExisting(t)
	write(t, many, "PROJECT", strings.Replace(existing["PROJECT"], "resources:", "multigroup: true\nresources:", 1))
	if err := os.Rename(filepath.Join(many, "api"), filepath.Join(many, "shop")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(many, "api"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(many, "shop"), filepath.Join(many, "api/shop")); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		dir   string
		flags []string
		want  string
	}{
		"no PROJECT":      {t.TempDir(), []string{"--group=shop", "--kind=Till"}, "PROJECT"},
		"a kind there":    {dir, []string{"--group=shop", "--version=v1", "--kind=Shop"}, "PROJECT has already"},
		"a file there":    {dir, []string{"--group=shop", "--kind=Till"}, "controller.go is there already"},
		"webhooks":        {dir, []string{"--group=shop", "--kind=Till", "--validating-webhook"}, "no webhooks"},
		"force":           {dir, []string{"--group=shop", "--kind=Till", "--force"}, "--force is not for --add"},
		"a Go keyword":    {dir, []string{"--group=shop", "--kind=Till", "--plural=range"}, `--plural is "range"`},
		"a name of Go":    {dir, []string{"--group=shop", "--kind=Till", "--plural=inter-nal"}, `--plural is "inter-nal"`},
		"another group":   {dir, []string{"--group=bank", "--kind=Till"}, "PROJECT has Shop in shop.example.com"},
		"a group there":   {many, []string{"--group=shop.test", "--version=v1", "--kind=Till"}, "is that of shop.example.com"},
		"no group":        {dir, []string{"--kind=Till"}, "--group is missing"},
		"an unknown kind": {dir, []string{"--group=shop", "--kind=till"}, `--kind is "till"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := add(t, tc.dir, tc.flags...)
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("want one line with %q, got %v", tc.want, err)
			}
			if _, err := os.Stat(filepath.Join(dir, "api/v1alpha1")); !os.IsNotExist(err) {
				t.Errorf("something was written: %v", err)
			}
		})
	}
}
