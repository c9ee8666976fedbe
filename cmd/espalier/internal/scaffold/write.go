package scaffold

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// unfinished is a file that says what is being written to a folder: a line for each file, with the digest of its
// content and its name. It is there until all is written.
const unfinished = ".espalier-new"

// staged is what a file is called until it is whole.
const staged = unfinished + "-file"

// maxUnfinished is how many bytes the list may have.
const maxUnfinished = 1 << 20

// Write writes the files of a new project to a folder. The folder must be empty but for ".git", unless force is set:
// then files of these names are written over, and others stay. A write that was interrupted is finished by another
// one, which needs no force for that: it removes what the first one has written, and it does not have. What somebody
// has changed since then is an error, and nothing is written.
func (f Files) Write(dir string, force bool) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("unable to make the folder of the project: %w", err)
	}
	left, err := readUnfinished(filepath.Join(dir, unfinished))
	switch {
	case errors.Is(err, fs.ErrNotExist) && force:
		err = nil
	case errors.Is(err, fs.ErrNotExist):
		err = isEmpty(dir)
	case err == nil && !force:
		err = f.replaceUnfinished(dir, left)
	}
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(f))
	for _, name := range names {
		left = append(left, digestLine(name, f[name]))
	}
	if err := writeFile(dir, unfinished, []byte(strings.Join(left, "\n")+"\n")); err != nil {
		return fmt.Errorf("unable to write the project: %w", err)
	}
	for _, name := range names {
		if err := writeFile(dir, name, f[name]); err != nil {
			return fmt.Errorf("unable to write the project: %w", err)
		}
	}
	return os.Remove(filepath.Join(dir, unfinished))
}

// digestLine is the line of a file in the list of what is being written.
func digestLine(name string, content []byte) string {
	return fmt.Sprintf("%x  %s", sha256.Sum256(content), name)
}

func readUnfinished(at string) ([]string, error) {
	content, err := os.ReadFile(at)
	if err != nil {
		return nil, err
	}
	if len(content) > maxUnfinished {
		return nil, fmt.Errorf("%s has %d bytes, and at most %d can be: remove it", at, len(content), maxUnfinished)
	}
	return strings.Split(strings.TrimSpace(string(content)), "\n"), nil
}

// replaceUnfinished removes what an interrupted write has written, and these files do not have. It fails before that
// if it finds, in the place of one of these files, something that the interrupted write has not written.
func (f Files) replaceUnfinished(dir string, left []string) error {
	for name, content := range f {
		at := filepath.Join(dir, filepath.FromSlash(name))
		there, err := os.ReadFile(at)
		if errors.Is(err, fs.ErrNotExist) || err == nil && bytes.Equal(there, content) {
			continue
		}
		if err != nil {
			return err
		}
		if !slices.Contains(left, digestLine(name, there)) {
			return fmt.Errorf("%s was not written by the run that was interrupted: move it, "+
				"or write over it with --force", at)
		}
	}
	for _, line := range left {
		_, name, _ := strings.Cut(line, "  ")
		if _, ok := f[name]; ok || !filepath.IsLocal(filepath.FromSlash(name)) {
			continue
		}
		at := filepath.Join(dir, filepath.FromSlash(name))
		if there, err := os.ReadFile(at); err != nil || digestLine(name, there) != line {
			continue
		}
		if err := os.Remove(at); err != nil {
			return err
		}
	}
	return nil
}

// writeFile writes a file below a folder as a whole.
func writeFile(dir, name string, content []byte) error {
	at := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	whole := filepath.Join(dir, staged)
	if err := os.WriteFile(whole, content, 0o644); err != nil {
		return err
	}
	return os.Rename(whole, at)
}

func isEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		// A run that was interrupted before it had a list has left this.
		if entry.Name() != ".git" && entry.Name() != staged {
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
		if err := writeFile(dir, name, f[name]); err != nil {
			return fmt.Errorf("unable to add to the project: %w", err)
		}
	}
	return nil
}
