// Package documented checks that the Go code of pages is code that compiles.
package documented

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Check reports each paragraph of Go code of the pages that is not a paragraph of the source file, which is code of the
// caller's test. Indentation does not matter. An elision, which is a line "// ...", ends a paragraph. A page without Go
// code is an error.
func Check(t *testing.T, source string, pages ...string) {
	t.Helper()
	code := normalize(read(t, source))
	for _, page := range pages {
		paragraphs := paragraphsOf(read(t, page))
		if len(paragraphs) == 0 {
			t.Errorf("%s has no code, want some", page)
		}
		for _, paragraph := range paragraphs {
			if !strings.Contains(code, paragraph) {
				t.Errorf("%s: this is not in %s, want the code of the page there:\n%s", page, source, paragraph)
			}
		}
	}
}

var (
	blocks = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")
	breaks = regexp.MustCompile(`(?m)^(// \.\.\.)?\n`)
)

// paragraphsOf returns the paragraphs of the Go code in a page, without indentation.
func paragraphsOf(page string) []string {
	var paragraphs []string
	for _, block := range blocks.FindAllStringSubmatch(page, -1) {
		for _, paragraph := range breaks.Split(normalize(block[1]), -1) {
			if paragraph = strings.Trim(paragraph, "\n"); paragraph != "" {
				paragraphs = append(paragraphs, paragraph)
			}
		}
	}
	return paragraphs
}

// normalize takes away the indentation of lines, and what aligns them.
func normalize(code string) string {
	var lines []string
	for line := range strings.Lines(code) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n") + "\n"
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
