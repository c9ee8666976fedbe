package gofiles_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/espalier-dev/espalier/hack/tools/internal/gofiles"
)

func TestWalk(t *testing.T) {
	root := t.TempDir()
	for _, file := range []string{"b.go", "a/a_test.go", "a/notes.md", "a/testdata/t.go", ".git/g.go", "a.go/c.go"} {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(file)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, file), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	err := gofiles.Walk(root, func(path string, source []byte) error {
		if string(source) != path {
			t.Errorf("%s has the source %q", path, source)
		}
		got = append(got, path)
		return nil
	})
	if want := []string{"a/a_test.go", "a.go/c.go", "b.go"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("walked %q, %v, want %q", got, err, want)
	}
	stop := errors.New("stop")
	if err := gofiles.Walk(root, func(string, []byte) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("the error is %v, want that of the visit", err)
	}
	if err := gofiles.Walk(filepath.Join(root, "none"), nil); err == nil {
		t.Error("a folder that does not exist was walked")
	}
}
