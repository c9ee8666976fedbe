package migrate_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const (
	module = "github.com/espalier-dev/espalier"
	peer   = "reconciler.io/runtime"
)

// checkout is the root of this repository.
var checkout = sync.OnceValues(func() (string, error) { return filepath.Abs("../../../..") })

// peerPackages are the packages of reconciler.io/runtime.
var peerPackages = []string{"apis", "duck", "reconcilers", "stash", "testing", "time", "tracker", "validation"}

// peerModule returns the folder of a module reconciler.io/runtime. Its packages are those of this repository, which have
// the same names with the same types, as the tests of internal/surface say. The folder is kept in the user's cache under
// a digest of what it has, so that the go command compiles it once.
var peerModule = sync.OnceValues(func() (string, error) {
	root, err := checkout()
	if err != nil {
		return "", err
	}
	files, err := peerFiles(root)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, file := range files {
		fmt.Fprintf(sum, "%s %d\n%s", file.path, len(file.content), file.content)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(cache, "espalier", "peer", hex.EncodeToString(sum.Sum(nil))[:16])
	if _, err := os.Stat(folder); err == nil {
		return folder, nil
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return "", err
	}
	building, err := os.MkdirTemp(filepath.Dir(folder), "building-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(building) }()
	for _, file := range files {
		if err := write(filepath.Join(building, file.path), file.content); err != nil {
			return "", err
		}
	}
	// Another process may have made it meanwhile.
	if err := os.Rename(building, folder); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return folder, nil
})

type file struct{ path, content string }

// peerFiles returns the files of that module.
func peerFiles(root string) ([]file, error) {
	arguments := []string{"list", "-deps", "-f", "{{with .Module}}{{if eq .Path \"" + module + "\"}}" +
		"{{range $.GoFiles}}{{$.Dir}}/{{.}}\n{{end}}{{range $.EmbedFiles}}{{$.Dir}}/{{.}}\n{{end}}{{end}}{{end}}"}
	for _, name := range peerPackages {
		arguments = append(arguments, "./"+name)
	}
	command := exec.Command("go", arguments...)
	command.Dir = root
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go %q: %w", arguments, err)
	}
	paths := append(strings.Fields(string(out)), filepath.Join(root, "go.mod"), filepath.Join(root, "go.sum"))
	var files []file
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return nil, err
		}
		files = append(files, file{relative, strings.ReplaceAll(string(content), module, peer)})
	}
	return files, nil
}

func write(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(content), 0o644)
}

// writeModuleFiles makes a folder the root of a module that uses the peer. It requires all that this repository does.
func writeModuleFiles(folder, name string) error {
	root, err := checkout()
	if err != nil {
		return err
	}
	theirs, err := peerModule()
	if err != nil {
		return err
	}
	content, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return err
	}
	_, rest, _ := strings.Cut(string(content), "\n")
	err = write(filepath.Join(folder, "go.mod"), "module "+name+"\n"+rest+
		"\nrequire "+peer+" v0.26.1\n\nreplace "+peer+" => "+theirs+"\n")
	sums, sumErr := os.ReadFile(filepath.Join(root, "go.sum"))
	return errors.Join(err, sumErr, write(filepath.Join(folder, "go.sum"), string(sums)))
}

// copyFixture copies a folder of testdata, as a module that uses the peer.
func copyFixture(name, folder string) error {
	return errors.Join(
		os.CopyFS(folder, os.DirFS(filepath.Join("testdata", name))), writeModuleFiles(folder, "example.com/"+name))
}

func needsCompiler(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it compiles operators")
	}
}
