package simulation

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/internal/fault"
)

var update = flag.Bool("simulation.update", false, "write the golden files of stories instead of comparing them")

// Golden compares the cluster with a golden file, and fails the story if it differs. The file is a txtar archive: a
// file "writes" with what the operator has written since the story began or Golden was called last, and a file in YAML
// for each object that is not as it was before the operator started, such as "shop/Deployment.apps/web.yaml". Leases
// and Events are left out. The flag -simulation.update writes the file. A path is relative to the folder of the test.
//
// A value that differs between runs is masked. The metadata that a server sets is left out: the UID, the version, the
// generation, the time of creation, and the managed fields. A UID elsewhere says whose it is, as the address of a Pod
// does; a time says that there is one; the observed generation says whether it is current; conditions have no time of
// transition; a generated name is its prefix with a star and, from the second object on, a number. The writes are in
// the order of their objects, and those of an object in their order; one that follows the same one is left out.
//
// Edit is called with each object before it is masked, and may change it, such as to remove what an operator draws by
// chance.
func (w *World) Golden(path string, edit ...func(obj *unstructured.Unstructured)) {
	w.Helper()
	w.goOn()
	if w.isEarly() {
		return
	}
	got := w.archive(edit)
	if *update {
		if err := writeGolden(path, got); err != nil {
			w.Fatalf("write a golden file: %v", err)
		}
		return
	}
	wanted, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		w.Fatalf("there is no golden file %s: the flag -simulation.update writes it", path)
	}
	if err != nil {
		w.Fatalf("read a golden file: %v", err)
	}
	if text := compareArchives(txtar.Parse(wanted), got); text != "" {
		w.Errorf("the cluster is not as in %s: the flag -simulation.update writes the file anew (-file +cluster):\n%s",
			path, text)
	}
}

// archive returns what a golden file holds.
func (w *World) archive(edit []func(obj *unstructured.Unstructured)) *txtar.Archive {
	now := w.journal.State()
	items := now.Since(*w.begun.Load(), func(fields map[string]any) {
		for _, change := range edit {
			change(&unstructured.Unstructured{Object: fields})
		}
	})
	var lines []string
	names := now.Names()
	for _, made := range w.takeWrites(func(all *writes) *int { return &all.golden }) {
		made.key, _ = names.Alias(made.key)
		lines = append(lines, made.String())
	}
	written := strings.Join(append(normalLines(lines), ""), "\n")
	archive := &txtar.Archive{Files: []txtar.File{{Name: "writes", Data: []byte(written)}}}
	for _, item := range items {
		data, err := yaml.Marshal(item.Fields)
		if err != nil {
			data = []byte(err.Error() + "\n")
		}
		archive.Files = append(archive.Files, txtar.File{Name: fileOf(item.Key), Data: data})
	}
	return archive
}

// fileOf returns the name of an object's file.
func fileOf(key fault.Key) string {
	return filepath.ToSlash(filepath.Join(key.Namespace, key.Kind.String(), key.Name+".yaml"))
}

func writeGolden(path string, archive *txtar.Archive) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, txtar.Format(archive), 0o644)
}

// compareArchives returns how an archive differs from the one that is wanted, file by file. It is empty if it does not.
func compareArchives(wanted, got *txtar.Archive) string {
	var text strings.Builder
	names := slices.Concat(fileNames(wanted), fileNames(got))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		was, is := dataOf(wanted, name), dataOf(got, name)
		if !bytes.Equal(was, is) {
			fmt.Fprintf(&text, "\n%s\n%s", name, difference(linesOf(was), linesOf(is)))
		}
	}
	return text.String()
}

func fileNames(archive *txtar.Archive) []string {
	var names []string
	for _, file := range archive.Files {
		names = append(names, file.Name)
	}
	return names
}

// dataOf returns a file, which is empty if the archive does not have it.
func dataOf(archive *txtar.Archive, name string) []byte {
	for _, file := range archive.Files {
		if file.Name == name {
			return file.Data
		}
	}
	return nil
}

func linesOf(data []byte) []string {
	if len(data) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}
