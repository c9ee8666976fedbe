package migrate

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// modules are those of Espalier below its main one, whose packages are not in that.
var modules = []string{"generator/gotemplate", "generator/helm", "generator/kustomize", "testing/simulation"}

// unreleased is the version of a module that a replacement stands for.
const unreleased = "v0.0.0-00010101000000-000000000000"

// addModuleFile adds go.mod to the plan: it requires what the changed files import, and not any more what nothing
// imports.
func (p *Plan) addModuleFile(c *code, o Options) error {
	path := filepath.Join(p.Root, "go.mod")
	before, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	file, err := modfile.Parse(path, before, nil)
	if err != nil {
		return err
	}
	if err := p.noteOthers(c); err != nil {
		return err
	}
	for _, module := range p.needed() {
		if err := require(file, module, p.Root, o); err != nil {
			return err
		}
	}
	for _, of := range origins {
		if of.module == Module || p.imports[of.module] {
			continue
		}
		if err := leave(file, of.module, c.foreign[of.module]); err != nil {
			return err
		}
	}
	file.Cleanup()
	separateIndirect(file)
	file.Cleanup()
	after, err := file.Format()
	if err != nil {
		return err
	}
	if !bytes.Equal(before, after) {
		p.Files = append(p.Files, Change{Path: "go.mod", before: before, after: after})
	}
	return nil
}

// separateIndirect puts what is new beside the requirements that it belongs to.
func separateIndirect(file *modfile.File) {
	var all []*modfile.Require
	for _, r := range file.Require {
		all = append(all, &modfile.Require{Mod: r.Mod, Indirect: r.Indirect})
	}
	file.SetRequireSeparateIndirect(all)
}

// require has go.mod require a module of Espalier.
func require(file *modfile.File, module, root string, o Options) error {
	if o.Replace != "" {
		return replace(file, module, root, o.Replace, map[string]bool{})
	}
	for _, r := range file.Replace {
		if r.Old.Path == module { // the user has one
			return file.AddRequire(module, unreleased)
		}
	}
	if o.Version == "" {
		for _, r := range file.Require {
			if r.Mod.Path == module {
				return nil
			}
		}
		return errors.New("this program was not built from a release, so it does not know which version of " + Module +
			" to require: give --version, or a checkout by --replace")
	}
	return file.AddRequire(module, o.Version)
}

// replace has go.mod use the checkout for a module, and for those that it requires.
func replace(file *modfile.File, module, root, checkout string, done map[string]bool) error {
	if done[module] {
		return nil
	}
	done[module] = true
	folder := filepath.Join(checkout, strings.TrimPrefix(strings.TrimPrefix(module, Module), "/"))
	content, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--replace: %s has no go.mod, so it is no checkout of %s", folder, module)
	} else if err != nil {
		return err
	}
	theirs, err := modfile.ParseLax(filepath.Join(folder, "go.mod"), content, nil)
	if err != nil {
		return err
	}
	if err := file.AddRequire(module, unreleased); err != nil {
		return err
	}
	written, err := writtenFolder(root, folder)
	if err != nil {
		return err
	}
	if err := file.AddReplace(module, "", written, ""); err != nil {
		return err
	}
	for _, r := range theirs.Require {
		if r.Mod.Path == Module || strings.HasPrefix(r.Mod.Path, Module+"/") {
			if err := replace(file, r.Mod.Path, root, checkout, done); err != nil {
				return err
			}
		}
	}
	return nil
}

// writtenFolder returns what go.mod calls a folder: one that is relative to the current folder is relative to go.mod.
func writtenFolder(root, folder string) (string, error) {
	if filepath.IsAbs(folder) {
		return folder, nil
	}
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	// The root has no links in its path.
	if absolute, err = filepath.EvalSymlinks(absolute); err != nil {
		return "", err
	}
	relative, err := filepath.Rel(root, absolute)
	if err != nil {
		return "", err
	}
	if relative = filepath.ToSlash(relative); !modfile.IsDirectoryPath(relative) {
		relative = "./" + relative
	}
	return relative, nil
}

// leave removes what go.mod says of a module, or notes that only other modules need it.
func leave(file *modfile.File, module string, needed bool) error {
	required := slices.IndexFunc(file.Require, func(r *modfile.Require) bool { return r.Mod.Path == module })
	if needed {
		if required >= 0 {
			version := file.Require[required].Mod.Version
			if err := file.DropRequire(module); err != nil {
				return err
			}
			file.AddNewRequire(module, version, true)
		}
		return nil
	}
	for _, r := range file.Replace {
		if r.Old.Path == module {
			if err := file.DropReplace(r.Old.Path, r.Old.Version); err != nil {
				return err
			}
		}
	}
	return file.DropRequire(module)
}

// moduleOf is the module of Espalier that has a package.
func moduleOf(importPath string) string {
	for _, below := range modules {
		if path := Module + "/" + below; importPath == path || strings.HasPrefix(importPath, path+"/") {
			return path
		}
	}
	return Module
}
