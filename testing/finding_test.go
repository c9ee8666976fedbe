package testing_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// found is what a replay finds, with the row that is printed. Its indentation is that of the output of a test.
	found = regexp.MustCompile(`(?s)replayed with ([^\n]*), the row ends in another way\n` +
		` +story: +([^\n]*)\n +at the end: ([^\n]*)\n(?:.*?\n)?? +To replay this alone, paste the row:\n(.*?\n +\t},)\n`)
	// foundAgain is what a row with a fault finds.
	foundAgain = regexp.MustCompile(
		`replayed with ([^\n]*), the row ends in another way\n +story: +([^\n]*)\n +at the end: ([^\n]*)\n`)
)

const (
	death   = "† = the process dies, and a new one starts"
	again   = "again = the request changed something, so another one follows"
	rest    = "rest = nothing is left to do"
	left    = "left over = it is not there without the fault"
	differs = "is, not = with the fault, without it; if the first is right, the code stops too early without a fault"
	rank    = "*2 = the second of the objects whose names are generated from that prefix"
)

// explainedWords are the words that findings explain, by the bug: those that occur in the finding.
var explainedWords = map[string][]string{
	"lost create":   {death, rest},
	"double create": {death, again, rest, left, differs, rank},
	"external call twice": {
		death, again, rest, "external = what the End of an External returns; [0] is its first element", differs,
	},
	"endless loop":    {death, again},
	"stale read":      {"stale = the cache does not show the last change yet", again, rest, left, rank},
	"swallowed error": {rest},
	"leak":            {death, rest, left},
}

// assertExplained asserts that the findings in an output explain their words, each in a line.
func assertExplained(t *testing.T, output string) {
	t.Helper()
	got := map[string]string{}
	finding := regexp.MustCompile("(?s)at the end: (.*?)\n +(?:So it does|To replay).*?\n[ \t]+`([a-z ]+): ")
	for _, match := range finding.FindAllStringSubmatch(output, -1) {
		_, got[match[2]], _ = strings.Cut(lines(match[1]), "\nwhere:")
	}
	for bug, want := range explainedWords {
		if text := strings.TrimSpace(got[bug]); text != strings.Join(want, "\n") {
			t.Errorf("%s: want explained\n%s\ngot\n%s", bug, strings.Join(want, "\n"), text)
		}
	}
}

// Each bug of testdata/replay is found, and the row that is printed finds it again, until the bug is gone.
func TestFoundRowsCanBePasted(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a module twice")
	}
	t.Parallel()
	dir := newModule(t, filepath.Join("testdata", "replay"))
	output, err := goTool(t, dir, "test", "-ldflags=-s -w", ".")
	if err == nil {
		t.Error("want rows to fail")
	}
	bugs := []string{
		"lost create", "double create", "finalizer too late", "status as memory", "stale read", "external call twice",
		"ignored status code", "swallowed error", "lost answer", "endless loop", "overwrite", "leak",
	}
	var nodes, roots string
	findings := map[[3]string]bool{}
	for _, match := range found.FindAllStringSubmatch(output+"\n", -1) {
		findings[[3]string(match[1:4])] = true
		row := match[4]
		if strings.Contains(row, "Request:") {
			roots += row + "\n"
		} else {
			nodes += row + "\n"
		}
	}
	for _, bug := range bugs {
		if !strings.Contains(nodes+roots, "`"+bug+": ") {
			t.Errorf("%s is not found", bug)
		}
	}
	assertExplained(t, output)
	if len(findings) != len(bugs) {
		t.Fatalf("want %d findings, got %d:\n%s", len(bugs), len(findings), output)
	}

	file := filepath.Join(dir, "app_test.go")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pasted := strings.NewReplacer(
		"// Rows of nodes are pasted here.", nodes, "// Rows of roots are pasted here.", roots).Replace(string(content))
	if strings.Contains(pasted, `"other"), configMap("ns", "one")},`+"\n\t\tFault") {
		t.Errorf("given objects that do not matter are printed:\n%s", pasted)
	}
	if err := os.WriteFile(file, []byte(pasted), 0o600); err != nil {
		t.Fatal(err)
	}
	if output, err := goTool(t, dir, "test", "-c", "-ldflags=-s -w", "-o", "app.test", "."); err != nil {
		t.Fatalf("what is printed does not compile: %v\n%s\n%s", err, output, pasted)
	}
	output, _ = runIn(t, dir, nil, "-test.run=/: ")
	again := foundAgain.FindAllStringSubmatch(output, -1)
	for _, match := range again {
		if !findings[[3]string(match[1:4])] {
			t.Errorf("found otherwise: %q", match[1:4])
		}
	}
	if len(again) != len(bugs) {
		t.Errorf("want %d findings again, got %d:\n%s", len(bugs), len(again), output)
	}
	if output, err := runIn(t, dir, []string{"MENDED=1"}, "-test.run=/: ", "-test.v"); err != nil {
		t.Errorf("rows fail although the bugs are gone: %v\n%s", err, output)
	} else if n := strings.Count(output, ": it ends as without"); n != len(bugs) {
		t.Errorf("want %d rows to pass, got %d:\n%s", len(bugs), n, output)
	}
}
