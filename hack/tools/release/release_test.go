package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// repository has a module at its root, one that requires it, and two that are not released.
var repository = map[string]string{
	"LICENSE":           "do as you like\n",
	"go.mod":            "module example.com/house\n\ngo 1.26\n",
	"go.sum":            "\n",
	"house.go":          "package house\n\nconst Name = \"house\"\n",
	"testdata/t/go.mod": "module example.com/t\n\ngo 1.26\n",
	"testdata/t/t.go":   "package t\n",
	"door/go.mod":       "module example.com/house/door\n\ngo 1.26\n\nrequire example.com/house v0.0.0\n\nreplace example.com/house => ../\n",
	"door/go.sum":       "\n",
	"door/main.go": "package main\n\nimport \"os\"\nimport \"example.com/house\"\n\n" +
		"func main() { os.Stdout.WriteString(house.Name + \"\\n\") }\n",
	"hack/tools/go.mod":  "module example.com/house/hack/tools\n\ngo 1.26\n",
	"hack/tools/main.go": "package main\n\nfunc main() {}\n",
}

func newRepository(t *testing.T, changed map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for _, files := range []map[string]string{repository, changed} {
		for name, content := range files {
			path := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if out, err := exec.Command("git", "-C", root, "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("git init: %v: %s", err, out)
	}
	return root
}

// goIn runs go in a folder, with the modules of the proxy and nothing else, and returns what is printed. The error has
// what is said on the standard error output, where go tells of downloads.
func goIn(t *testing.T, folder, proxy string, args ...string) (string, error) {
	t.Helper()
	command := exec.Command("go", args...)
	command.Dir = folder
	command.Env = append(os.Environ(), "GOPROXY=file://"+proxy, "GONOSUMDB=example.com", "GOFLAGS=-modcacherw",
		"GOMODCACHE="+t.TempDir(), "GOTOOLCHAIN=local", "GOWORK=off")
	said := &bytes.Buffer{}
	command.Stderr = said
	out, err := command.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, said)
	}
	return string(out), err
}

// publish writes version 1.2.3 of a repository to a proxy.
func publish(root, proxy string) error {
	return options{version: "v1.2.3", proxy: proxy, platforms: "linux/amd64"}.run([]string{root}, io.Discard)
}

// A program of the proxy runs by its version, and by @latest, though the repository replaces what it requires.
func TestRunsByVersion(t *testing.T) {
	root, proxy := newRepository(t, nil), t.TempDir()
	if err := publish(root, proxy); err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"v1.2.3", "latest"} {
		if out, err := goIn(t, t.TempDir(), proxy, "run", "example.com/house/door@"+version); err != nil || out != "house\n" {
			t.Errorf("door@%s prints %q and ends with %v, not with house", version, out, err)
		}
	}
	if out, err := goIn(t, root, proxy, "list", "-m", "example.com/house/hack/tools@v1.2.3"); err == nil {
		t.Errorf("a module of hack is published: %s", out)
	}
	if got := read(t, filepath.Join(root, "door/go.mod")); got != repository["door/go.mod"] {
		t.Errorf("without -write go.mod became %q", got)
	}
}

// An archive has the files of its module alone, and the license.
func TestArchive(t *testing.T) {
	root, proxy := newRepository(t, nil), t.TempDir()
	if err := publish(root, proxy); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"house":      {"LICENSE", "go.mod", "go.sum", "house.go"},
		"house/door": {"LICENSE", "go.mod", "go.sum", "main.go"},
	} {
		archive, err := zip.OpenReader(filepath.Join(proxy, "example.com", name, "@v", "v1.2.3.zip"))
		if err != nil {
			t.Fatal(err)
		}
		defer archive.Close()
		var got []string
		for _, f := range archive.File {
			got = append(got, strings.TrimPrefix(f.Name, "example.com/"+name+"@v1.2.3/"))
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("the archive of %s has %q, not %q", name, got, want)
		}
	}
}

// With -write the module builds in the repository once the version is published.
func TestWrite(t *testing.T) {
	root, proxy := newRepository(t, nil), t.TempDir()
	var tags strings.Builder
	err := options{version: "v1.2.3", proxy: proxy, platforms: "linux/amd64", write: true}.run([]string{root}, &tags)
	if want := "v1.2.3\ndoor/v1.2.3\n"; err != nil || tags.String() != want {
		t.Errorf("the tags are %q with %v, not %q", tags.String(), err, want)
	}
	if got := read(t, filepath.Join(root, "door/go.mod")); strings.Contains(got, "replace") ||
		!strings.Contains(got, "example.com/house v1.2.3") {
		t.Errorf("go.mod is %q: it must require v1.2.3, and replace nothing", got)
	}
	if out, err := goIn(t, filepath.Join(root, "door"), proxy, "run", "-mod=readonly", "."); err != nil || out != "house\n" {
		t.Errorf("door prints %q and ends with %v", out, err)
	}
}

// Without a folder for the proxy, nothing is written where the command runs.
func TestNoProxy(t *testing.T) {
	root := newRepository(t, nil)
	t.Chdir(t.TempDir())
	if err := publish(root, ""); err == nil || !strings.Contains(err.Error(), "-proxy is missing") {
		t.Errorf("the error is %v, not that -proxy is missing", err)
	}
	if entries, err := os.ReadDir("."); err != nil || len(entries) > 0 {
		t.Errorf("%v was written (%v)", entries, err)
	}
}

func TestRefusals(t *testing.T) {
	for name, test := range map[string]struct {
		version   string
		platforms string
		changed   map[string]string
		want      string
	}{
		"no version":      {"", "linux/amd64", nil, `-version is "", and must be a semantic version`},
		"a short version": {"v1", "linux/amd64", nil, `-version is "v1", and must be a semantic version`},
		"no platform":     {"v1.0.0", " ", nil, "-platforms names none"},
		"half a platform": {"v1.0.0", "linux", nil, `-platforms has "linux", and must be pairs such as linux/amd64`},
		"a foreign replace": {
			"v1.0.0", "linux/amd64", replacing("example.com/other => example.com/fork v1.0.0"),
			"replaces example.com/other by another module",
		},
		"a circle": {"v1.0.0", "linux/amd64", map[string]string{
			"go.mod": "module example.com/house\n\nrequire example.com/house/door v0.0.0\n",
		}, "modules require each other in a circle"},
		"a broken go.mod": {"v1.0.0", "linux/amd64", map[string]string{"go.mod": "modul x\n"}, "go.mod:1: unknown directive: modul"},
	} {
		t.Run(name, func(t *testing.T) {
			o := options{version: test.version, proxy: t.TempDir(), platforms: test.platforms}
			err := o.run([]string{newRepository(t, test.changed)}, io.Discard)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, not %q", err, test.want)
			}
		})
	}
}

func replacing(what string) map[string]string {
	return map[string]string{"door/go.mod": repository["door/go.mod"] + "replace " + what + "\n"}
}

func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// A program has an archive for each platform, with the license, and a manifest with their hashes.
func TestArchives(t *testing.T) {
	root, proxy, folder := newRepository(t, nil), t.TempDir(), t.TempDir()
	if err := publish(root, proxy); err != nil {
		t.Fatal(err)
	}
	manifest := filepath.Join(root, "krew.yaml")
	const text = "{{range .Archives}}{{.OS}} {{.Arch}} {{.File}} {{.Bin}} {{.SHA256}}\n{{end}}"
	if err := os.WriteFile(manifest, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOPROXY", "file://"+proxy)
	t.Setenv("GOMODCACHE", t.TempDir())
	t.Setenv("GOFLAGS", "-modcacherw")
	p := program{
		prefix: "example.com", pkg: "example.com/house/door", name: "door", manifest: manifest,
		files: []member{{"LICENSE", 0o644, filepath.Join(root, "LICENSE")}},
	}
	if err := p.build("v1.2.3", proxy, folder, []platform{{"linux", "arm64"}, {"windows", "amd64"}}); err != nil {
		t.Fatal(err)
	}
	want := ""
	for _, a := range []struct{ start, file string }{
		{"linux arm64", "door_v1.2.3_linux_arm64.tar.gz door"},
		{"windows amd64", "door_v1.2.3_windows_amd64.zip door.exe"},
	} {
		name, _, _ := strings.Cut(a.file, " ")
		hash := sha256.Sum256([]byte(read(t, filepath.Join(folder, name))))
		want += a.start + " " + a.file + " " + hex.EncodeToString(hash[:]) + "\n"
	}
	if got := read(t, filepath.Join(folder, "krew.yaml")); got != want {
		t.Errorf("the manifest is %q, not %q", got, want)
	}
	out, err := exec.Command("tar", "-tzf", filepath.Join(folder, "door_v1.2.3_linux_arm64.tar.gz")).Output()
	if err != nil || string(out) != "door\nLICENSE\n" {
		t.Errorf("the archive has %q with %v, not door and LICENSE", out, err)
	}
	zipped, err := zip.OpenReader(filepath.Join(folder, "door_v1.2.3_windows_amd64.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer zipped.Close()
	if len(zipped.File) != 2 || zipped.File[0].Name != "door.exe" || zipped.File[0].Mode()&0o111 == 0 {
		t.Errorf("the archive for Windows has %v, not door.exe, which may be run, and LICENSE", zipped.File)
	}
}
