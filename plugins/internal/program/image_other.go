//go:build !linux

package program

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// image is a file in a folder that nobody but the user of the operator can read or write.
type image struct {
	folder string
	file   *os.File
}

func newImage(name string) (*image, error) {
	folder, err := os.MkdirTemp("", "espalier-plugin-")
	if err != nil {
		return nil, fmt.Errorf("unable to copy it: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(folder, name), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o700)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("unable to copy it: %w", err), os.RemoveAll(folder))
	}
	return &image{folder: folder, file: file}, nil
}

// seal ends the writing. A system does not run a file that is open for writing.
func (i *image) seal() error { return i.file.Close() }

// Command returns the path to start the copy by.
func (i *image) Command() (path string, file *os.File) { return i.file.Name(), nil }

// Close removes the copy.
func (i *image) Close() error {
	_ = i.file.Close() // as a rule it is closed
	return os.RemoveAll(i.folder)
}
