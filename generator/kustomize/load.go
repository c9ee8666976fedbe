package kustomize

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// files are the contents of files, by path. A path has slashes, and no leading one.
type files map[string][]byte

var errLeaves = errors.New("the symbolic link leaves the folder")

// A chain of links that is longer than this is taken for a loop, as Linux does.
const maxLinks = 40

// source is where folders are read from: a file system, or the disk if there is none.
type source struct {
	files fs.FS
	// raw gets what is read, before it is decrypted.
	raw files
}

// locate returns the path of a folder, as it is used in [files].
func (s source) locate(name string) (string, error) {
	if s.files == nil {
		absolute, err := filepath.Abs(name)
		if err != nil {
			return "", err
		}
		return strings.TrimPrefix(filepath.ToSlash(absolute), "/"), nil
	}
	cleaned := path.Clean(strings.TrimPrefix(name, "/"))
	if cleaned == ".." || strings.HasPrefix(cleaned, "../") {
		return "", fmt.Errorf("the path %s leaves the file system", name)
	}
	return strings.TrimPrefix(cleaned, "."), nil
}

// read reads all files of a folder, which locate has returned.
func (s source) read(dir string, decrypt func([]byte, string) ([]byte, error)) (files, error) {
	from, top := s.files, dir
	if from == nil {
		root, err := os.OpenRoot("/" + dir)
		if err != nil {
			return nil, err
		}
		defer root.Close()
		from, top = root.FS(), ""
	}
	if err := checkFolder(from, top); err != nil {
		return nil, err
	}
	read := files{}
	walk := func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := readEntry(from, orDot(top), name, entry)
		if err != nil || content == nil {
			return err
		}
		if s.files == nil {
			name = path.Join(dir, name)
		}
		s.raw[name] = content
		if decrypt != nil {
			shown := name
			if s.files == nil {
				shown = "/" + name
			}
			if content, err = decrypt(content, shown); err != nil {
				return fmt.Errorf("decrypting %s: %w", shown, err)
			}
		}
		read[name] = content
		return nil
	}
	return read, fs.WalkDir(from, orDot(top), walk)
}

// readEntry returns nil for what is not a file.
func readEntry(from fs.FS, top, name string, entry fs.DirEntry) ([]byte, error) {
	target := name
	if entry.Type()&fs.ModeSymlink != 0 {
		var err error
		if target, err = follow(from, top, name); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		info, err := fs.Lstat(from, target)
		switch {
		case err != nil:
			return nil, err
		case info.IsDir() && isHidden(path.Base(name)):
			// The volume of a ConfigMap has such links, and its files are links through them.
			return nil, nil
		case info.IsDir():
			return nil, fmt.Errorf("%s: it is a symbolic link to a folder, which is not followed", name)
		case !info.Mode().IsRegular():
			return nil, nil
		}
	} else if !entry.Type().IsRegular() {
		return nil, nil
	}
	content, err := fs.ReadFile(from, target)
	if content == nil && err == nil {
		content = []byte{}
	}
	return content, err
}

// follow returns the path that a link stands for, without links.
func follow(from fs.FS, top, name string) (string, error) {
	done, rest := "", strings.Split(name, "/")
	for links := 0; len(rest) > 0; {
		next := path.Join(done, rest[0])
		info, err := fs.Lstat(from, next)
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			done, rest = next, rest[1:]
			continue
		}
		if links++; links > maxLinks {
			return "", errors.New("there are too many symbolic links")
		}
		target, err := fs.ReadLink(from, next)
		if err != nil {
			return "", err
		}
		joined := path.Join(done, target)
		if path.IsAbs(target) || !isWithin(joined, top) {
			return "", errLeaves
		}
		done, rest = "", append(strings.Split(joined, "/"), rest[1:]...)
	}
	return done, nil
}

// checkFolder returns an error unless dir is a folder, to which no symbolic link leads.
func checkFolder(from fs.FS, dir string) error {
	if !fs.ValidPath(orDot(dir)) {
		return fmt.Errorf("%q is no path of a folder", dir)
	}
	at := ""
	for _, element := range strings.Split(orDot(dir), "/") {
		at = path.Join(at, element)
		info, err := fs.Lstat(from, at)
		switch {
		case err != nil:
			return err
		case info.Mode()&fs.ModeSymlink != 0:
			return fmt.Errorf("%s: it is a symbolic link, which is not followed", at)
		case !info.IsDir():
			return fmt.Errorf("%s: it is no folder", at)
		}
	}
	return nil
}

func orDot(dir string) string {
	if dir == "" {
		return "."
	}
	return dir
}

// isWithin reports whether name is dir or below it. Both are clean.
func isWithin(name, dir string) bool {
	if dir == "" || dir == "." {
		return name != ".." && !strings.HasPrefix(name, "../")
	}
	return name == dir || strings.HasPrefix(name, dir+"/")
}

// relative returns the path of name in dir, which contains it.
func relative(name, dir string) string {
	if dir == "" {
		return name
	}
	return strings.TrimPrefix(name, dir+"/")
}

func isHidden(name string) bool {
	for _, element := range strings.Split(name, "/") {
		if strings.HasPrefix(element, ".") {
			return true
		}
	}
	return false
}
