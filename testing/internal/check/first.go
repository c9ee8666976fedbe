package check

import (
	"go/token"
	"reflect"
	"strconv"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/espalier-dev/espalier/testing/internal/literal"
	"github.com/espalier-dev/espalier/testing/internal/words"
)

// First notes the first difference that a comparison reports.
type First struct {
	path             gocmp.Path
	found            bool
	at               string
	expected, actual reflect.Value
}

// PushStep implements a reporter of go-cmp.
func (d *First) PushStep(step gocmp.PathStep) { d.path = append(d.path, step) }

// PopStep implements a reporter of go-cmp.
func (d *First) PopStep() { d.path = d.path[:len(d.path)-1] }

// Report implements a reporter of go-cmp.
func (d *First) Report(result gocmp.Result) {
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

// describe returns a failure with the first difference that a comparison notes. Of one that notes none there is only
// the text, diff.
func describe(w *literal.Writer, diff string, compare func(first *First)) words.Failure {
	first := &First{}
	if compare(first); !first.found {
		return words.Failure{Expected: firstLine(diff, "-"), Seen: firstLine(diff, "+")}
	}
	return words.Failure{
		At: first.at, Expected: words.Short(first.expected, w), Seen: words.Short(first.actual, w),
	}
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
