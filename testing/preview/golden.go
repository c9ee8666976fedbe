package preview

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pmezard/go-difflib/difflib"
)

var updateFiles = flag.Bool("preview.update", false, "write the golden files of previews instead of comparing them")

// updating reports whether golden files are written.
func updating() bool {
	if *updateFiles {
		return true
	}
	for _, name := range []string{"update", "rtesting.update"} {
		if own := flag.Lookup(name); own != nil && own.Value.String() == "true" {
			return true
		}
	}
	return false
}

const (
	extension = ".yaml"
	// header is the first line of a golden file. A file without it is never removed, nor written over.
	header = "# Written by a test with the flag -preview.update.\n"
)

// golden compares a text with the golden file of a case, or writes it.
func golden(t testing.TB, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, filepath.FromSlash(name)+extension)
	data, err := os.ReadFile(file)
	missing := errors.Is(err, fs.ErrNotExist)
	wanted, ours := strings.CutPrefix(strings.ReplaceAll(string(data), "\r\n", "\n"), header)
	switch {
	case err != nil && !missing:
		t.Errorf("preview: case %s: read the golden file: %v", name, err)
	case !missing && !ours:
		t.Errorf("preview: case %s: %s is no golden file: its first line is not %q", name, file, strings.TrimSpace(header))
	case !missing && wanted == text:
	case updating():
		if err := write(file, header+text); err != nil {
			t.Errorf("preview: case %s: write the golden file: %v", name, err)
			return
		}
		t.Logf("%s is written", file)
	case missing:
		t.Errorf("preview: case %s: there is no golden file %s: the flag -preview.update writes it", name, file)
	default:
		t.Errorf("preview: case %s: the objects are not as in %s: the flag -preview.update writes it anew "+
			"(-file +objects):\n%s", name, file, difference(wanted, text))
	}
}

func write(file, text string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

// stale fails the test for each golden file in a folder that has no case, or removes it.
func stale(t testing.TB, dir string, has func(name string) bool) {
	t.Helper()
	err := filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(file) != extension {
			return err
		}
		relative, err := filepath.Rel(dir, file)
		if err != nil || has(strings.TrimSuffix(filepath.ToSlash(relative), extension)) {
			return err
		}
		data, err := os.ReadFile(file)
		if err != nil || !strings.HasPrefix(string(data), strings.TrimSpace(header)) {
			return err
		}
		if updating() {
			t.Logf("%s is removed", file)
			return os.Remove(file)
		}
		t.Errorf("preview: the golden file %s has no case: the flag -preview.update removes it", file)
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("preview: look for golden files without a case: %v", err)
	}
}

// difference returns how lines differ, as diff -u does.
func difference(wanted, got string) string {
	// Writing to a string does not fail.
	text, _ := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: difflib.SplitLines(wanted), B: difflib.SplitLines(got), Context: 3,
	})
	return text
}
