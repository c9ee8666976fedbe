// Command release makes the modules of this repository as they are published: without the replace directives that
// lead to folders, each requiring the others at the version of the release. It writes them to a folder that GOPROXY
// can name, so that what "go run …@version" gets is tested before a tag is there.
//
//	release -version v1.2.3 -proxy DIR [-write] [-archives DIR] ROOT
//
// With -write it also changes the go.mod and go.sum files of the repository, for the commit to be tagged, and prints
// the tags. With -archives it also compiles the command espalier for each of -platforms, and writes the archives and
// the manifest for krew.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/mod/semver"
)

// options are the flags of the command.
type options struct {
	version, proxy, archives, platforms string
	write                               bool
}

func main() {
	o := options{}
	flag.StringVar(&o.version, "version", "", "the version of all modules, such as v1.2.3")
	flag.StringVar(&o.proxy, "proxy", "", "a folder to write the modules to, in the layout of a module proxy")
	flag.BoolVar(&o.write, "write", false, "change the go.mod and go.sum files of the repository, and print the tags")
	flag.StringVar(&o.archives, "archives", "", "a folder to write archives of the command to")
	flag.StringVar(&o.platforms, "platforms", defaultPlatforms, "what to compile the command for")
	flag.Parse()
	if err := o.run(flag.Args(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func (o options) run(args []string, out io.Writer) error {
	if len(args) != 1 {
		return fmt.Errorf("one argument is needed, not %d: the folder of the repository", len(args))
	}
	if !semver.IsValid(o.version) || semver.Canonical(o.version) != o.version {
		return fmt.Errorf("-version is %q, and must be a semantic version such as v1.2.3", o.version)
	}
	if o.proxy == "" {
		return errors.New("-proxy is missing: give a folder to write the modules to")
	}
	platforms, err := platformsOf(o.platforms)
	if err != nil {
		return err
	}
	proxy, err := filepath.Abs(o.proxy)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if err := snapshot(args[0], folder); err != nil {
		return err
	}
	modules, err := modulesOf(folder)
	if err != nil {
		return err
	}
	for _, m := range modules {
		if err := m.pin(o.version, modules); err != nil {
			return err
		}
		if err := m.publish(o.version, proxy); err != nil {
			return fmt.Errorf("module %s: %w", m.path(), err)
		}
	}
	for _, m := range modules {
		if o.write {
			if err := m.write(args[0], o.version, out); err != nil {
				return err
			}
		}
	}
	if o.archives == "" {
		return nil
	}
	return espalier(args[0]).build(o.version, proxy, o.archives, platforms)
}

// write changes the files of the module in the repository to what is published, and prints its tag.
func (m *released) write(root, version string, out io.Writer) error {
	for _, name := range []string{"go.mod", "go.sum"} {
		if err := copyFile(filepath.Join(m.folder, name), filepath.Join(root, m.dir, name)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(out, path.Join(m.dir, version))
	return err
}

// espalier is the command of this repository.
func espalier(root string) program {
	plugin := filepath.Join(root, "cmd", "espalier", "kubectl-espalier")
	const prefix = "github.com/espalier-dev/espalier"
	return program{
		prefix: prefix, pkg: prefix + "/cmd/espalier", name: "espalier",
		files: []member{
			{"LICENSE", 0o644, filepath.Join(root, "LICENSE")},
			{"kubectl_complete-espalier", 0o755, filepath.Join(plugin, "kubectl_complete-espalier")},
		},
		manifest: filepath.Join(plugin, "krew.yaml"),
	}
}
