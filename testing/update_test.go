package testing_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// newModule returns the directory of a module of its own with a copy of a directory. It has the dependencies of this
// module.
func newModule(t *testing.T, from string) string {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	definition, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	const module = "github.com/espalier-dev/espalier"
	text := regexp.MustCompile(`(?m)^module .*$`).ReplaceAllString(string(definition), "module example.com/shop")
	text += "\nrequire " + module + " v0.0.0\n\nreplace " + module + " => " + root + "\n"
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"go.mod": []byte(text), "go.sum": sums} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// goTool runs the go command in a directory.
func goTool(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
	output, err := command.CombinedOutput()
	return string(output), err
}

// The literals of all kinds of expectations compile, and rows that have them pass.
func TestUpdatedRowsPass(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a module twice")
	}
	dir := newModule(t, filepath.Join("testdata", "update"))
	if output, err := goTool(t, dir, "test", "-vet=off", "-ldflags=-s -w", ".", "-rtesting.update"); err != nil {
		t.Fatalf("rows are not updated: %v\n%s", err, output)
	}
	read := func(name string) string {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	inside, outside := read("shop_test.go"), read("outside_test.go")
	if output, err := goTool(t, dir, "test", "-ldflags=-s -w", ".", "-rtesting.update"); err != nil {
		t.Errorf("updated rows do not pass: %v\n%s\n%s\n%s", err, output, inside, outside)
	}
	if inside != read("shop_test.go") || outside != read("outside_test.go") {
		t.Error("an updated file is updated again")
	}
	flat := strings.Join(strings.Fields(inside+outside), " ")
	for _, want := range []string{
		// Options that were seen.
		`ExpectDeletes: []rtesting.DeleteRef{ { Kind: "ConfigMap",`,
		`Preconditions: &metav1.Preconditions{UID: new(types.UID("settings-uid")), ResourceVersion: new("999")}`,
		`PropagationPolicy: new(metav1.DeletionPropagation("Foreground"))`,
		`FieldOwner: "me", Force: new(true),`,
		`rtesting.WriteOptions{FieldOwner: "me", DryRun: new(true)}`,
		// Go types for what was sent without.
		`rtesting.Applied(&appsv1.Deployment{`,
		`EmptyDir: &core.EmptyDirVolumeSource{}`,
		// The package itself, and others.
		`Seen: &Visit{By: "ann"}`,
		`Seen: &shop.Visit{By: "bob"}`,
		// Times only where they are compared.
		`LastTransitionTime: metav1.Unix(1000, 0),`,
		// What was right stays.
		`ExpectCreates: []client.Object{ named("one"), &core.ConfigMap{`,
		`ExpectedResult: reconcilers.Result{RequeueAfter: 90 * time.Second, Priority: new(3)}`,
		`AdditionalConfigs: map[string]rtesting.ExpectConfig{"elsewhere": {Scheme: scheme, ExpectCreates:`,
	} {
		if !strings.Contains(flat, want) {
			t.Errorf("want %q in\n%s\n%s", want, inside, outside)
		}
	}
	if n := strings.Count(flat, "LastTransitionTime: metav1.Unix("); n != 1 {
		t.Errorf("want one transition time, got %d", n)
	}
}
