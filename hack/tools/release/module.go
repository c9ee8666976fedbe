package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

// unreleased are the folders whose modules are for this repository alone.
var unreleased = []string{"examples", "hack", "test"}

// released is a module of the repository that has versions.
type released struct {
	// root is the folder of the repository, and dir the one of the module in it, with slashes; "." is root itself.
	root, dir string
	mod       *modfile.File
	// files are those of the module, with slashes, relative to dir.
	files []string
	// license is the file of the repository that the module has as its LICENSE; empty if it has one of its own.
	license string
	// changed has the content of the files that are published otherwise than they are in the repository.
	changed map[string][]byte
}

// sum has the two hashes of a module in a go.sum file.
type sum struct {
	zip, mod string
}

func (m *released) path() string { return m.mod.Module.Mod.Path }

func (m *released) at(version string) module.Version {
	return module.Version{Path: m.path(), Version: version}
}

// tag returns the tag that publishes the module.
func (m *released) tag(version string) string { return path.Join(m.dir, version) }

// modulesOf returns the modules in a folder that are released. Each comes after those that it requires.
func modulesOf(root string) ([]*released, error) {
	command := exec.Command("git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("git could not list the files of %s: %w", root, err)
	}
	files := strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
	folders := map[string]*released{}
	for _, file := range files {
		if path.Base(file) == "go.mod" {
			folders[path.Dir(file)] = &released{root: root, dir: path.Dir(file)}
		}
	}
	for _, file := range files {
		dir := path.Dir(file)
		for folders[dir] == nil && dir != "." {
			dir = path.Dir(dir)
		}
		if m := folders[dir]; m != nil {
			m.files = append(m.files, strings.TrimPrefix(file, strings.TrimPrefix(dir+"/", "./")))
		}
	}
	maps.DeleteFunc(folders, func(dir string, _ *released) bool { return !isReleased(dir) })
	for dir, m := range folders {
		name := filepath.Join(root, dir, "go.mod")
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if m.mod, err = modfile.Parse(name, content, nil); err != nil {
			return nil, err
		}
		if !slices.Contains(m.files, "LICENSE") && slices.Contains(files, "LICENSE") {
			m.license = filepath.Join(root, "LICENSE")
		}
	}
	return inOrder(folders)
}

func isReleased(dir string) bool {
	parts := strings.Split(dir, "/")
	return !slices.Contains(unreleased, parts[0]) && !slices.Contains(parts, "testdata")
}

// inOrder sorts modules so that each comes after those that it requires.
func inOrder(folders map[string]*released) ([]*released, error) {
	byPath := func(a, b *released) int { return strings.Compare(a.path(), b.path()) }
	rest := slices.SortedFunc(maps.Values(folders), byPath)
	var sorted []*released
	for len(rest) > 0 {
		i := slices.IndexFunc(rest, func(m *released) bool {
			return !slices.ContainsFunc(rest, m.requires)
		})
		if i < 0 {
			return nil, fmt.Errorf("modules require each other in a circle, among them %s", rest[0].path())
		}
		sorted, rest = append(sorted, rest[i]), slices.Delete(rest, i, i+1)
	}
	return sorted, nil
}

func (m *released) requires(other *released) bool {
	return slices.ContainsFunc(m.mod.Require, func(r *modfile.Require) bool { return r.Mod.Path == other.path() })
}

// pin has the module require the others at a version, with their hashes, and drops what leads to folders.
func (m *released) pin(version string, modules []*released, sums map[module.Version]sum) error {
	for _, r := range slices.Clone(m.mod.Replace) {
		if r.New.Version != "" {
			return fmt.Errorf("module %s replaces %s by another module, which counts for nobody who requires it",
				m.path(), r.Old.Path)
		}
		if err := m.mod.DropReplace(r.Old.Path, r.Old.Version); err != nil {
			return err
		}
	}
	content, err := os.ReadFile(filepath.Join(m.root, m.dir, "go.sum"))
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	for _, other := range modules {
		if !m.requires(other) {
			continue
		}
		if err := m.mod.AddRequire(other.path(), version); err != nil {
			return err
		}
		at := other.at(version)
		lines = append(lines, fmt.Sprintf("%s %s %s", at.Path, at.Version, sums[at].zip),
			fmt.Sprintf("%s %s/go.mod %s", at.Path, at.Version, sums[at].mod))
	}
	m.mod.Cleanup()
	mod, err := m.mod.Format()
	if err != nil {
		return err
	}
	slices.Sort(lines)
	m.changed = map[string][]byte{"go.mod": mod, "go.sum": []byte(strings.Join(lines, "\n") + "\n")}
	return nil
}

// open returns the content of a file as it is published.
func (m *released) open(name string) ([]byte, error) {
	if content, ok := m.changed[name]; ok {
		return bytes.Clone(content), nil
	}
	if name == "LICENSE" && m.license != "" {
		return os.ReadFile(m.license)
	}
	return os.ReadFile(filepath.Join(m.root, m.dir, name))
}
