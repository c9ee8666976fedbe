package scaffold

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// unfinished is a file that lists what is being written to a folder. It is there until all is.
const unfinished = ".espalier-new"

// Write writes the files of a new project to a folder. The folder must be empty but for ".git", unless force is set:
// then files of these names are written over, and others stay. A write that was interrupted is finished by another
// one, which needs no force for that: it removes what the first one has written, and it does not have.
func (f Files) Write(dir string, force bool) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("unable to make the folder of the project: %w", err)
	}
	left, err := os.ReadFile(filepath.Join(dir, unfinished))
	switch {
	case err == nil:
		if err := f.removeOthers(dir, strings.Fields(string(left))); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	case !force:
		if err := isEmpty(dir); err != nil {
			return err
		}
	}
	names := slices.Sorted(maps.Keys(f))
	if err := os.WriteFile(filepath.Join(dir, unfinished), []byte(strings.Join(names, "\n")+"\n"), 0o644); err != nil {
		return fmt.Errorf("unable to write the project: %w", err)
	}
	for _, name := range names {
		if err := writeFile(filepath.Join(dir, filepath.FromSlash(name)), f[name]); err != nil {
			return fmt.Errorf("unable to write the project: %w", err)
		}
	}
	return os.Remove(filepath.Join(dir, unfinished))
}

func writeFile(at string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	return os.WriteFile(at, content, 0o644)
}

// removeOthers removes those of the named files that are not among the files. What leads out of the folder is left.
func (f Files) removeOthers(dir string, names []string) error {
	for _, name := range names {
		if _, ok := f[name]; ok || !filepath.IsLocal(filepath.FromSlash(name)) {
			continue
		}
		err := os.Remove(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func isEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() != ".git" {
			return fmt.Errorf("%s is not empty, it has %s: name another folder, or write over files with --force",
				dir, entry.Name())
		}
	}
	return nil
}

// WriteNew writes the files below a folder, none of which may be there, unless it is as it would be written.
func (f Files) WriteNew(dir string) error {
	names := slices.Sorted(maps.Keys(f))
	for _, name := range names {
		at := filepath.Join(dir, filepath.FromSlash(name))
		switch content, err := os.ReadFile(at); {
		case err == nil && !bytes.Equal(content, f[name]):
			return fmt.Errorf("%s is there already, and nothing was written: move it, or name another kind", at)
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	for _, name := range names {
		if err := writeFile(filepath.Join(dir, filepath.FromSlash(name)), f[name]); err != nil {
			return fmt.Errorf("unable to add to the project: %w", err)
		}
	}
	return nil
}
