package migrate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// planOf returns a plan that changes files of a module without one package, and the module's folder.
func planOf(t *testing.T, n int) *Plan {
	t.Helper()
	plan := &Plan{Root: t.TempDir(), skipTidy: true}
	for i := range n {
		path := fmt.Sprintf("file%d.go", i)
		file := Change{Path: path, before: fmt.Appendf(nil, "before %d", i), after: fmt.Appendf(nil, "after %d", i)}
		if err := os.WriteFile(filepath.Join(plan.Root, path), file.before, 0o600); err != nil {
			t.Fatal(err)
		}
		// A usual umask has none of these bits for others.
		if err := os.Chmod(filepath.Join(plan.Root, path), 0o666); err != nil {
			t.Fatal(err)
		}
		plan.Files = append(plan.Files, file)
	}
	if err := os.WriteFile(filepath.Join(plan.Root, "go.mod"), []byte("module example.com/a\n\ngo 1.26\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return plan
}

var errKilled = errors.New("killed")

// A run may end before each of its renames. The next one finishes it, and what is there is always a whole file.
func TestAnInterruptedRunIsFinished(t *testing.T) {
	const files = 4
	for stop := range files + 1 {
		plan := planOf(t, files)
		if err := newJournal(plan); err != nil {
			t.Fatal(err)
		}
		j, err := readJournal(plan.Root)
		if err != nil {
			t.Fatal(err)
		}
		renamed := 0
		err = j.finish(func(from, to string) error {
			if renamed == stop {
				return errKilled
			}
			renamed++
			return os.Rename(from, to)
		})
		if (err == nil) != (stop == files) || err != nil && !errors.Is(err, errKilled) {
			t.Fatalf("stopped after %d files with %v, want the error of the rename", stop, err)
		}
		if _, err := NewPlan(t.Context(), Options{Folder: plan.Root}); !errors.Is(err, ErrUnfinished) {
			t.Errorf("stopped after %d files, a new plan has the error %v, want %v", stop, err, ErrUnfinished)
		}
		if _, err := Finish(t.Context(), Options{Folder: plan.Root}); err != nil {
			t.Fatalf("stopped after %d files, the next run fails: %v", stop, err)
		}
		for _, file := range plan.Files {
			path := filepath.Join(plan.Root, file.Path)
			got, err := os.ReadFile(path)
			if err != nil || string(got) != string(file.after) {
				t.Errorf("stopped after %d files, %s has %q in the end, %v; want %q", stop, file.Path, got, err, file.after)
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o666 {
				t.Errorf("%s has the mode %v, %v; want that of before", file.Path, info.Mode(), err)
			}
		}
		if exists(filepath.Join(plan.Root, journalFolder)) {
			t.Errorf("stopped after %d files, the journal is there in the end", stop)
		}
	}
}

func TestAJournalThatIsNotCompleteIsDropped(t *testing.T) {
	plan := planOf(t, 1)
	if err := newJournal(plan); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(plan.Root, journalFolder, "journal.json")); err != nil {
		t.Fatal(err)
	}
	if hasJournal(plan.Root) {
		t.Error("a folder without the index counts as a journal")
	}
	if err := newJournal(plan); err != nil {
		t.Errorf("the next run fails: %v", err)
	}
}

func TestAFileThatChangedMeanwhileIsKept(t *testing.T) {
	plan := planOf(t, 2)
	if err := newJournal(plan); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(plan.Root, "file1.go")
	if err := os.WriteFile(path, []byte("by somebody"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := Finish(t.Context(), Options{Folder: plan.Root})
	if err == nil || !strings.Contains(err.Error(), "file1.go has changed since the migration began") {
		t.Errorf("got the error %v, want one that names the file", err)
	}
	if got, _ := os.ReadFile(path); string(got) != "by somebody" {
		t.Errorf("the file has %q, want what somebody wrote", got)
	}
}

func TestAJournalReachesNoFileOutside(t *testing.T) {
	plan := planOf(t, 1)
	plan.Files[0].Path = "../outside.go"
	if err := os.WriteFile(filepath.Join(plan.Root, "../outside.go"), plan.Files[0].before, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := newJournal(plan); err != nil {
		t.Fatal(err)
	}
	if _, err := Finish(t.Context(), Options{Folder: plan.Root}); err == nil || !strings.Contains(err.Error(), "outside of the module") {
		t.Errorf("got the error %v, want that the file is outside", err)
	}
}

// A user who mends go.mod after a failure of "go mod tidy" may go on.
func TestFilesMayChangeOnceTheyAreInPlace(t *testing.T) {
	plan := planOf(t, 1)
	plan.skipTidy = false
	if err := newJournal(plan); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(plan.Root, "go.mod")
	if err := os.WriteFile(path, []byte("module example.com/a\n\ngo 1.26\n\nrequire (\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Finish(t.Context(), Options{Folder: plan.Root}); err == nil || !strings.Contains(err.Error(), "go.mod is not complete") {
		t.Fatalf("got the error %v, want one about go.mod", err)
	}
	for name, content := range map[string]string{"go.mod": "module example.com/a\n\ngo 1.26\n", "file0.go": "package a\n"} {
		if err := os.WriteFile(filepath.Join(plan.Root, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Finish(t.Context(), Options{Folder: plan.Root}); err != nil {
		t.Errorf("after go.mod is mended, the next run fails: %v", err)
	}
	if hasJournal(plan.Root) {
		t.Error("the journal is there in the end")
	}
}
