package documented

import (
	"slices"
	"testing"
)

func TestParagraphsOf(t *testing.T) {
	const page = "# Page\n\n```go\na := 1\n// ...\nb :=   2\n\tc()\n\nd()\n```\n\n```yaml\ne: f\n```\n\n```go\ng()\n```\n"
	got := paragraphsOf(page)
	if want := []string{"a := 1", "b := 2\nc()", "d()", "g()"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
