package main

import (
	"bytes"
	"os"
	"path"
	"testing"

	"github.com/espalier-dev/espalier/manifests"
)

// TestFilesAreCurrent fails when a tree has changed and "make generate" was not run since.
func TestFilesAreCurrent(t *testing.T) {
	files, err := derive("..")
	if err != nil {
		t.Fatal(err)
	}
	if err := files.Compare(".."); err != nil {
		t.Error(err)
	}
}

func TestReadmeShowsTheTrees(t *testing.T) {
	files, err := derive("..")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	trees := 0
	for name, content := range files {
		if path.Base(name) != manifests.TreeFile {
			continue
		}
		trees++
		if !bytes.Contains(readme, content) {
			t.Errorf("examples/platform/README.md does not show %s\n%s", name, content)
		}
	}
	if trees == 0 {
		t.Error("there is no tree")
	}
}
