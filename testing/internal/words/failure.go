package words

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/fatih/color"

	"github.com/espalier-dev/espalier/testing/internal/literal"
)

// Failure is a difference from the expectations of a test.
type Failure struct {
	// Headline says which expectation fails, how, and for which object.
	Headline string
	// At is the first field that differs, empty if the failure is about no field.
	At string
	// Expected and Seen are what was expected and what was seen there, both in a few words.
	Expected, Seen string
	// Details are lines that say more.
	Details string
	// field is the field of a test case that expects something else, empty if the failure is about no field.
	field field
}

// summary returns the first lines of the failure: five at most, with the line of the row.
func (f Failure) summary() string {
	lines := []string{f.Headline}
	for _, part := range []struct{ name, text string }{
		{"field:    ", f.At}, {"expected: ", f.Expected}, {"seen:     ", f.Seen},
	} {
		if part.text != "" {
			lines = append(lines, "  "+part.name+part.text)
		}
	}
	return strings.Join(lines, "\n")
}

// Text returns all of the failure, with notes after its first lines.
func (f Failure) Text(notes ...string) string {
	parts := append([]string{f.summary()}, notes...)
	if f.Details != "" {
		parts = append(parts, f.Details)
	}
	return strings.Join(parts, "\n")
}

// shortest is how long a value may be in a summary, in characters.
const shortest = 100

// Short returns a value in a few words of Go.
func Short(v reflect.Value, w *literal.Writer) string {
	if !v.IsValid() {
		return "nothing"
	}
	text := w.Short(v)
	if runes := []rune(text); len(runes) > shortest {
		return string(runes[:shortest]) + "..."
	}
	return text
}

// Count returns a number of calls in words.
func Count(n int, kind string) string {
	switch n {
	case 0:
		return "no " + kind
	case 1:
		return "1 " + kind
	}
	if strings.HasSuffix(kind, "y") || strings.HasSuffix(kind, "h") {
		return fmt.Sprintf("%d times %s", n, kind)
	}
	return fmt.Sprintf("%d %ss", n, kind)
}

// Hint returns a text with a literal to paste, and the imports that it needs.
func Hint(text string, w *literal.Writer, value any) string {
	expression := w.Of(value)
	hint := text + "\n" + expression + ","
	if problem := w.Problem(); problem != "" {
		hint += "\nIt does not compile: " + problem + "."
	}
	return hint + neededImports(w.Missing(expression))
}

// Colors are those of the lines of a diff.
type Colors struct{ Added, Removed *color.Color }

// Diff colours the lines of a diff that start with + or -. Each line of the result ends with a newline.
func (c Colors) Diff(diff string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(diff, "\n") {
		switch {
		case strings.HasPrefix(line, "+"):
			b.WriteString(c.Added.Sprint(line))
		case strings.HasPrefix(line, "-"):
			b.WriteString(c.Removed.Sprint(line))
		default:
			b.WriteString(line)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
