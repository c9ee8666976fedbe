package testing

import (
	"go/token"
	"reflect"
	"strconv"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/espalier-dev/espalier/testing/internal/literal"
	"github.com/espalier-dev/espalier/testing/internal/words"
)

// firstDifference notes the first difference that a comparison reports.
type firstDifference struct {
	path             gocmp.Path
	found            bool
	at               string
	expected, actual reflect.Value
}

// PushStep implements a reporter of go-cmp.
func (d *firstDifference) PushStep(step gocmp.PathStep) { d.path = append(d.path, step) }

// PopStep implements a reporter of go-cmp.
func (d *firstDifference) PopStep() { d.path = d.path[:len(d.path)-1] }

// Report implements a reporter of go-cmp.
func (d *firstDifference) Report(result gocmp.Result) {
	if result.Equal() || d.found {
		return
	}
	d.found, d.at = true, fieldPath(d.path)
	d.expected, d.actual = d.path.Last().Values()
}

// fieldPath returns a path as Go selects the field.
func fieldPath(path gocmp.Path) string {
	var b strings.Builder
	for _, step := range path {
		switch step := step.(type) {
		case gocmp.StructField:
			b.WriteString("." + step.Name())
		case gocmp.SliceIndex:
			x, y := step.SplitKeys()
			b.WriteString("[" + strconv.Itoa(max(x, y)) + "]")
		case gocmp.MapIndex:
			key := step.Key()
			untyped := key.Kind() == reflect.String && step.Type().Kind() == reflect.Interface
			if untyped && token.IsIdentifier(key.String()) {
				b.WriteString("." + key.String())
				continue
			}
			b.WriteString("[" + literal.Of(key.Interface()) + "]")
		}
	}
	return strings.TrimPrefix(strings.TrimPrefix(b.String(), ".Object."), ".")
}

// describe returns a failure with the first difference that compare finds between two values. Compare is a comparison
// by a Differ, of which diff is the text. Only the text is known of a Differ that is not one of this package.
func describe(d Differ, w *literal.Writer, diff string, compare func(Differ) string) words.Failure {
	own, ok := d.(differ)
	if !ok {
		return words.Failure{Expected: firstLine(diff, "-"), Seen: firstLine(diff, "+")}
	}
	first := &firstDifference{}
	own.first = first
	compare(own)
	return words.Failure{At: first.at, Expected: words.Short(first.expected, w), Seen: words.Short(first.actual, w)}
}

// firstLine returns the first line of a diff that has a sign.
func firstLine(diff, sign string) string {
	for line := range strings.SplitSeq(diff, "\n") {
		if text, ok := strings.CutPrefix(line, sign); ok {
			return strings.Join(strings.Fields(text), " ")
		}
	}
	return "nothing"
}
