package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// checkTimeout is how long a good binary may take to print its version.
const checkTimeout = 30 * time.Second

// folder holds the binaries of one recipe.
//
// Invariant: it exists only with all its binaries in it, since it is filled under another name and then renamed.
type folder struct {
	path   string
	recipe recipe
	// build compiles b into the file at path, check reports whether the program at path runs.
	build func(ctx context.Context, r recipe, b binary, path string) error
	check func(ctx context.Context, path string) error
}

// fill builds the binaries if one is missing or does not run, and prints to out what it does. If several processes fill
// one folder at the same time, one builds and the others wait for it.
func (f folder) fill(ctx context.Context, out io.Writer) error {
	if f.complete(ctx) == nil {
		fmt.Fprintf(out, "controlplane: Kubernetes %s is in %s\n", f.recipe.version, f.path)
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(f.path), 0o755); err != nil {
		return fmt.Errorf("no place to keep the binaries, set ESPALIER_CONTROLPLANE_DIR: %w", err)
	}
	unlock, err := lock(f.path+".lock", func() {
		fmt.Fprintln(out, "controlplane: another process is building the same binaries, waiting for it")
	})
	if err != nil {
		return err
	}
	defer unlock()

	missing := f.complete(ctx)
	if missing == nil {
		fmt.Fprintf(out, "controlplane: Kubernetes %s is in %s\n", f.recipe.version, f.path)
		return nil
	}
	fmt.Fprintf(out, "controlplane: building Kubernetes %s into %s (%v)\n", f.recipe.version, f.path, missing)
	return f.rebuild(ctx, out)
}

// complete returns nil when every binary is there and runs, else an error that names the first that does not.
func (f folder) complete(ctx context.Context) error {
	if _, err := os.Stat(f.path); err != nil {
		return fmt.Errorf("not built yet")
	}
	for _, b := range f.recipe.binaries {
		if err := f.check(ctx, filepath.Join(f.path, b.name)); err != nil {
			return fmt.Errorf("%s does not run: %w", b.name, err)
		}
	}
	return nil
}

// rebuild replaces the folder. The caller holds the lock, so no process uses the rest of an interrupted build.
func (f folder) rebuild(ctx context.Context, out io.Writer) error {
	next := f.path + ".building"
	if err := os.RemoveAll(next); err != nil {
		return err
	}
	if err := os.Mkdir(next, 0o755); err != nil {
		return err
	}
	defer os.RemoveAll(next)

	for _, b := range f.recipe.binaries {
		start := time.Now()
		fmt.Fprintf(out, "controlplane: building %s; on two cores about %d min the first time\n",
			b.name, int(b.firstTime.Minutes()))
		path := filepath.Join(next, b.name)
		if err := f.build(ctx, f.recipe, b, path); err != nil {
			return fmt.Errorf("could not build %s: %w", b.name, err)
		}
		if err := f.check(ctx, path); err != nil {
			return fmt.Errorf("what was built as %s does not run: %w", b.name, err)
		}
		fmt.Fprintf(out, "controlplane: built %s in %s\n", b.name, time.Since(start).Round(time.Second))
	}
	if err := os.RemoveAll(f.path); err != nil {
		return err
	}
	return os.Rename(next, f.path)
}

// goBuild compiles b with the toolchain on the PATH. The programs are built one after the other: each link of one of
// them takes gigabytes of memory.
func goBuild(ctx context.Context, r recipe, b binary, path string) error {
	args := append([]string{"build"}, r.flags()...)
	cmd := exec.CommandContext(ctx, "go", append(args, "-o", path, b.pkg)...)
	cmd.Dir = b.module
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd.Run()
}

// runVersion reports whether the program at path can be run at all.
func runVersion(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	return exec.CommandContext(ctx, path, "--version").Run()
}
