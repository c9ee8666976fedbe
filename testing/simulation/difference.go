package simulation

import (
	"strings"

	"github.com/pmezard/go-difflib/difflib"
)

// difference returns how lines differ from those that are wanted, as diff -u does. It is empty if they are the same.
func difference(wanted, got []string) string {
	split := func(lines []string) []string {
		if len(lines) == 0 {
			return nil
		}
		return difflib.SplitLines(strings.Join(lines, "\n"))
	}
	// Writing to a string does not fail.
	text, _ := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{A: split(wanted), B: split(got), Context: 3})
	return text
}
