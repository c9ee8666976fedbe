package testing_test

import (
	"bytes"
	"errors"
	"fmt"
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

// printed returns what a command prints. The error has what it says on its standard error output: there the go command
// tells of downloads, too, and a test binary of a missing folder for coverage.
func printed(command *exec.Cmd) (string, error) {
	said := &bytes.Buffer{}
	command.Stderr = said
	output, err := command.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", command, err, said)
	}
	return string(output), err
}

// goTool runs the go command in a directory.
func goTool(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod", "GOPROXY=off", "GOWORK=off")
	return printed(command)
}

// pageFile is a Go file of docs/testing.md, and the texts that it prints. Pieces of rows are not part of the file.
type pageFile struct {
	content     string
	rows, texts []string
}

// pageFiles returns the files of the page. Each begins with its package clause.
func pageFiles(t *testing.T) (files []pageFile) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "docs", "testing.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range regexp.MustCompile("(?ms)^```(go|text)\n(.*?)^```$").FindAllStringSubmatch(string(page), -1) {
		if strings.HasPrefix(block[2], "package ") {
			files = append(files, pageFile{})
		}
		file := &files[len(files)-1]
		switch {
		case block[1] == "text":
			file.texts = append(file.texts, block[2])
		case strings.HasPrefix(block[2], "\t"):
			file.rows = append(file.rows, block[2])
		default:
			file.content += block[2] + "\n"
		}
	}
	return files
}

// lines returns a text with each line trimmed.
func lines(text string) string {
	trimmed := strings.Split(text, "\n")
	for i := range trimmed {
		trimmed[i] = strings.TrimSpace(trimmed[i])
	}
	return strings.Join(trimmed, "\n")
}

// The page about tests prints what it says, and its rows pass once they are updated.
func testPage(t *testing.T, dir string) {
	files := pageFiles(t)
	rows, faults := newPageTest(t, dir, "quota", files[0]), newPageTest(t, dir, "welcome", files[1])
	rows.fails(t, 2)
	faults.fails(t, 1)
	if output, err := rows.run(t, "-rtesting.update"); err != nil {
		t.Errorf("the rows of the page are not updated: %v\n%s", err, output)
	}
	updated, err := os.ReadFile(rows.path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range rows.rows {
		if !strings.Contains(string(updated), want) {
			t.Errorf("want\n%s\nin\n%s", want, updated)
		}
	}
}

// pageTest is a file of the page as the test of a package.
type pageTest struct {
	pageFile
	path, binary string
}

func newPageTest(t *testing.T, dir, name string, file pageFile) pageTest {
	t.Helper()
	p := pageTest{file, filepath.Join(dir, name, "page_test.go"), filepath.Join(dir, name, name+".test")}
	err := errors.Join(os.Mkdir(filepath.Dir(p.path), 0o700), os.WriteFile(p.path, []byte(file.content), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	if output, err := goTool(t, dir, "test", "-c", "-trimpath", "-ldflags=-s -w", "-o", name, "./"+name); err != nil {
		t.Fatalf("the page does not compile: %v\n%s\n%s", err, output, file.content)
	}
	return p
}

func (p pageTest) run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), p.binary, args...)
	command.Dir = filepath.Dir(p.path)
	return printed(command)
}

// fails asserts that the test fails and prints the first texts of the page.
func (p pageTest) fails(t *testing.T, texts int) {
	t.Helper()
	output, err := p.run(t)
	if err == nil {
		t.Error("want a row of the page to fail")
	}
	for _, want := range p.texts[:texts] {
		if !strings.Contains(lines(output), lines(want)) {
			t.Errorf("want\n%s\nin\n%s", want, output)
		}
	}
}

// The literals of all kinds of expectations compile, and rows that have them pass.
func TestUpdatedRowsPass(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a module twice")
	}
	dir := newModule(t, filepath.Join("testdata", "update"))
	t.Run("page", func(t *testing.T) { testPage(t, dir) })
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
	mark := regexp.MustCompile(`(?m)^\s*// Read this, and remove the comment: .*\n`)
	if n := len(mark.FindAllString(inside+outside, -1)); n != 1 {
		t.Errorf("want the Warning to be marked alone, got %d marks in\n%s\n%s", n, inside, outside)
	}
	output, err := goTool(t, dir, "test", "-vet=off", "-ldflags=-s -w", ".")
	if want := "it has an expectation that -rtesting.update wrote and nobody has read"; err == nil ||
		strings.Count(output, want) != 1 {
		t.Errorf("want the row with the Warning to fail by %q, got %v\n%s", want, err, output)
	}
	inside = mark.ReplaceAllString(inside, "")
	if err := os.WriteFile(filepath.Join(dir, "shop_test.go"), []byte(inside), 0o600); err != nil {
		t.Fatal(err)
	}
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
		// Another file of the package declares types.
		`Preconditions: &metav1.Preconditions{UID: new(types2.UID("settings-uid")), ResourceVersion: new("999")}`,
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
		`{"status":{"conditions":[{"message":"","reason":"Opened","status":"True","type":"Open"}],"seen":{"by":"ann"}}}`,
		// What is different of a fixture.
		`corner.With(func(s *Shop) { s.Status.Seen = &Visit{By: "ann"} }).Object()`,
		// What was right stays.
		`ExpectCreates: []client.Object{ named("one"), &core.ConfigMap{`,
		`ExpectedResult: reconcilers.Result{RequeueAfter: 90 * time.Second, Priority: new(3)}`,
		`ExpectedErr: reconcilers.ErrHaltSubReconcilers`,
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

// runIn runs the test binary app.test of a directory.
func runIn(t *testing.T, dir string, env []string, args ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), filepath.Join(dir, "app.test"), args...)
	command.Dir = dir
	command.Env = append(os.Environ(), env...)
	return printed(command)
}
