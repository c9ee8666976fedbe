package main

import (
	"fmt"
	"go/ast"
	"go/doc"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// repository is the folder of this repository.
const repository = "../../.."

// module has a node in each package of nodes, and annotations.
var module = map[string]string{
	"short.go": `package short

// Owns returns a node.
func Owns[T any](name string) *T { return nil }

// NewConfig returns no node, nor does Item.
func NewConfig() *int { return nil }
func Item[T any]() T { return *new(T) }
`,
	"reconcilers/list.go": `package reconcilers

// List runs its nodes in order. It stops at an error.
type List struct{}

func (List) Reconcile() {}

// Watch is no node.
type Watch struct{}

func (Watch) Handle(err error) {}
`,
	"reconcilers/webhook.go": `package reconcilers

import "example.com/admission"

// Webhook is a root.
type Webhook struct{}

func (Webhook) Handle(r admission.Request) {}
`,
	"component/component.go": "package component\n\n// Component is a leaf.\ntype Component struct{}\n\nfunc (*Component) Reconcile() {}\n",
	"feature/feature.go":     "package feature\n\n// Manager writes.\ntype Manager struct{}\n\nfunc (*Manager) Manage() {}\n",
	"generator/settings.go": `package generator

import "github.com/espalier-dev/espalier/internal/ownership"

// Single is in no group.
const AnnotationSingle = "single"

// Objects have annotations.
//
// # Order
//
// The lowest number comes first.
const (
	// AnnotationPolicy says what happens.
	//
	//   - keep: nothing.
	//   - two words: something. This is long enough that it has to be broken in other places than where the comment
	//     was broken.
	//
	// Default: keep, or what
	// the component says.
	//
	//	example.test/policy: keep
	AnnotationPolicy = "policy"

	// Unrelated is none of them.
	Unrelated = "unrelated"
)

// These are written by the component.
const (
	// LabelOwner is the label with the owner.
	LabelOwner = ownership.Owner
)
`,
	"internal/ownership/ownership.go": "package ownership\n\nconst Owner = \"owner\"\n",
	indexFile: "# Documentation\n\n- [Annotations](annotations.md)\n- [Guide](guide.md)\n\n" + mark + "out of date\n" + endMark +
		"\n## Commands\n",
}

const (
	wantIndex = "# Documentation\n\n- [Annotations](annotations.md)\n- [Guide](guide.md)\n\n" + mark + `
## Package short

  - [` + "`Owns`" + `](../short.go) returns a node.

## Package reconcilers

  - [` + "`List`" + `](../reconcilers/list.go) runs its nodes in order.
  - [` + "`Webhook`" + `](../reconcilers/webhook.go) is a root.

## Package component

  - [` + "`Component`" + `](../component/component.go) is a leaf.

## Package feature

  - [` + "`Manager`" + `](../feature/feature.go) writes.

` + endMark + "\n## Commands\n"

	wantAnnotations = mark + `# Annotations of the objects of a component

Objects have annotations.

## Order

The lowest number comes first.

## All annotations

| Annotation | Values | Default |
|---|---|---|
| [` + "`policy`](#policy) | `keep`" + `, two words | keep, or what the component says |

## policy

The annotation policy says what happens.

  - ` + "`keep`" + `: nothing.
  - two words: something. This is long enough that it has to be broken in other places than where the comment was
    broken.

Default: keep, or what the component says.

	example.test/policy: keep

## Written by the component

These are written by the component.

  - owner is the label with the owner.

Next: [Guide](guide.md)
`
)

func TestGenerate(t *testing.T) {
	root := folder(t, module)
	for range 2 {
		if err := generate(root); err != nil {
			t.Fatal(err)
		}
		for file, want := range map[string]string{indexFile: wantIndex, annotationsFile: wantAnnotations} {
			if got := read(t, root, file); got != want {
				t.Errorf("%s is\n%s\nwant\n%s", file, got, want)
			}
		}
	}
}

func TestGenerateFails(t *testing.T) {
	for _, tc := range []struct{ file, content, want string }{
		{indexFile, "# Documentation\n", "docs/README.md has no place for the nodes: add the lines\n<!-- Generated"},
		{"generator/settings.go", "package generator\n\nfunc {", "settings.go:3:6: expected 'IDENT', found '{'"},
		{"feature/feature.go", "", "could not find the package"},
	} {
		root := folder(t, module)
		write(t, root, tc.file, tc.content)
		if err := generate(root); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got\n\t%v\nwant\n\t%s", tc.file, err, tc.want)
		}
		if _, err := os.Stat(filepath.Join(root, annotationsFile)); err == nil {
			t.Errorf("%s: a page was written", tc.file)
		}
	}
}

// Each node has a doc comment, one for each field, and an example with checked output.
func TestNodesHaveContracts(t *testing.T) {
	packages, err := loadNodes(repository)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packages {
		if p.list == "" {
			t.Errorf("package %s has no nodes", p.pkg.Name)
		}
		for item := range strings.Lines(p.list) {
			if strings.HasSuffix(item, ") \n") {
				t.Errorf("a node of package %s has no doc comment: %s", p.pkg.Name, item)
			}
		}
		for _, node := range p.types {
			if structure, ok := node.Decl.Specs[0].(*ast.TypeSpec).Type.(*ast.StructType); ok {
				for _, field := range structure.Fields.List {
					if field.Doc.Text() == "" && field.Comment.Text() == "" {
						t.Errorf("%s: a field of %s has no doc comment", p.files.Position(field.Pos()), node.Name)
					}
				}
			}
			if !slices.ContainsFunc(node.Examples, func(e *doc.Example) bool { return e.Output != "" || e.EmptyOutput }) {
				t.Errorf("%s has no example with checked output: func Example%s", node.Name, node.Name)
			}
		}
	}
}

// Each annotation has a doc comment and a value.
func TestAnnotationsHaveContracts(t *testing.T) {
	annotations, err := loadAnnotations(repository)
	if err != nil {
		t.Fatal(err)
	}
	if len(annotations.groups) == 0 {
		t.Error("package generator has no annotations")
	}
	for _, g := range annotations.groups {
		for _, c := range g.constants {
			if c.doc == "" || c.value == "" {
				t.Errorf("%s has the doc comment %q and the value %q, want both", c.name, c.doc, c.value)
			}
		}
	}
}

// Here it is checked that links lead somewhere.
func TestLinksLeadSomewhere(t *testing.T) {
	out, err := exec.Command("git", "-C", repository, "ls-files", "--cached", "--others", "--exclude-standard", "*.md").Output()
	if err != nil {
		t.Fatal(err)
	}
	for page := range strings.FieldsSeq(string(out)) {
		// A template has links that lead somewhere in the project made of it, and test data is what others wrote.
		if strings.Contains(page, "/scaffold/project/") || strings.Contains(page, "/testdata/") {
			continue
		}
		for _, link := range deadLinks(t, repository, page, read(t, repository, page)) {
			t.Errorf("%s links to %s, which does not exist", page, link)
		}
	}
}

// A reader who follows the last line of each page reads all of them, in the order of the index, which has their titles.
func TestEachGuideNamesTheNext(t *testing.T) {
	index := read(t, repository, indexFile)
	files, err := filepath.Glob(filepath.Join(repository, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		if name == filepath.Base(indexFile) {
			continue
		}
		content := strings.TrimPrefix(read(t, repository, path.Join("docs", name)), mark)
		title, _, _ := strings.Cut(content, "\n")
		if item := "\n- [" + strings.TrimPrefix(title, "# ") + "](" + name + ")\n"; !strings.Contains(index, item) {
			t.Errorf("%s does not have the line %q", indexFile, strings.TrimSpace(item))
		}
		if want := "\n\n" + next(index, name); !strings.HasSuffix(content, want) {
			t.Errorf("%s ends with %q, want %q", name, content[max(0, len(content)-len(want)):], want)
		}
	}
}

// Code below a sentence that links to a file of tests, and ends with a colon, is code of that file, but for its
// indentation.
func TestCodeIsThatOfTheLinkedExample(t *testing.T) {
	linked := regexp.MustCompile("\\(([^()]+_test\\.go)\\)(?:[^()\n]|\n[^()\n])*:\n\n```go\n((?s:.*?))```\n")
	pages, err := filepath.Glob(filepath.Join(repository, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range pages {
		for _, match := range linked.FindAllStringSubmatch(read(t, "", page), -1) {
			found++
			source := read(t, filepath.Dir(page), match[1])
			if !strings.Contains(withoutIndentation(source), withoutIndentation(match[2])) {
				t.Errorf("%s shows code that %s does not have:\n%s", page, match[1], match[2])
			}
		}
	}
	if found == 0 {
		t.Error("want pages with code of linked examples, and there is none")
	}
}

func withoutIndentation(code string) string {
	return regexp.MustCompile(`(?m)^\t+`).ReplaceAllString(code, "")
}

// The tests that the page about security names are in the files that it links to, and each attempt has one.
func TestSecurityPageNamesTests(t *testing.T) {
	folder := filepath.Join(repository, "docs")
	named := regexp.MustCompile(`\[((?:Test|Fuzz)\w+)\]\(([^)]+)\)`)
	attempts := 0
	for line := range strings.Lines(read(t, folder, "security.md")) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| attempt |") {
			continue
		}
		attempts++
		matches := named.FindAllStringSubmatch(line, -1)
		if len(matches) == 0 {
			t.Errorf("no test is named for %s", line)
		}
		for _, match := range matches {
			source, err := os.ReadFile(filepath.Join(folder, match[2]))
			if err != nil || !strings.Contains(string(source), "\nfunc "+match[1]+"(") {
				t.Errorf("%s does not have %s", match[2], match[1])
			}
		}
	}
	if attempts == 0 {
		t.Error("the page has no attempts")
	}
}

// Each invariant of CONTRIBUTING.md has tests with its number in their names.
func TestInvariantsOfContributingHaveTests(t *testing.T) {
	tested, numbered := map[string]bool{}, regexp.MustCompile(`(?m)^func (?:Test|Fuzz)(L[0-9]+)[A-Z]`)
	err := filepath.WalkDir(repository, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, match := range numbered.FindAllSubmatch(source, -1) {
			tested[string(match[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	invariants := regexp.MustCompile(`(?m)^\| (L[0-9]+) \|`).FindAllStringSubmatch(read(t, repository, "CONTRIBUTING.md"), -1)
	if len(invariants) == 0 {
		t.Error("CONTRIBUTING.md has no table of invariants, want one")
	}
	for _, invariant := range invariants {
		if number := invariant[1]; !tested[number] {
			t.Errorf("no test has %s in its name, want one such as Test%sWhatHolds", number, number)
		}
	}
}

func TestDeadLinks(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, "there.md", "# There\n\n## Some Words\n")
	const content = "[a](there.md) [b](there.md#some-words) [c](https://example.test/none) [d](none.md)\n" +
		"```\n[e](none.md)\n```\n[f](there.md#none) [g](#here) [h](#none)\n## Here\n"
	write(t, folder, "page.md", content)
	got := strings.Join(deadLinks(t, folder, "page.md", content), " ")
	if want := "none.md there.md#none #none"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

var (
	fences   = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	links    = regexp.MustCompile(`\]\(([^)]+)\)`)
	headings = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

// deadLinks returns the links of a page to files and headings that do not exist.
func deadLinks(t *testing.T, folder, page, content string) []string {
	t.Helper()
	var dead []string
	for _, match := range links.FindAllStringSubmatch(fences.ReplaceAllString(content, ""), -1) {
		link := match[1]
		file, anchor, _ := strings.Cut(link, "#")
		if strings.Contains(file, "://") {
			continue
		}
		if file == "" {
			file = filepath.Base(page)
		}
		linked := filepath.Join(folder, filepath.Dir(page), file)
		if info, err := os.Stat(linked); err == nil && info.IsDir() && anchor == "" {
			continue
		}
		target, err := os.ReadFile(linked)
		if err != nil || anchor != "" && !hasAnchor(string(target), anchor) {
			dead = append(dead, link)
		}
	}
	return dead
}

// punctuation is what the anchor of a heading lacks.
var punctuation = regexp.MustCompile(`[^\pL\pN _-]`)

func hasAnchor(content, anchor string) bool {
	if strings.Contains(content, fmt.Sprintf("<a id=%q></a>", anchor)) {
		return true
	}
	for _, match := range headings.FindAllStringSubmatch(content, -1) {
		heading := punctuation.ReplaceAllString(strings.ToLower(match[1]), "")
		if strings.ReplaceAll(heading, " ", "-") == anchor {
			return true
		}
	}
	return false
}

func read(t *testing.T, root, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// folder returns a folder that has files.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		write(t, root, name, content)
	}
	return root
}

func write(t *testing.T, root, name, content string) {
	t.Helper()
	file := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
