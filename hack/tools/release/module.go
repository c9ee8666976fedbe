package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

// unreleased are the folders whose modules are for this repository alone.
var unreleased = []string{"examples", "hack", "test"}

// released is a module of the repository that has versions.
type released struct {
	// dir is the folder of the module in the repository, with slashes; "." is the repository itself. folder is where
	// its files are as they are published.
	dir, folder string
	mod         *modfile.File
	// sums are the lines of a go.sum file for the version, once it is published.
	sums []string
}

// snapshot copies the files of a repository that git knows, or would add, to a folder.
func snapshot(root, folder string) error {
	command := exec.Command("git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return fmt.Errorf("git could not list the files of %s: %w", root, err)
	}
	for _, file := range strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 }) {
		// Git also lists a file that was removed since.
		err := copyFile(filepath.Join(root, file), filepath.Join(folder, file))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o644)
}

// modulesOf returns the modules in a folder that are released. None of them is below an internal folder, whose packages
// nobody else can import. Each comes after those that it requires.
func modulesOf(root string) ([]*released, error) {
	var modules []*released
	err := fs.WalkDir(os.DirFS(root), ".", func(file string, _ fs.DirEntry, err error) error {
		parts := strings.Split(file, "/")
		unpublished := slices.Contains(unreleased, parts[0]) || slices.Contains(parts, "testdata") ||
			slices.Contains(parts, "internal")
		if err != nil || unpublished || path.Base(file) != "go.mod" {
			return err
		}
		m := &released{dir: path.Dir(file), folder: filepath.Join(root, path.Dir(file))}
		name := filepath.Join(root, file)
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if m.mod, err = modfile.Parse(name, content, nil); err != nil {
			return err
		}
		modules = append(modules, m)
		// A module without a license of its own has that of the repository.
		license := filepath.Join(m.folder, "LICENSE")
		if _, err := os.Stat(license); errors.Is(err, fs.ErrNotExist) {
			return copyFile(filepath.Join(root, "LICENSE"), license)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return inOrder(modules)
}

// inOrder sorts modules so that each comes after those that it requires.
func inOrder(rest []*released) (sorted []*released, err error) {
	for len(rest) > 0 {
		i := slices.IndexFunc(rest, func(m *released) bool { return !slices.ContainsFunc(rest, m.requires) })
		if i < 0 {
			return nil, fmt.Errorf("modules require each other in a circle, among them %s", rest[0].path())
		}
		sorted, rest = append(sorted, rest[i]), slices.Delete(rest, i, i+1)
	}
	return sorted, nil
}

func (m *released) path() string { return m.mod.Module.Mod.Path }

func (m *released) requires(other *released) bool {
	return slices.ContainsFunc(m.mod.Require, func(r *modfile.Require) bool { return r.Mod.Path == other.path() })
}

// pin has the module require the others at a version, with their hashes, and drops what leads to folders.
func (m *released) pin(version string, modules []*released) error {
	for _, r := range slices.Clone(m.mod.Replace) {
		if r.New.Version != "" {
			return fmt.Errorf("module %s replaces %s by another module, which counts for nobody who requires it",
				m.path(), r.Old.Path)
		}
		if err := m.mod.DropReplace(r.Old.Path, r.Old.Version); err != nil {
			return err
		}
	}
	content, err := os.ReadFile(filepath.Join(m.folder, "go.sum"))
	if err != nil {
		return err
	}
	sums := strings.Split(strings.TrimSpace(string(content)), "\n")
	for _, other := range modules {
		if m.requires(other) {
			if err := m.mod.AddRequire(other.path(), version); err != nil {
				return err
			}
			sums = append(sums, other.sums...)
		}
	}
	m.mod.Cleanup()
	mod, err := m.mod.Format()
	if err != nil {
		return err
	}
	slices.Sort(sums)
	return errors.Join(os.WriteFile(filepath.Join(m.folder, "go.mod"), mod, 0o644),
		os.WriteFile(filepath.Join(m.folder, "go.sum"), []byte(strings.Join(sums, "\n")+"\n"), 0o644))
}

// publish writes a version of the module to a proxy. Go makes the same archive of the tag.
func (m *released) publish(version, proxy string) error {
	at := module.Version{Path: m.path(), Version: version}
	escaped, err := module.EscapePath(at.Path)
	if err != nil {
		return err
	}
	folder := filepath.Join(proxy, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	archive := &bytes.Buffer{}
	if err := zip.CreateFromDir(archive, at, m.folder); err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(m.folder, "go.mod"))
	if err != nil {
		return err
	}
	info, err := json.Marshal(map[string]any{"Version": version, "Time": time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		version + ".zip": archive.Bytes(), version + ".mod": mod, version + ".info": info,
		"list": []byte(version + "\n"),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
			return err
		}
	}
	zipped, err := dirhash.HashZip(filepath.Join(folder, version+".zip"), dirhash.Hash1)
	if err != nil {
		return err
	}
	open := func(string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(mod)), nil }
	hash, err := dirhash.Hash1([]string{"go.mod"}, open)
	line := at.Path + " " + version
	m.sums = []string{line + " " + zipped, line + "/go.mod " + hash}
	return err
}
