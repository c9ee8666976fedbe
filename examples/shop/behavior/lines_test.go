package behavior_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/count"
)

const (
	// maxShare is how many lines the operator may have, as a share of those of the bare one.
	maxShare = 0.6
	// maxNames is how many names an author may have to know for the operator and its rows.
	maxNames = 51
)

// TestLines compares what an author writes. The types of the API, the registry and main.go are the same for both.
func TestLines(t *testing.T) {
	short, bare := count.Lines(t, "../controller"), count.Lines(t, "../bare")
	share := float64(short) / float64(bare)
	t.Logf("controller: %d lines, bare: %d lines, which is %.1f %%", short, bare, 100*share)
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	table := fmt.Sprintf("| `bare` | %d |\n| `controller` | %d |\n", bare, short)
	if !strings.Contains(string(readme), table) {
		t.Errorf("README.md has other numbers, want\n%s", table)
	}
	if share > maxShare {
		t.Errorf("controller has %d lines and bare %d, want at most %.0f %%", short, bare, 100*maxShare)
	}
}

// TestNames counts what the author of the operator and its rows has to know of this repository.
func TestNames(t *testing.T) {
	controlplanetest.SkipIfShort(t)
	names := count.Names(t, []string{"../api/v1", "../controller"}, "main_test.go")
	t.Logf("%d names: %s", len(names), strings.Join(names, ", "))
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprintf("%d names", len(names)); !strings.Contains(string(readme), text) {
		t.Errorf("README.md has another number, want %q", text)
	}
	if len(names) > maxNames {
		t.Errorf("an author has to know %d names, want at most %d", len(names), maxNames)
	}
}
