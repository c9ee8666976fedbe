package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// mark begins each kubeconfig of an environment. What has no mark is not ours to write over.
const mark = "# Written by a cluster of github.com/espalier-dev/espalier, which may write over it.\n"

const (
	folderMode fs.FileMode = 0o700
	fileMode   fs.FileMode = 0o600
)

// checkKubeConfigPath returns an error if there is something at the path of the kubeconfig that must stay.
func (e *Environment) checkKubeConfigPath() error {
	if e.KubeConfigPath == "" {
		return nil
	}
	info, err := os.Lstat(e.KubeConfigPath)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("KubeConfigPath: %w", err)
	}
	if info.Mode().IsRegular() {
		text, err := os.ReadFile(e.KubeConfigPath)
		if err != nil {
			return fmt.Errorf("KubeConfigPath: %w", err)
		}
		if bytes.HasPrefix(text, []byte(mark)) {
			return nil
		}
	}
	return fmt.Errorf("KubeConfigPath: there is something at %s that no cluster of this package has written: "+
		"remove it, or name another path", e.KubeConfigPath)
}

// writeKubeConfig writes the kubeconfig. A reader sees all of it or what was there before.
func (e *Environment) writeKubeConfig() error {
	if e.KubeConfigPath == "" {
		folder, err := os.MkdirTemp("", "espalier-cluster-")
		if err != nil {
			return fmt.Errorf("make a folder for the kubeconfig: %w", err)
		}
		e.ends = append(e.ends, func() error { return os.RemoveAll(folder) })
		e.KubeConfigPath = filepath.Join(folder, "kubeconfig")
	}
	if err := e.checkKubeConfigPath(); err != nil {
		return err
	}
	if err := writeFile(e.KubeConfigPath, e.KubeConfig); err != nil {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	return nil
}

// writeFile puts a file that only its owner can read in the place of what is at a path.
func writeFile(path string, text []byte) (err error) {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, folderMode); err != nil {
		return err
	}
	file, err := os.CreateTemp(folder, ".kubeconfig-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	_, err = file.Write(text)
	if err := errors.Join(err, file.Chmod(fileMode), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
