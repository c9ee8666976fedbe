package behavior_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/count"
)

// maxShare is how many lines the operator may have, as a share of those of the bare one.
const maxShare = 0.6

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
