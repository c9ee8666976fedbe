package migrate_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/migrate"
)

// planFor returns the plan for a fixture, in a copy.
func planFor(t *testing.T, name string) *migrate.Plan {
	t.Helper()
	folder := filepath.Join(t.TempDir(), name)
	if err := copyFixture(name, folder); err != nil {
		t.Fatal(err)
	}
	root, err := checkout()
	if err != nil {
		t.Fatal(err)
	}
	plan, err := migrate.NewPlan(t.Context(), migrate.Options{Folder: folder, Replace: root})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// The file has a line for each finding in testdata/findings. It is written with -update.
func TestFindings(t *testing.T) {
	needsCompiler(t)
	plan := planFor(t, "findings")
	got, found := "", map[string]bool{}
	for _, f := range plan.Findings {
		got += fmt.Sprintf("%s: %s\n", f.Position, f.What)
		found[f.What] = true
		if strings.HasPrefix(f.File, "right/") {
			t.Errorf("%s: %s is found in right code", f.Position, f.What)
		}
	}
	for _, what := range migrate.Findable(peer) {
		if !found[what] {
			t.Errorf("testdata/findings has no code with %q, or it is not found", what)
		}
	}
	golden := filepath.Join("testdata", "findings.txt")
	if migrate.Updates() {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the findings differ from %s:\n%s", golden, difference(string(want), got))
	}
}

// difference lists the lines that only one of two texts has.
func difference(want, got string) string {
	wanted, seen := strings.Split(want, "\n"), strings.Split(got, "\n")
	var lines []string
	for _, line := range wanted {
		if !slices.Contains(seen, line) {
			lines = append(lines, "- "+line)
		}
	}
	for _, line := range seen {
		if !slices.Contains(wanted, line) {
			lines = append(lines, "+ "+line)
		}
	}
	return strings.Join(lines, "\n")
}

// The tests of internal/surface use each name of the peer. As files of the peer they move to what they are.
func TestTheWholeSurfaceMoves(t *testing.T) {
	needsCompiler(t)
	root, err := checkout()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	files, err := filepath.Glob(filepath.Join(root, "internal/surface/*_test.go"))
	if err != nil || len(files) < 3 {
		t.Fatalf("found the files %q, %v; want three or more", files, err)
	}
	want := map[string]string{}
	for _, path := range files {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want[filepath.Base(path)] = string(content)
		theirs := strings.ReplaceAll(string(content), module, peer)
		if err := os.WriteFile(filepath.Join(folder, filepath.Base(path)), []byte(theirs), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeModuleFiles(folder, "example.com/surface"); err != nil {
		t.Fatal(err)
	}
	o := migrate.Options{Folder: folder, Replace: root}
	plan, err := migrate.NewPlan(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := plan.Write(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if len(plan.Broken)+len(plan.Remaining) > 0 {
		t.Errorf("left %v and broke %v, want nothing", plan.Remaining, plan.Broken)
	}
	for name, content := range want {
		got, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil || string(got) != content {
			t.Errorf("%s differs from internal/surface, %v:\n%s", name, err, difference(content, string(got)))
		}
	}
}
