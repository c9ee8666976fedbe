package program

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// maxProgram is how large a program may be, in bytes.
const maxProgram = 1 << 30

// Program is a program that may run: a copy of its bytes that nobody can change any more. Close lets go of it.
type Program struct {
	Name   string
	Digest Digest
	*image
}

// Load copies a file of a folder, and returns the copy if its digest is that of the list. The file is opened once, so
// what is put in its place later does not matter.
func Load(folder, name string, want Digest) (*Program, error) {
	return load(filepath.Join(folder, name), &want)
}

// LoadUnlisted copies a file, whatever its digest is. It is for tests, whose program is the test binary.
func LoadUnlisted(path string) (*Program, error) { return load(path, nil) }

func load(path string, want *Digest) (_ *Program, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("unable to run %s: %w", path, err)
		}
	}()
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is no file")
	case info.Size() > maxProgram:
		return nil, fmt.Errorf("it has %d bytes: at most %d are allowed", info.Size(), maxProgram)
	}
	name := filepath.Base(path)
	copied, err := newImage(name)
	if err != nil {
		return nil, err
	}
	digest, err := copyTo(copied.file, file)
	if err == nil && want != nil && digest != *want {
		err = fmt.Errorf("%w: it is %s, and %s is listed", ErrNotListed, digest, want)
	}
	if err == nil {
		err = copied.seal()
	}
	if err != nil {
		return nil, errors.Join(err, copied.Close())
	}
	return &Program{Name: name, Digest: digest, image: copied}, nil
}

// copyTo copies a file, and returns the digest of what was written.
func copyTo(to io.Writer, from io.Reader) (Digest, error) {
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(to, sum), io.LimitReader(from, maxProgram+1))
	if err == nil && n > maxProgram {
		err = fmt.Errorf("it has more than %d bytes", maxProgram)
	}
	return Digest(sum.Sum(nil)), err
}
