package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFilesAreCurrent fails when the tree has changed and "make generate" was not run since.
func TestFilesAreCurrent(t *testing.T) {
	files, err := derive()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		t.Run(name, func(t *testing.T) {
			got, err := os.ReadFile(filepath.Join("..", name))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("run make generate (-derived +file)\n%s", diff)
			}
		})
	}
}

func TestReadmeShowsTheTree(t *testing.T) {
	files, err := derive()
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if tree := files["tree.txt"]; !bytes.Contains(readme, tree) {
		t.Errorf("examples/shop/README.md shows another tree than\n%s", tree)
	}
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	if err := write(dir); err == nil {
		t.Error("written to a folder that is not there")
	}
	if err := os.Mkdir(filepath.Join(dir, "rbac"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := write(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"rbac/role.yaml", "tree.txt"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}
