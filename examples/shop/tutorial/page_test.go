package tutorial

import (
	"fmt"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
)

// page is the tutorial.
const page = "../../../docs/getting-started.md"

// block is a fenced block of the page.
type block struct {
	language string
	// argument is what follows the language, see TestPage.
	argument string
	content  string
	line     int
}

var fenced = regexp.MustCompile("(?ms)^```([a-z]+)[ \t]*([^\n]*)\n(.*?)^```$")

func blocksOf(t *testing.T) []block {
	t.Helper()
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var blocks []block
	for _, match := range fenced.FindAllSubmatchIndex(content, -1) {
		blocks = append(blocks, block{
			language: string(content[match[2]:match[3]]),
			argument: strings.TrimSpace(string(content[match[4]:match[5]])),
			content:  string(content[match[6]:match[7]]),
			line:     1 + strings.Count(string(content[:match[0]]), "\n"),
		})
	}
	if len(blocks) == 0 {
		t.Fatalf("%s has no blocks", page)
	}
	return blocks
}

// TestPage follows the page from top to bottom, as a reader does:
//
//   - A go block with the name of a file is written to that file. One with "shows" and a name is in the file already.
//   - A sh block is run. It has to succeed, or to fail if it says so.
//   - A text block is what the commands before it print: each of its lines has to be among that.
//   - A sh block that says "operator" runs until the end of the page, and is interrupted then. What it prints names a
//     kubeconfig.
//   - A sh block that says "cluster" is run with that kubeconfig, again and again until it succeeds.
func TestPage(t *testing.T) {
	controlplanetest.SkipIfShort(t)
	t.Parallel()
	r := newReader(t)
	printed := ""
	for _, block := range blocksOf(t) {
		at := fmt.Sprintf("%s:%d", path.Base(page), block.line)
		switch {
		case block.language == "go":
			r.write(at, block)
		case block.language == "text":
			expectLines(t, at, block.content, printed)
		case block.language != "sh":
			t.Fatalf("%s: nobody knows what to do with a block of %s", at, block.language)
		case block.argument == "cluster":
			printed = r.runOnCluster(at, block)
		case block.argument == "operator":
			printed = r.leaveRunning(block)
		default:
			printed = r.run(at, block)
		}
	}
	if deps := r.run("in the end", block{content: "go list -deps .\n"}); strings.Contains(deps, "k8s.io/apiserver/") {
		t.Errorf("the operator contains an API server:\n%s", deps)
	}
	if unformatted := r.run("in the end", block{content: "gofmt -l .\n"}); unformatted != "" {
		t.Errorf("the page has code that gofmt would change:\n%s", unformatted)
	}
}

// TestReadme: what README.md shows as a complete controller is that of the page, which is known to work.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile(root + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range blocksOf(t) {
		if block.argument != "controller/controller.go" {
			continue
		}
		if !strings.Contains(string(readme), "```go\n"+block.content+"```\n") {
			t.Errorf("README.md shows another controller than\n%s", block.content)
		}
		return
	}
	t.Errorf("%s has no controller", page)
}

// expectLines fails the test if a line is not among what a command has printed. Indentation does not count, "..." is
// for what is left out.
func expectLines(t *testing.T, at, want, printed string) {
	t.Helper()
	for line := range strings.Lines(want) {
		like := strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(line)), `\.\.\.`, ".*")
		if !regexp.MustCompile(`(?m)^\s*` + like + `\s*$`).MatchString(printed) {
			t.Fatalf("%s: the command does not print the line\n%s\nbut\n%s", at, line, printed)
		}
	}
}
