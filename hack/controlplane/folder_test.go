package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// fakeFolder is a folder whose binaries are the texts "good" and "broken"; builds counts them.
func fakeFolder(t *testing.T) (f folder, builds *atomic.Int32) {
	builds = new(atomic.Int32)
	return folder{
		path:   filepath.Join(t.TempDir(), "cache", "key"),
		recipe: recipe{version: "v1.2.3", binaries: controlPlane.binaries},
		build: func(_ context.Context, _ recipe, _ binary, path string) error {
			builds.Add(1)
			return os.WriteFile(path, []byte("good"), 0o755)
		},
		check: func(_ context.Context, path string) error {
			content, err := os.ReadFile(path)
			if err == nil && string(content) != "good" {
				err = errors.New("exec format error")
			}
			return err
		},
	}, builds
}

func TestFillBuildsOnce(t *testing.T) {
	f, builds := fakeFolder(t)
	for range 2 {
		if err := f.fill(t.Context(), io.Discard); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := int(builds.Load()), len(controlPlane.binaries); got != want {
		t.Errorf("built %d binaries, want %d", got, want)
	}
}

func TestFillAtTheSameTimeBuildsOnce(t *testing.T) {
	f, builds := fakeFolder(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := f.fill(t.Context(), io.Discard); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got, want := int(builds.Load()), len(controlPlane.binaries); got != want {
		t.Errorf("built %d binaries, want %d", got, want)
	}
}

func TestFillRepairs(t *testing.T) {
	for name, harm := range map[string]func(path string) error{
		"a broken binary":  func(path string) error { return os.WriteFile(path, []byte("broken"), 0o755) },
		"a missing binary": os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			f, builds := fakeFolder(t)
			if err := f.fill(t.Context(), io.Discard); err != nil {
				t.Fatal(err)
			}
			if err := harm(filepath.Join(f.path, "kube-apiserver")); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if err := f.fill(t.Context(), &out); err != nil {
				t.Fatal(err)
			}
			if got, want := int(builds.Load()), 2*len(controlPlane.binaries); got != want {
				t.Errorf("built %d binaries, want %d", got, want)
			}
			if err := f.complete(t.Context()); err != nil {
				t.Error(err)
			}
			if !strings.Contains(out.String(), "kube-apiserver does not run") {
				t.Errorf("the output does not say why it builds:\n%s", out.String())
			}
		})
	}
}

func TestFillLeavesNothingBehindWhenABuildFails(t *testing.T) {
	f, _ := fakeFolder(t)
	cause := errors.New("no space left")
	f.build = func(_ context.Context, _ recipe, b binary, path string) error {
		if b.name == "kube-apiserver" {
			return cause
		}
		return os.WriteFile(path, []byte("good"), 0o755)
	}
	err := f.fill(t.Context(), io.Discard)
	if !errors.Is(err, cause) || !strings.Contains(err.Error(), "could not build kube-apiserver") {
		t.Errorf("fill returned %v", err)
	}
	for _, path := range []string{f.path, f.path + ".building"} {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s exists: %v", path, err)
		}
	}
}

func TestFillRejectsWhatItBuiltWhenThatDoesNotRun(t *testing.T) {
	f, _ := fakeFolder(t)
	f.build = func(_ context.Context, _ recipe, _ binary, path string) error {
		return os.WriteFile(path, []byte("broken"), 0o755)
	}
	err := f.fill(t.Context(), io.Discard)
	if err == nil || !strings.Contains(err.Error(), "what was built as etcd does not run") {
		t.Errorf("fill returned %v", err)
	}
}

func TestRunVersion(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("not a program"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := runVersion(t.Context(), text); err == nil {
		t.Error("a text file passed for a program")
	}
}
