package main

import (
	"bytes"
	"os"
	"testing"
)

// TestFilesAreCurrent fails when the tree has changed and "make generate" was not run since.
func TestFilesAreCurrent(t *testing.T) {
	files, err := derive("..")
	if err != nil {
		t.Fatal(err)
	}
	if err := files.Compare(".."); err != nil {
		t.Error(err)
	}
}

func TestReadmeShowsTheTree(t *testing.T) {
	files, err := derive("..")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if tree := files["tree.txt"]; !bytes.Contains(readme, tree) {
		t.Errorf("examples/shop/plugins/README.md shows another tree than\n%s", tree)
	}
}
