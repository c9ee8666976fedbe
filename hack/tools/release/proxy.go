package main

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

// publish writes a version of the module to a proxy, and returns its hashes. Go makes the same file of the tag.
func (m *released) publish(version, proxy string) (sum, error) {
	folder, err := os.MkdirTemp("", "release-")
	if err != nil {
		return sum{}, err
	}
	defer os.RemoveAll(folder)
	archive := filepath.Join(folder, "module.zip")
	out, err := os.Create(archive)
	if err != nil {
		return sum{}, err
	}
	if err := zip.Create(out, m.at(version), m.contents()); err != nil {
		out.Close()
		return sum{}, err
	}
	if err := out.Close(); err != nil {
		return sum{}, err
	}
	var s sum
	if s.zip, err = dirhash.HashZip(archive, dirhash.Hash1); err != nil {
		return sum{}, err
	}
	s.mod, err = dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(m.changed["go.mod"])), nil
	})
	if err != nil {
		return sum{}, err
	}
	return s, m.store(version, proxy, archive)
}

// store puts a version into the folder of a proxy.
func (m *released) store(version, proxy, archive string) error {
	escaped, err := module.EscapePath(m.path())
	if err != nil {
		return err
	}
	folder := filepath.Join(proxy, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	content, err := os.ReadFile(archive)
	if err != nil {
		return err
	}
	info, err := json.Marshal(map[string]any{"Version": version, "Time": time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		version + ".zip": content, version + ".mod": m.changed["go.mod"], version + ".info": info,
		"list": []byte(version + "\n"),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// contents are the files of the module for its archive.
func (m *released) contents() []zip.File {
	var all []zip.File
	for _, name := range m.files {
		all = append(all, file{m, name})
	}
	if m.license != "" {
		all = append(all, file{m, "LICENSE"})
	}
	return all
}

// file is a file of a module as it is published.
type file struct {
	of   *released
	name string
}

func (f file) Path() string { return f.name }

func (f file) Lstat() (fs.FileInfo, error) {
	if f.name == "LICENSE" && f.of.license != "" {
		return os.Lstat(f.of.license)
	}
	info, err := os.Lstat(filepath.Join(f.of.root, f.of.dir, f.name))
	if content, ok := f.of.changed[f.name]; ok && err == nil {
		return sized{info, int64(len(content))}, nil
	}
	return info, err
}

func (f file) Open() (io.ReadCloser, error) {
	content, err := f.of.open(f.name)
	if err != nil {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(content)), nil
}

// sized is what is known of a file whose content is another one.
type sized struct {
	fs.FileInfo
	size int64
}

func (s sized) Size() int64 { return s.size }
