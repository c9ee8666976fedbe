package testing

import (
	"os"
	"strings"

	"github.com/fatih/color"
)

// The colours of a diff. They colour nothing unless the environment variable COLOR_DIFF is set, to whatever value.
var (
	// DiffAddedColor is that of what is there but not expected.
	DiffAddedColor = color.New(color.FgGreen)
	// DiffRemovedColor is that of what is expected but not there.
	DiffRemovedColor = color.New(color.FgRed)
)

func init() {
	_, wanted := os.LookupEnv("COLOR_DIFF")
	for _, c := range []*color.Color{DiffAddedColor, DiffRemovedColor} {
		if wanted {
			c.EnableColor()
		} else {
			c.DisableColor()
		}
	}
}

// ColorizeDiff colours the lines of a diff that start with + or -. Each line of the result ends with a newline, the last
// one included.
func ColorizeDiff(diff string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(diff, "\n") {
		switch {
		case strings.HasPrefix(line, "+"):
			b.WriteString(DiffAddedColor.Sprint(line))
		case strings.HasPrefix(line, "-"):
			b.WriteString(DiffRemovedColor.Sprint(line))
		default:
			b.WriteString(line)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// legend says which side of a diff is which, in the colours of the diff.
func legend() string {
	return "(" + DiffRemovedColor.Sprint("-expected") + ", " + DiffAddedColor.Sprint("+actual") + ")"
}
