package mirror_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/count"
)

const example = "../../../../../examples/mirror/"

const (
	// maxShare is how many lines the operator may have, as a share of those of the bare one.
	maxShare = 0.45
	// maxNames is how many names an author may have to know for the operator, its rows and its story.
	maxNames = 40
)

// TestWritten compares what the author of the operator writes with the bare one, and counts what the author has to
// know. The types of the API and the registry are the same for both. So are the webhooks, which count for both.
func TestWritten(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles the packages")
	}
	both := count.Lines(t, example+"webhook")
	short, bare := both+count.Lines(t, example+"controller"), both+count.Lines(t, example+"bare")
	names := count.Names(t, []string{example + "api/v1", example + "controller", example + "webhook", "."},
		"main_test.go", "twin_test.go", "written_test.go")
	share := float64(short) / float64(bare)
	t.Logf("controller: %d lines, bare: %d lines, which is %.1f %%", short, bare, 100*share)
	t.Logf("%d names: %s", len(names), strings.Join(names, ", "))
	readme, err := os.ReadFile(example + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	table := fmt.Sprintf("| `bare` | %d |\n| `controller` | %d |\n", bare, short)
	text := fmt.Sprintf("%d names", len(names))
	if !strings.Contains(string(readme), table) || !strings.Contains(string(readme), text) {
		t.Errorf("README.md has other numbers, want %q and\n%s", text, table)
	}
	if share > maxShare {
		t.Errorf("controller has %d lines and bare %d, want at most %.0f %%", short, bare, 100*maxShare)
	}
	if len(names) > maxNames {
		t.Errorf("an author has to know %d names, want at most %d: %v", len(names), maxNames, names)
	}
}
