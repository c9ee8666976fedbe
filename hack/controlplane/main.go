// Command controlplane builds the control plane that the tests, the benchmarks and the demo run on: etcd,
// kube-apiserver and kube-controller-manager, in the versions that its go.mod requires. All it needs is Go and a
// module proxy. The binaries land in a folder of the user's cache, named after what they were built from, so that every
// checkout on the machine shares them; bin/controlplane in the checkout is a link to it.
//
// With the argument "cluster" it builds the rest of a simulated cluster in the same way, for bin/cluster:
// kube-scheduler in the version of the control plane, and kwok in the version that hack/kwok requires.
//
// Two variables of the environment change that:
//
//   - KUBEBUILDER_ASSETS names a folder of binaries of the control plane that exist already; it is not built then.
//   - ESPALIER_CONTROLPLANE_DIR is where built binaries are kept instead of the user's cache.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s := controlPlane
	if len(os.Args) > 1 && os.Args[1] == cluster.name {
		s = cluster
	}
	if err := run(ctx, s, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "controlplane:", err)
		stop()
		os.Exit(1)
	}
}

// run expects to be started in this module's folder, two levels below the root of the checkout.
func run(ctx context.Context, s set, out io.Writer) error {
	if assets := os.Getenv("KUBEBUILDER_ASSETS"); assets != "" && s.name == controlPlane.name {
		fmt.Fprintf(out, "controlplane: KUBEBUILDER_ASSETS is set, using %s; nothing to build\n", assets)
		return nil
	}
	r, err := readRecipe(".", s)
	if err != nil {
		return err
	}
	cache, err := cacheDir()
	if err != nil {
		return err
	}
	f := folder{path: filepath.Join(cache, r.key()), recipe: r, build: goBuild, check: runVersion}
	if err := f.fill(ctx, out); err != nil {
		return err
	}
	return link(f.path, filepath.Join("..", "..", "bin", s.name))
}

// cacheDir is the folder that holds one folder per recipe.
func cacheDir() (string, error) {
	if dir := os.Getenv("ESPALIER_CONTROLPLANE_DIR"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no place to keep the binaries, set ESPALIER_CONTROLPLANE_DIR: %w", err)
	}
	return filepath.Join(dir, "espalier", "controlplane"), nil
}

// link makes name a symbolic link to target, in one step when a link is there already.
func link(target, name string) error {
	if current, err := os.Readlink(name); err == nil && current == target {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	next := fmt.Sprintf("%s.%d", name, os.Getpid())
	if err := os.Symlink(target, next); err != nil {
		return err
	}
	if err := os.Rename(next, name); err != nil {
		return fmt.Errorf("could not put the link %s in place: %w", name, err)
	}
	return nil
}
