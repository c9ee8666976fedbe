package source_test

import (
	"errors"
	"go/format"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-dev/espalier/testing/internal/source"
)

// head is the start of the files of the test.
const head = `package a

import (
	"fmt"
	"testing"

	"example.com/given"
)

`

var fields = []string{"Name", "Given", "Expect", "Nested", "More"}

// find writes a file and returns its row "row", as if its table were run at the line with "// run".
func find(t *testing.T, content string) (*source.Row, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a_test.go")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(content, "// run")
	line := strings.Count(before, "\n") + 1
	return source.Find("row", fields, []source.Place{{File: path, Line: line}})
}

func TestFind(t *testing.T) {
	const table = "\tcases{\n\t\t\"row\": {Given: 1},\n\t\t\"other\": {},\n\t}"
	tests := map[string]struct {
		content, line, err string
	}{
		"in the call":   {content: "func TestA(t *testing.T) {\n" + table + ".Run(t) // run\n}", line: "a_test.go:12"},
		"in a variable": {content: "func TestA(t *testing.T) {\n\ttable :=\n" + table + "\n\ttable.Run(t) // run\n}", line: "a_test.go:13"},
		"outside":       {content: "var table =\n" + table + "\n\nfunc TestA(t *testing.T) { table.Run(t) } // run", line: "a_test.go:12"},
		"in a list":     {content: "func TestA(t *testing.T) {\n\tsuite{\n\t\t{Name: \"r\" + (\"ow\")},\n\t}.Run(t) // run\n}", line: "a_test.go:12"},
		"a pointer":     {content: "func TestA(t *testing.T) {\n\tcases{\n\t\t\"row\": &one{},\n\t}.Run(t) // run\n}", line: "a_test.go:12"},
		"two tables, one statement": {
			content: "func TestA(t *testing.T) {\n" + table + ".Run(t)\n" + table + ".Run(t) // run\n}", line: "a_test.go:16",
		},
		"two tables": {
			content: "func TestA(t *testing.T) {\n\ta :=\n" + table + "\n\tb :=\n" + table + "\n\trun(t, a, b) // run\n}",
			err:     `several rows have that name: "row"`,
		},
		"another function": {
			content: "func TestB(t *testing.T) {\n" + table + ".Run(t)\n}\n\nfunc TestA(t *testing.T) { made().Run(t) } // run",
			err:     `no row has that name as a constant: "row"`,
		},
		"another map":     {content: "func TestA(t *testing.T) {\n\tm{\"row\": {Other: 1}}.Run(t) // run\n}", err: "no row has that name"},
		"a computed name": {content: "func TestA(t *testing.T) {\n\tcases{name(): {Given: 1}}.Run(t) // run\n}", err: "no row has that name"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			row, err := find(t, head+tc.content+"\n")
			switch {
			case tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)):
				t.Errorf("want the error %q, got %v", tc.err, err)
			case tc.err == "" && (err != nil || row.Line() != tc.line):
				t.Errorf("want %s, got %v, %v", tc.line, row, err)
			}
		})
	}
	if _, err := source.Find("row", fields, []source.Place{{File: "missing_test.go", Line: 1}}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("want an error about the file, got %v", err)
	}
}

func TestSet(t *testing.T) {
	more := map[string]string{"more": "example.com/more", "newv1": "example.com/new/v1", "slices": "slices"}
	tests := map[string]struct {
		row, want string
		set       map[string]string
		// nested is the row in a field to set instead.
		nested, name string
		imports      string
	}{
		"add to nothing":     {row: `{}`, set: map[string]string{"Expect": "1", "More": "2"}, want: "{\n\t\t\tExpect: 1,\n\t\t\tMore:   2,\n\t\t}"},
		"add on a line":      {row: `{Given: 1}`, set: map[string]string{"Expect": "2"}, want: "{Given: 1,\n\t\t\tExpect: 2,\n\t\t}"},
		"add below":          {row: "{\n\t\t\tGiven: 1, // one\n\t\t}", set: map[string]string{"Expect": "2"}, want: "{\n\t\t\tGiven:  1, // one\n\t\t\tExpect: 2,\n\t\t}"},
		"replace":            {row: "{\n\t\t\tExpect: given.One(), // why\n\t\t}", set: map[string]string{"Expect": "2"}, want: "{\n\t\t\tExpect: 2, // why\n\t\t}"},
		"remove":             {row: "{\n\t\t\tGiven: 1,\n\t\t\tExpect: 2,\n\t\t\tMore: 3,\n\t\t}", set: map[string]string{"Expect": ""}, want: "{\n\t\t\tGiven: 1,\n\t\t\tMore:  3,\n\t\t}"},
		"remove on a line":   {row: "{Given: 1, Expect: 2, More: 3}", set: map[string]string{"Expect": ""}, want: "{Given: 1, More: 3}"},
		"remove what is not": {row: "{Given: 1}", set: map[string]string{"Expect": ""}, want: "{Given: 1}"},
		"nested in a map":    {row: `{Nested: map[string]one{"a": {}}}`, nested: "Nested", name: "a", set: map[string]string{"Expect": "1"}, want: "{Nested: map[string]one{\"a\": {\n\t\t\tExpect: 1,\n\t\t}}}"},
		"nested in a list":   {row: `{Nested: []one{{Name: "a", Expect: 1}}}`, nested: "Nested", name: "a", set: map[string]string{"Expect": "2"}, want: `{Nested: []one{{Name: "a", Expect: 2}}}`},
		"imports": {
			row: `{Expect: given.One()}`, set: map[string]string{"Expect": "more.New(newv1.One, slices.Sort)"},
			want:    `{Expect: more.New(newv1.One, slices.Sort)}`,
			imports: "import (\n\t\"fmt\"\n\t\"slices\"\n\t\"testing\"\n\n\t\"example.com/more\"\n\tnewv1 \"example.com/new/v1\"\n)\n",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			// What the other row names stays imported.
			use := "var _ = fmt.Sprint\n"
			if tc.imports == "" {
				use += "\nvar _ = given.Two\n"
			}
			content := func(row string) string {
				return use + "\nfunc TestA(t *testing.T) {\n\tcases{\n\t\t\"row\": " + row + ",\n\t}.Run(t) // run\n}\n"
			}
			row, err := find(t, head+content(tc.row))
			if err != nil {
				t.Fatal(err)
			}
			set := row
			if tc.nested != "" {
				if set, err = row.In(tc.nested, tc.name); err != nil {
					t.Fatal(err)
				}
			}
			if err := set.Set(tc.set, more); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(row.File().Path())
			if err != nil {
				t.Fatal(err)
			}
			want := head
			if tc.imports != "" {
				want = "package a\n\n" + tc.imports + "\n"
			}
			wanted, err := format.Source([]byte(want + content(tc.want)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(wanted), string(got)); diff != "" {
				t.Errorf("differs (-want, +got):\n%s", diff)
			}
		})
	}
}

// Fields that are set one after the other are all there, at positions of the file as it was.
func TestSetAgain(t *testing.T) {
	row, err := find(t, head+"var _, _ = fmt.Sprint, given.Two\n\nfunc TestA(t *testing.T) {\n\tcases{\n\t\t\"row\": {Given: 1},\n\t}.Run(t) // run\n}\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range []map[string]string{{"More": "3"}, {"Given": "[]int{\n1,\n}"}, {"Expect": "2"}, {"Expect": "4"}} {
		if err := row.Set(set, nil); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(row.File().Path())
	if err != nil {
		t.Fatal(err)
	}
	want := `"row": {Given: []int{ 1, }, Expect: 4, More: 3, },`
	if flat := strings.Join(strings.Fields(string(got)), " "); !strings.Contains(flat, want) {
		t.Errorf("want %s in\n%s", want, got)
	}
	if _, err := row.In("More", "a"); err == nil {
		t.Error("want an error about a nested row that is not there")
	}
}

// An import of a file must not have a name that any file of its package declares.
func TestIdentifiers(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"a_test.go": "package a\n\nimport given \"example.com/given\"\n\nvar local = given.One\n",
		"a.go": "package a\n\nimport \"fmt\"\n\ntype kind struct{ field int }\n\n" +
			"func (k kind) method(parameter int) { fmt.Println(k, parameter) }\n\nfunc function() { inner := 1; _ = inner }\n",
		"b_linux.go":      "package a\n\nconst one, two = 1, 2\n\nvar three int\n",
		"outside_test.go": "package a_test\n\nvar outside int\n",
		"broken.go":       "package a\n\nvar before int\n\nfunc",
		"a.txt":           "package a\n\nvar text int\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file, err := source.Read(filepath.Join(dir, "a_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	got := slices.DeleteFunc(file.Identifiers(), func(name string) bool { return name == "a" || name == "_" })
	slices.Sort(got)
	want := []string{"before", "function", "kind", "local", "one", "three", "two"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("differs (-want, +got):\n%s", diff)
	}
}
