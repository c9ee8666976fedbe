package document_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/document"
)

// attacks are small texts that would need much memory, with what is wrong with them.
var attacks = map[string]struct {
	check      func([]byte) error
	text, want string
}{
	"a text that is repeated": {document.Check,
		"a: &a " + strings.Repeat("A", 500_000) + "\nb: [" + strings.Repeat("*a,", 1000) + "]\n", "aliases"},
	"a text that is repeated, as large as a ConfigMap": {document.Check,
		"a: &a " + strings.Repeat("A", 500_000) + "\nb: [" + strings.Repeat("*a,", 180_000) + "]\n", "aliases"},
	"values that double": {document.Check, doubled(), "aliases"},
	"a key that is repeated": {document.Check,
		"a: &a {? " + strings.Repeat("k", 500_000) + " : 1}\nb: [" + strings.Repeat("*a,", 1000) + "]\n", "aliases"},
	"maps that are merged": {document.Check,
		"a: &a {k: " + strings.Repeat("v", 500_000) + "}\nb: [" + strings.Repeat("{<<: *a},", 1000) + "]\n", "aliases"},
	"an alias of itself":   {document.Check, "a: &a [*a]\n", "contains itself"},
	"a chain of aliases":   {document.Check, chain(5000), "nested"},
	"many values":          {document.Check, "[" + strings.Repeat("a,", 1<<19) + "]", "values"},
	"many values in lines": {document.Check, strings.Repeat("-\n", 1<<19), "values"},
	"many values in UTF-16": {document.Check,
		"\xff\xfe[\x00" + strings.Repeat("a\x00,\x00", 1<<19) + "]\x00", "values"},
	"many bytes":        {document.Check, strings.Repeat("a", document.MaxBytes+1), "bytes"},
	"many values, JSON": {document.CheckJSON, "[" + strings.Repeat("{},", 1<<19) + "]", "values"},
	"brackets in TOML":  {document.CheckTOML, "a=" + strings.Repeat("[", 100_000), "brackets"},
	"braces in TOML":    {document.CheckTOML, strings.Repeat("a={", 100_000), "brackets"},
	"points in TOML":    {document.CheckTOML, "[" + strings.Repeat("a.", 100_000) + "b]", "points"},
	"points in TOML, in lines": {document.CheckTOML,
		strings.Repeat(strings.Repeat("a.", 500)+"b = 1\n", 100), "points"},
	"a document after another": {document.Check,
		"a: &b 1\nc: *b\n---\na: &a " + strings.Repeat("A", 500_000) + "\nb: [" + strings.Repeat("*a,", 1000) + "]\n",
		"aliases"},
}

func doubled() string {
	text := "a0: &a0 [x, x]\n"
	for i, from := 'b', "a0"; i <= 'z'; i++ {
		text += string(i) + ": &" + string(i) + " [*" + from + ", *" + from + "]\n"
		from = string(i)
	}
	return text
}

func chain(length int) string {
	var text strings.Builder
	text.WriteString("- &a0 [x]\n")
	for i := range length {
		fmt.Fprintf(&text, "- &a%d [*a%d]\n", i+1, i)
	}
	return text.String()
}

func TestAttacks(t *testing.T) {
	for name, row := range attacks {
		t.Run(name, func(t *testing.T) {
			text, err := []byte(row.text), error(nil)
			used := allocated(func() { err = row.check(text) })
			if !errors.Is(err, document.ErrTooLarge) || !strings.Contains(err.Error(), row.want) {
				t.Errorf("the error is %v, want %q", err, row.want)
			}
			if used > 200<<20 {
				t.Errorf("it took %d MiB, want at most 200", used>>20)
			}
			if row.want != "aliases" && row.want != "nested" && used > 1<<20 {
				t.Errorf("it took %d KiB, want nothing parsed", used>>10)
			}
		})
	}
}

func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestWhatIsAccepted(t *testing.T) {
	t.Parallel()
	line := "some-key: some text - with, much: in it\n"
	for name, row := range map[string]struct {
		check func([]byte) error
		text  string
	}{
		"empty":             {document.Check, ""},
		"an alias":          {document.Check, "a: &a {b: c}\nd: {<<: *a}\n"},
		"a large ConfigMap": {document.Check, "data:\n  a: |\n" + strings.Repeat("    "+line, 25_000)},
		"many documents":    {document.Check, strings.Repeat("---\n"+strings.Repeat(line, 1000), 1000)},
		"no YAML":           {document.Check, "{{ a: ["},
		"TOML":              {document.CheckTOML, strings.Repeat("[a.b]\nc = [1, 2]\nd.e = 'https://a.b.c.d'\n", 2000)},
	} {
		if err := row.check([]byte(row.text)); err != nil {
			t.Errorf("%s: the error is %v, want none", name, err)
		}
	}
	if err := document.Check([]byte("a: [&b\n*c")); err == nil || errors.Is(err, document.ErrTooLarge) {
		t.Errorf("the error is %v, want that of the parser", err)
	}
}

func TestToJSON(t *testing.T) {
	t.Parallel()
	got, err := document.ToJSON([]byte("a: &a [1]\nb: *a\n---\nc: d\n"))
	if want := `{"a":[1],"b":[1]}`; err != nil || string(got) != want {
		t.Errorf("got %s (%v), want %s", got, err, want)
	}
	deep := strings.Repeat("[", document.MaxDepth+1) + strings.Repeat("]", document.MaxDepth+1)
	if _, err := document.ToJSON([]byte(deep)); !errors.Is(err, document.ErrTooLarge) {
		t.Errorf("the error is %v, want one about the depth", err)
	}
	if _, err := document.ToJSON([]byte(`a: "` + strings.Repeat(`[\"`, document.MaxDepth+1) + `"`)); err != nil {
		t.Errorf("the error is %v, want none for brackets in a text", err)
	}
}

func TestCount(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"": 1, "a": 1, "---\na": 1, "a\n---\nb\n---": 3, "a ---\n ---\n-----BEGIN": 1, "a\n--- b\n---\tc": 3} {
		if got := document.Count(text); got != want {
			t.Errorf("%q: got %d documents, want %d", text, got, want)
		}
	}
}
