package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/template"
)

// platform is an operating system and an architecture, in the words of Go.
type platform struct {
	OS, Arch string
}

// defaultPlatforms have archives unless others are asked for.
const defaultPlatforms = "linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64"

func platformsOf(text string) ([]platform, error) {
	var all []platform
	for _, field := range strings.Fields(text) {
		system, arch, ok := strings.Cut(field, "/")
		if !ok || system == "" || arch == "" {
			return nil, fmt.Errorf("-platforms has %q, and must be pairs such as linux/amd64", field)
		}
		all = append(all, platform{system, arch})
	}
	if len(all) == 0 {
		return nil, errors.New("-platforms names none")
	}
	return all, nil
}

// archived is a platform with its archive, as the manifest for krew has it.
type archived struct {
	platform
	File, Bin, SHA256 string
}

// member is a file of an archive.
type member struct {
	name string
	mode int64
	path string
}

// program is what archives are made of: a command of a module that the proxy has.
type program struct {
	// prefix begins the paths of the modules of the proxy, pkg is that of the package, and name is the program.
	prefix, pkg, name string
	// files are those that the archives have beside the program.
	files []member
	// manifest is the template of the manifest for krew.
	manifest string
}

// build compiles the program of a version for each platform, and writes an archive for each, and the manifest, to a
// folder. The module comes from a proxy, so that the program knows its version, and is the one of "go install".
func (p program) build(version, proxy, folder string, platforms []platform) error {
	source, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(source)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	proxies, err := goCommand(source, os.Environ(), "env", "GOPROXY")
	if err != nil {
		return err
	}
	env := append(os.Environ(), "GOPROXY=file://"+proxy+","+proxies, "GONOSUMDB="+p.prefix, "GOWORK=off")
	for _, args := range [][]string{{"mod", "init", "archive"}, {"get", p.pkg + "@" + version}} {
		if _, err := goCommand(source, env, args...); err != nil {
			return err
		}
	}
	var made []archived
	for _, on := range platforms {
		name, suffix := p.name, ".tar.gz"
		if on.OS == "windows" {
			name, suffix = p.name+".exe", ".zip"
		}
		binary := member{name, 0o755, filepath.Join(source, name)}
		cross := append(env, "GOOS="+on.OS, "GOARCH="+on.Arch, "CGO_ENABLED=0")
		_, err := goCommand(source, cross, "build", "-trimpath", "-ldflags=-s -w", "-o", binary.path, p.pkg)
		if err != nil {
			return err
		}
		file := fmt.Sprintf("%s_%s_%s_%s%s", p.name, version, on.OS, on.Arch, suffix)
		hash, err := pack(filepath.Join(folder, file), append([]member{binary}, p.files...))
		if err != nil {
			return fmt.Errorf("unable to write %s: %w", file, err)
		}
		made = append(made, archived{on, file, binary.name, hash})
	}
	return p.describe(version, folder, made)
}

// describe writes the manifest for krew.
func (p program) describe(version, folder string, made []archived) error {
	manifest, err := template.ParseFiles(p.manifest)
	if err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(folder, filepath.Base(p.manifest)))
	if err != nil {
		return err
	}
	err = manifest.Option("missingkey=error").Execute(out, map[string]any{"Version": version, "Archives": made})
	return errors.Join(err, out.Close())
}

func goCommand(folder string, env []string, args ...string) (printed string, err error) {
	command := exec.Command("go", args...)
	command.Dir, command.Env = folder, env
	out, err := command.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// pack writes an archive, in the format that its name says, and returns its SHA-256. The same files make the same one.
func pack(name string, members []member) (string, error) {
	out := &bytes.Buffer{}
	add, end := packTar(out)
	if strings.HasSuffix(name, ".zip") {
		add, end = packZip(out)
	}
	for _, m := range members {
		content, err := os.ReadFile(m.path)
		if err != nil {
			return "", err
		}
		if err := add(m, content); err != nil {
			return "", err
		}
	}
	if err := end(); err != nil {
		return "", err
	}
	hash := sha256.Sum256(out.Bytes())
	return hex.EncodeToString(hash[:]), os.WriteFile(name, out.Bytes(), 0o644)
}

func packZip(out io.Writer) (add func(member, []byte) error, end func() error) {
	w := zip.NewWriter(out)
	return func(m member, content []byte) error {
		header := &zip.FileHeader{Name: m.name, Method: zip.Deflate}
		header.SetMode(os.FileMode(m.mode))
		entry, err := w.CreateHeader(header)
		if err != nil {
			return err
		}
		_, err = entry.Write(content)
		return err
	}, w.Close
}

func packTar(out io.Writer) (add func(member, []byte) error, end func() error) {
	compressed := gzip.NewWriter(out)
	w := tar.NewWriter(compressed)
	return func(m member, content []byte) error {
		if err := w.WriteHeader(&tar.Header{Name: m.name, Mode: m.mode, Size: int64(len(content))}); err != nil {
			return err
		}
		_, err := w.Write(content)
		return err
	}, func() error { return errors.Join(w.Close(), compressed.Close()) }
}
