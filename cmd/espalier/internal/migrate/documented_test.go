package migrate

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write rows.json from docs/migration.md")

const documentation = "../../../../docs/migration.md"

// tables are the headings whose table has the rows of an origin.
var tables = map[string]*origin{
	"## What behaves differently, on purpose": runtime,
	"## Differences": componentEngine,
}

// tableBelow returns the rows of the first table after a heading.
func tableBelow(t *testing.T, page, heading string) []row {
	t.Helper()
	_, section, ok := strings.Cut(page, "\n"+heading+"\n")
	if !ok {
		t.Fatalf("%s has no heading %q", documentation, heading)
	}
	_, table, ok := strings.Cut(section, "\n|---|---|---|\n")
	if !ok {
		t.Fatalf("%s has no table below %q", documentation, heading)
	}
	var found []row
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "| ") {
			break
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if len(cells) != 3 {
			t.Fatalf("%s: want three cells in %q", documentation, line)
		}
		found = append(found, row{strings.TrimSpace(cells[0]), strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2])})
	}
	return found
}

func readPage(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(documentation)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// Each row of the page has a finder, or a reason why there is none; and nothing else has.
func TestEachDocumentedDifferenceIsFoundOrSaidToBeUnseen(t *testing.T) {
	page := readPage(t)
	for heading, of := range tables {
		var documented, known []string
		for _, r := range tableBelow(t, page, heading) {
			documented = append(documented, r.What)
		}
		for _, d := range of.differences {
			known = append(known, d.what)
			switch {
			case d.find == nil && d.unseen == "":
				t.Errorf("%q has neither a finder nor a reason why code does not show it", d.what)
			case d.find != nil && (d.unseen != "" || d.check == ""):
				t.Errorf("%q has a finder, and wants a check and no reason", d.what)
			}
		}
		for _, what := range documented {
			if !slices.Contains(known, what) {
				t.Errorf("docs/migration.md has the row %q, and the differences of %s have not", what, of.module)
			}
		}
		for _, what := range known {
			if !slices.Contains(documented, what) {
				t.Errorf("the differences of %s have %q, and docs/migration.md has no such row", of.module, what)
			}
		}
		if !slices.Equal(documented, known) && !t.Failed() {
			t.Errorf("the differences of %s are in another order than the rows of docs/migration.md", of.module)
		}
	}
}

// The program says of a row what the page says.
func TestRowsAreThoseOfThePage(t *testing.T) {
	page := readPage(t)
	var all []row
	for _, heading := range slices.Sorted(func(yield func(string) bool) {
		for heading := range tables {
			if !yield(heading) {
				return
			}
		}
	}) {
		all = append(all, tableBelow(t, page, heading)...)
	}
	want := &bytes.Buffer{}
	encoder := json.NewEncoder(want)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(all); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("rows.json", want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(rowsFile, want.Bytes()) {
		t.Error("rows.json has not the rows of docs/migration.md: run the test with -update")
	}
}

// The transcript of component-operator-runtime has each of its rows that has a finder.
func TestEachRowOfTheComponentEngineIsInItsTranscript(t *testing.T) {
	content, err := os.ReadFile("testdata/script/component_engine.txtar")
	if err != nil {
		t.Fatal(err)
	}
	_, report, _ := strings.Cut(string(content), "\n-- report.txt --\n")
	report, unseen, _ := strings.Cut(report, "\nDifferences that code does not show:\n")
	for _, d := range componentDifferences {
		where := report
		if d.find == nil {
			where = unseen
		}
		if !strings.Contains(where, "\n  "+d.what+"\n") && !strings.HasPrefix(where, "  "+d.what+"\n") {
			t.Errorf("the transcript has not the row %q where it is to be", d.what)
		}
	}
}

// A line of component_names.txt says what a name is here, or what to use, once.
func TestNamesOfTheComponentEngine(t *testing.T) {
	seen := map[string]bool{}
	for line := range strings.Lines(componentNames) {
		line = strings.TrimSpace(line)
		name, _, _ := strings.Cut(line, " ")
		_, moves := componentEngine.names[name]
		if _, byHand := componentEngine.byHand[name]; moves == byHand || seen[name] {
			t.Errorf("%q is not read, or stands there twice", line)
		}
		seen[name] = true
	}
}

// What the names become exists: the files in api have all that the packages export.
func TestNamesOfTheComponentEngineMoveToWhatExists(t *testing.T) {
	for old, now := range componentEngine.names {
		relative := strings.TrimPrefix(now.pkg, Module+"/")
		content, err := os.ReadFile("../../../../api/" + strings.ReplaceAll(relative, "/", ".") + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(strings.Split(string(content), "\n"), func(line string) bool {
			_, declared, _ := strings.Cut(line, " ")
			rest, ok := strings.CutPrefix(declared, now.name)
			return ok && (rest == "" || strings.ContainsRune(" ([", rune(rest[0])))
		}) {
			t.Errorf("%s moves to %s.%s, which does not exist", old, relative, now.name)
		}
	}
}
