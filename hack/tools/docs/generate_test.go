package main

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the pages in testdata")

const module = "testdata/module"

func TestGenerate(t *testing.T) {
	if *update {
		if err := generate(module); err != nil {
			t.Fatal(err)
		}
	}
	root := t.TempDir()
	if err := os.CopyFS(root, os.DirFS(module)); err != nil {
		t.Fatal(err)
	}
	want := readTree(t, filepath.Join(root, docsFolder))
	if err := os.RemoveAll(filepath.Join(root, nodesFolder)); err != nil {
		t.Fatal(err)
	}
	writeFile(t, root, indexFile, "out of date")

	generateTwice := func() {
		for range 2 {
			if err := generate(root); err != nil {
				t.Fatal(err)
			}
			compareTrees(t, readTree(t, filepath.Join(root, docsFolder)), want)
		}
	}
	generateTwice()

	writeFile(t, root, "docs/nodes/gone.md", mark+"# Gone\n")
	writeFile(t, root, "docs/nodes/steps.md", "out of date")
	writeFile(t, root, "docs/annotations.md", "out of date, and without a title")
	writeFile(t, root, "docs/nodes/notes.md", "# Notes\n")
	want["nodes/notes.md"] = "# Notes\n"
	generateTwice()
}

func TestGenerateWithOnePackageOfNodes(t *testing.T) {
	root := t.TempDir()
	if err := os.CopyFS(root, os.DirFS(module)); err != nil {
		t.Fatal(err)
	}
	want := readTree(t, filepath.Join(root, docsFolder))
	for _, gone := range []string{"all.md", "deployment.md"} {
		delete(want, "nodes/"+gone)
	}
	index := want["README.md"]
	index = strings.Replace(index, "Each node of the packages", "Each node of package", 1)
	for _, line := range []string{
		" and\n[component](https://pkg.go.dev/github.com/espalier-dev/espalier/component)",
		"- [Deployment](nodes/deployment.md) is a leaf beside known.Task.\n",
		"- [All](nodes/all.md) runs nodes of another package.\n",
	} {
		if !strings.Contains(index, line) {
			t.Errorf("the index does not contain %q:\n%s", line, index)
		}
		index = strings.Replace(index, line, "", 1)
	}
	if err := os.RemoveAll(filepath.Join(root, "component")); err != nil {
		t.Fatal(err)
	}
	if err := generate(root); err != nil {
		t.Fatal(err)
	}
	got := readTree(t, filepath.Join(root, docsFolder))
	words := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	if words(got["README.md"]) != words(index) {
		t.Errorf("the index is\n%s\nwant, in other lines,\n%s", got["README.md"], index)
	}
	got["README.md"] = want["README.md"]
	compareTrees(t, got, want)
}

func TestGenerateFails(t *testing.T) {
	untitled := t.TempDir()
	for _, folder := range []string{"reconcilers", "component", annotationsFolder} {
		if err := os.CopyFS(filepath.Join(untitled, folder), os.DirFS(filepath.Join(module, folder))); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, untitled, "docs/untitled.md", "no title")
	unreadable := t.TempDir()
	writeFile(t, unreadable, "reconcilers/broken.go", "package reconcilers\n\nfunc {")
	noNodes := t.TempDir()
	writeFile(t, noNodes, "generator/generator.go", "package generator\n")

	for _, tc := range []struct{ root, want string }{
		{"testdata/bare", `this is missing:
	Unchecked has no example with checked output: func ExampleUnchecked
	Undocumented has no doc comment
	Undocumented.Alone has no doc comment
	Undocumented.Both, Two has no doc comment
	Undocumented.Context has no doc comment
	Undocumented has no example with checked output: func ExampleUndocumented
	AnnotationUndocumented has no doc comment`},
		{"testdata/empty", "this is missing:\n\tpackage reconcilers has no nodes\n\tpackage generator has no annotations"},
		{noNodes, "this is missing:\n\ta package with nodes: reconcilers, component, feature"},
		{untitled, `untitled.md has no title, a line that begins with "# "`},
		{unreadable, "broken.go:3:6: expected 'IDENT', found '{'"},
		{filepath.Join(unreadable, "none"), "could not find the package"},
	} {
		t.Run(filepath.Base(tc.root), func(t *testing.T) {
			err := generate(tc.root)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got\n\t%v\nwant\n\t%s", err, tc.want)
			}
			if _, err := os.Stat(filepath.Join(tc.root, indexFile)); err == nil {
				t.Error("pages were written")
			}
		})
	}
}

// The pages of this repository are those that "make check" compares with their sources; here it is that links lead
// somewhere.
func TestLinksLeadSomewhere(t *testing.T) {
	for _, root := range []string{module, "../../.."} {
		pages, err := fs.Glob(os.DirFS(root), "*.md")
		if err != nil {
			t.Fatal(err)
		}
		for page := range readTree(t, filepath.Join(root, docsFolder)) {
			if path.Ext(page) == ".md" {
				pages = append(pages, path.Join(docsFolder, page))
			}
		}
		for _, readme := range []string{"examples/*", "generator/*", "testing/*"} {
			found, err := fs.Glob(os.DirFS(root), readme+"/README.md")
			if err != nil {
				t.Fatal(err)
			}
			pages = append(pages, found...)
		}
		for _, page := range pages {
			content, err := os.ReadFile(filepath.Join(root, page))
			if err != nil {
				t.Fatal(err)
			}
			for _, link := range deadLinks(t, root, page, string(content)) {
				t.Errorf("%s/%s links to %s, which does not exist", root, page, link)
			}
		}
	}
}

// A reader who follows the last line of each page reads all of them, in the order of the index.
func TestEachGuideNamesTheNext(t *testing.T) {
	folder := filepath.Join("../../..", docsFolder)
	guides, err := readGuides(folder)
	if err != nil {
		t.Fatal(err)
	}
	guides = append(guides, guide{path.Base(annotationsFile), annotationsTitle})
	slices.SortStableFunc(guides, inOrder)
	for _, g := range guides {
		content, err := os.ReadFile(filepath.Join(folder, g.file))
		if err != nil {
			t.Fatal(err)
		}
		if want := "\n\n" + nextOf(guides, g.file); !strings.HasSuffix(string(content), want) {
			t.Errorf("%s ends with %q, want %q", g.file, content[max(0, len(content)-len(want)):], want)
		}
	}
	for _, c := range chapters {
		for _, file := range c.files {
			if !slices.ContainsFunc(guides, func(g guide) bool { return g.file == file }) {
				t.Errorf("the chapter %q has %s, want a page of that name in %s", c.title, file, folder)
			}
		}
	}
}

// Code below a sentence that links to a file of tests, and ends with a colon, is code of that file, but for its
// indentation.
func TestCodeIsThatOfTheLinkedExample(t *testing.T) {
	linked := regexp.MustCompile("\\(([^()]+_test\\.go)\\)(?:[^()\n]|\n[^()\n])*:\n\n```go\n((?s:.*?))```\n")
	folder, found := filepath.Join("../../..", docsFolder), 0
	for page, content := range readTree(t, folder) {
		if strings.HasPrefix(content, mark) {
			continue
		}
		for _, match := range linked.FindAllStringSubmatch(content, -1) {
			found++
			source, err := os.ReadFile(filepath.Join(folder, path.Dir(page), match[1]))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(withoutIndentation(string(source)), withoutIndentation(match[2])) {
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
	folder := filepath.Join("../../..", docsFolder)
	page, err := os.ReadFile(filepath.Join(folder, "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`\[((?:Test|Fuzz)\w+)\]\(([^)]+)\)`)
	attempts := 0
	for line := range strings.Lines(string(page)) {
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
	const root = "../../.."
	page, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	tested, numbered := map[string]bool{}, regexp.MustCompile(`(?m)^func (?:Test|Fuzz)(L[0-9]+)[A-Z]`)
	err = filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
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
	invariants := regexp.MustCompile(`(?m)^\| (L[0-9]+) \|`).FindAllSubmatch(page, -1)
	if len(invariants) == 0 {
		t.Error("CONTRIBUTING.md has no table of invariants, want one")
	}
	for _, invariant := range invariants {
		if number := string(invariant[1]); !tested[number] {
			t.Errorf("no test has %s in its name, want one such as Test%sWhatHolds", number, number)
		}
	}
}

func TestDeadLinks(t *testing.T) {
	folder := t.TempDir()
	writeFile(t, folder, "there.md", "# There\n\n## Some Words\n")
	const content = "[a](there.md) [b](there.md#some-words) [c](https://example.test/none) [d](none.md)\n" +
		"```\n[e](none.md)\n```\n[f](there.md#none) [g](#here) [h](#none)\n## Here\n"
	writeFile(t, folder, "page.md", content)
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

func readTree(t *testing.T, folder string) map[string]string {
	t.Helper()
	files := map[string]string{}
	tree := os.DirFS(folder)
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(tree, name)
		files[name] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func compareTrees(t *testing.T, got, want map[string]string) {
	t.Helper()
	for name := range want {
		if _, ok := got[name]; !ok {
			t.Errorf("%s is not there", name)
		}
	}
	for name, content := range got {
		switch wanted, ok := want[name]; {
		case !ok:
			t.Errorf("%s is there, with\n%s", name, content)
		case content != wanted:
			t.Errorf("%s is\n%s\nwant (go test -update accepts)\n%s", name, content, wanted)
		}
	}
}

func writeFile(t *testing.T, root, name, content string) {
	t.Helper()
	file := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
