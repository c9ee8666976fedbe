package controlplane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

const (
	assetsVariable = "KUBEBUILDER_ASSETS"

	etcdBinary              = "etcd"
	apiServerBinary         = "kube-apiserver"
	controllerManagerBinary = "kube-controller-manager"
	schedulerBinary         = "kube-scheduler"
	kwokBinary              = "kwok"

	// versionTimeout is how long a good binary may take to print its version on a machine that is busy.
	versionTimeout = 30 * time.Second
)

// BinaryError says that a program of the control plane is missing or broken, and what to do about it.
type BinaryError struct {
	// Path of the program.
	Path string
	// Remedy is a sentence without a full stop.
	Remedy string
	// Err is the error of running it.
	Err error
}

func (e *BinaryError) Error() string {
	return fmt.Sprintf("cannot run the control plane: %s: %v; %s", e.Path, e.Err, e.Remedy)
}

func (e *BinaryError) Unwrap() error { return e.Err }

// binaries is the folder of the programs, and the remedy to print if one of them does not work.
type binaries struct {
	dir    string
	remedy string
}

// findBinaries chooses the folder; it does not look into it.
func findBinaries() (binaries, error) {
	if dir := os.Getenv(assetsVariable); dir != "" {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return binaries{}, fmt.Errorf("cannot run the control plane: %w", err)
		}
		return binaries{
			dir:    dir,
			remedy: fmt.Sprintf("unset %s and run: make controlplane", assetsVariable),
		}, nil
	}
	return builtBinaries("controlplane")
}

// findClusterBinaries chooses the folder of the programs that only simulated clusters need.
func findClusterBinaries() (binaries, error) { return builtBinaries("cluster") }

// builtBinaries returns the folder of the checkout that the target of make fills.
func builtBinaries(target string) (binaries, error) {
	start, err := os.Getwd()
	if err != nil {
		return binaries{}, fmt.Errorf("cannot run the control plane: no working directory to look from: %w", err)
	}
	root, err := checkoutOf(start)
	if err != nil {
		return binaries{}, err
	}
	return binaries{dir: filepath.Join(root, "bin", target), remedy: "run: make " + target}, nil
}

// checkoutOf finds the root of the checkout that the folder start is in.
func checkoutOf(start string) (string, error) {
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "hack", "controlplane", "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("cannot run the control plane: %s is not in a checkout of Espalier; set %s", start,
				assetsVariable)
		}
	}
}

func (b binaries) path(name string) string { return filepath.Join(b.dir, name) }

// check returns a *BinaryError for the first of the programs that cannot be run. It runs them, because only the
// operating system knows whether a file is a program for this machine.
func (b binaries) check(ctx context.Context, names ...string) error {
	errs := make([]error, len(names))
	var group sync.WaitGroup
	for i, name := range names {
		group.Go(func() { errs[i] = b.checkOne(ctx, b.path(name)) })
	}
	group.Wait()
	return cmp.Or(errs...)
}

func (b binaries) checkOne(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	err := exec.CommandContext(ctx, path, "--version").Run()
	if err == nil {
		return nil
	}
	return b.broken(path, err)
}

// broken returns the error for a program that cannot be run.
func (b binaries) broken(path string, err error) error {
	// Both repeat the path.
	var pathErr *os.PathError
	var execErr *exec.Error
	switch {
	case errors.As(err, &pathErr):
		err = pathErr.Err
	case errors.As(err, &execErr):
		err = execErr.Err
	}
	return &BinaryError{Path: path, Remedy: b.remedy, Err: err}
}
