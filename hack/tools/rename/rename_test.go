package main

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestRenameSource(t *testing.T) {
	const path = `"github.com/espalier-dev/espalier/`
	for _, tc := range []struct {
		name, before, want string
		taken              []string
	}{
		{
			name: "packages in code and comments",
			before: "import (\n\t" + path + "component\"\n\t" + path + "components\"\n)\n\n" +
				"// A is a [components.Options] with a component.Generator.\n" +
				"var A = components.Options{Generator: component.NewGenerator(component.Default)}\n",
			want: "import (\n\t" + path + "component\"\n\t" + path + "generator\"\n)\n\n" +
				"// A is a [component.Options] with a generator.Generator.\n" +
				"var A = component.Options{Generator: generator.NewGenerator(generator.Default)}\n",
		},
		{
			name: "packages below others",
			before: "import (\n\t_ " + path + "generators/helm\"\n\t_ " + path + "components/bundles\"\n\t_ " +
				path + "componentry\"\n)\n",
			want: "import (\n\t_ " + path + "component/bundles\"\n\t_ " + path + "componentry\"\n\t_ " +
				path + "generator/helm\"\n)\n",
		},
		{
			name: "names of types, functions and fields",
			before: "import " + path + "mutation\"\n\nvar A = []mutation.Mutation[X]{{Mutate: nil}}\n" +
				"var B = mutation.Mutation[X]{Mutate: other{Mutate: 1}}\nvar C = map[string]mutation.Mutation[X]{\"\": {Mutate: nil}}\n",
			want: "import " + path + "edit\"\n\nvar A = []edit.Change[X]{{Edit: nil}}\n" +
				"var B = edit.Change[X]{Edit: other{Mutate: 1}}\nvar C = map[string]edit.Change[X]{\"\": {Edit: nil}}\n",
		},
		{
			name: "fields of the elements of a map with a name",
			before: "import " + path + "suspension\"\n\nvar A = suspension.Rules{kind: {AtRest: nil}}\n" +
				"var B = suspension.Rules{kind: suspension.Rule{AtRest: nil, Delete: true}}\n",
			want: "import " + path + "health\"\n\nvar A = health.Suspensions{kind: {Suspended: nil}}\n" +
				"var B = health.Suspensions{kind: health.Suspension{Suspended: nil, Delete: true}}\n",
		},
		{
			name: "two packages that are one now",
			before: "import (\n\t" + path + "edit\"\n\t" + path + "mutation\"\n)\n\n" +
				"var A = mutation.Apply(edit.Labels)\n",
			want: "import (\n\t" + path + "edit\"\n)\n\nvar A = edit.Apply(edit.Labels)\n",
		},
		{
			name:   "a local name stays",
			before: "import c " + path + "component\"\n\nvar A c.Generator\n",
			want:   "import c " + path + "generator\"\n\nvar A c.Generator\n",
		},
		{
			name:   "the new name is taken in the file",
			before: "import " + path + "component\"\n\nfunc a(generator component.Generator) { generator.Generate() }\n",
			want: "import component " + path + "generator\"\n\n" +
				"func a(generator component.Generator) { generator.Generate() }\n",
		},
		{
			name: "the new name is taken in the package", taken: []string{"gate"},
			before: "import " + path + "feature\"\n\nvar A feature.Gate = gate{}\n",
			want:   "import feature " + path + "feature/gate\"\n\nvar A feature.Gate = gate{}\n",
		},
		{
			name: "both names are taken",
			before: "import (\n\t" + path + "component\"\n\t" + path + "components\"\n)\n\n" +
				"func a(generator component.Generator) components.Options { return b(generator) }\n",
			want: "import (\n\t" + path + "component\"\n\tcomponentpkg " + path + "generator\"\n)\n\n" +
				"func a(generator componentpkg.Generator) component.Options { return b(generator) }\n",
		},
		{
			name:   "a variable that hides the package",
			before: "import " + path + "component\"\n\nfunc a() { component := component.New(); component.Name() }\n",
			want:   "import " + path + "generator\"\n\nfunc a() { component := generator.New(); component.Name() }\n",
		},
		{
			name:   "other modules",
			before: "import \"example.com/component\"\n\nvar A component.Generator // component.Generator\n",
			want:   "import \"example.com/component\"\n\nvar A component.Generator // component.Generator\n",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			taken := map[string]bool{}
			for _, name := range tc.taken {
				taken[name] = true
			}
			got, err := renameSource([]byte("package a\n\n"+tc.before), taken)
			if want := "package a\n\n" + tc.want; err != nil || string(got) != want {
				t.Errorf("got %v\n%s\nwant\n%s", err, got, want)
			}
		})
	}
}

func TestRenameModules(t *testing.T) {
	const path = "github.com/espalier-dev/espalier"
	before := "require " + path + " v1\nrequire " + path + "/generators/helm v1\nrequire example.com/generators/helm v1\n"
	want := "require " + path + " v1\nrequire " + path + "/generator/helm v1\nrequire example.com/generators/helm v1\n"
	if got := string(renameModules([]byte(before))); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestRenameFolder(t *testing.T) {
	root := t.TempDir()
	const old = "package a\n\nimport _ \"github.com/espalier-dev/espalier/components\"\n"
	for path, content := range map[string]string{
		"a/a.go": old, "b/broken.go": "package", "c/vendor/a.go": old, "d/.hidden/a.go": old, "e/text.md": old,
	} {
		path = filepath.Join(root, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	changed, err := renameFolder(root)
	if want := []string{filepath.Join(root, "a/a.go")}; !slices.Equal(changed, want) {
		t.Errorf("changed %v, want %v", changed, want)
	}
	if err == nil || !strings.Contains(err.Error(), filepath.Join("b", "broken.go")) {
		t.Errorf("got the error %v, want one that names b/broken.go", err)
	}
}

// before is the commit whose examples are renamed.
const before = "e876758d"

// TestExamplesOfTheCommitBefore renames the examples of the commit before the packages moved, as a user would, and
// compiles them and their tests with the packages of today.
func TestExamplesOfTheCommitBefore(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles the examples")
	}
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	requireBefore(t, root)
	archive := exec.Command("git", "-C", root, "archive", before, "examples/tenant", "examples/platform", "examples/shop")
	var said bytes.Buffer
	archive.Stderr = &said
	content, err := archive.Output()
	if err != nil {
		t.Fatalf("the files of the commit %s cannot be read: %v\n%s", before, err, &said)
	}
	folder := t.TempDir()
	extract := exec.Command("tar", "-x", "-C", folder)
	extract.Stdin = bytes.NewReader(content)
	if out, err := extract.CombinedOutput(); err != nil {
		t.Fatalf("the archive cannot be extracted: %v\n%s", err, out)
	}
	byHand := asUser(t, folder, root)
	if _, err := renameFolder(folder); err != nil {
		t.Fatal(err)
	}
	for _, path := range byHand {
		now, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, path), inUser(now), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	vet := exec.Command("go", "vet", "./...")
	vet.Dir = folder
	if out, err := vet.CombinedOutput(); err != nil {
		t.Errorf("the examples of %s do not compile after they were renamed: %v\n%s", before, err, out)
	}
}

// requireBefore skips the test in a checkout that does not have the commit before.
func requireBefore(t *testing.T, root string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(root, ".git")); errors.Is(err, os.ErrNotExist) {
		t.Skipf("it needs the commit %s, and this is no git repository", before)
	}
	if out, err := exec.Command("git", "-C", root, "rev-parse", "--git-dir").CombinedOutput(); err != nil {
		t.Fatalf("git cannot read the repository %s: %v\n%s", root, err, out)
	}
	if exec.Command("git", "-C", root, "cat-file", "-e", before+"^{commit}").Run() != nil {
		t.Skipf("it needs the commit %s, which this clone does not have: run git fetch --unshallow", before)
	}
}

// asUser makes the examples a module of a user. What a user has no access to is left out, and files that import a
// package that is gone, which docs/migration.md says. It returns the files that use package dependents, which people
// write anew: they are those of today.
func asUser(t *testing.T, folder, root string) (byHand []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch {
		case entry.IsDir() && slices.Contains([]string{"demo", "delivery", "behavior", "tutorial"}, entry.Name()):
			if err := os.RemoveAll(path); err != nil {
				return err
			}
			return filepath.SkipDir
		case filepath.Ext(path) != ".go":
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if bytes.Contains(source, []byte(module+"/testing/apiserver")) {
			return os.Remove(path)
		}
		if bytes.Contains(source, []byte(module+"/dependents")) {
			rel, err := filepath.Rel(folder, path)
			byHand = append(byHand, rel)
			return errors.Join(err, os.Remove(path))
		}
		return os.WriteFile(path, inUser(source), 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		if file == "go.mod" {
			content = bytes.Replace(content, []byte("module "+module), []byte("module "+user), 1)
			content = append(content, "\nrequire "+module+" v0.0.0\n\nreplace "+module+" => "+root+"\n"...)
		}
		if err := os.WriteFile(filepath.Join(folder, file), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return byHand
}

// user is the module of the examples.
const user = "example.com/user"

// inUser has a file import the examples from that module.
func inUser(source []byte) []byte {
	return bytes.ReplaceAll(source, []byte(module+"/examples"), []byte(user+"/examples"))
}

// docs/migration.md has a line for each move, with the names and fields that changed.
func TestMovesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/migration.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range moves {
		from := "\n| `" + m.from
		_, line, found := strings.Cut(string(page), from)
		line, _, _ = strings.Cut(line, "\n")
		if !found || !strings.Contains(line, "| `"+m.to) {
			t.Errorf("docs/migration.md has %q for %s, want %s", line, m.from, m.to)
		}
		renamed := slices.Collect(maps.Values(m.fields))
		for _, names := range append(renamed, m.names) {
			for before, now := range names {
				if !strings.Contains(line, "`"+before+"` is `"+now+"`") {
					t.Errorf("docs/migration.md has %q, want %s, which is now %s", line, before, now)
				}
			}
		}
	}
}
