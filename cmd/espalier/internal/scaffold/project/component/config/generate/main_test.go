package main

import "testing"

// TestFilesAreCurrent fails when the tree has changed and "make manifests" was not run since.
func TestFilesAreCurrent(t *testing.T) {
	const project = "../.."
	files, err := derive(project)
	if err != nil {
		t.Fatal(err)
	}
	if err := files.Compare(project); err != nil {
		t.Error(err)
	}
}
