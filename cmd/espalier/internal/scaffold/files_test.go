package scaffold_test

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/scaffold"
)

var update = flag.Bool("update", false, "write the lists of files")

// combinations are options whose files are listed in testdata.
var combinations = map[string]func(*scaffold.Options){
	"tree":          func(*scaffold.Options) {},
	"webhooks":      func(o *scaffold.Options) { o.Defaulting, o.Validating, o.Namespaced = true, true, false },
	"code":          func(o *scaffold.Options) { o.Component, o.License = "code", "MIT" },
	"chart":         func(o *scaffold.Options) { o.Component, o.Validating = "chart", true },
	"kustomization": func(o *scaffold.Options) { o.Component, o.Namespaced = "kustomization", false },
	"dummy":         func(o *scaffold.Options) { o.Component, o.Defaulting = "dummy", true },
	"plugin":        func(o *scaffold.Options) { o.Plugin = "database/postgres" },
}

func filesOf(t *testing.T, change func(*scaffold.Options)) scaffold.Files {
	t.Helper()
	o := valid()
	change(&o)
	o, err := o.Complete()
	if err != nil {
		t.Fatal(err)
	}
	files, err := o.Files()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestFiles(t *testing.T) {
	// What only templates have.
	left := regexp.MustCompile(`(?i)placeholder|v9alpha9|example\.test|scaffold[:/]|v0\.0\.0-controller|golang:0|//\+`)
	for name, change := range combinations {
		files := filesOf(t, change)
		list := strings.Join(slices.Sorted(maps.Keys(files)), "\n") + "\n"
		golden := filepath.Join("testdata", name+".txt")
		if *update {
			if err := os.WriteFile(golden, []byte(list), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(golden); err != nil || string(want) != list {
			t.Errorf("%s: the files are (%v)\n%s\nwant\n%s", name, err, list, want)
		}
		for at, content := range files {
			if found := left.Find(append([]byte(at+"\n"), content...)); found != nil {
				t.Errorf("%s: %s has %q of the template", name, at, found)
			}
		}
	}
}

func TestHeader(t *testing.T) {
	const want = "// SPDX-FileCopyrightText: The owners\n// SPDX-License-Identifier: MIT OR Apache-2.0\n\n"
	files := filesOf(t, func(o *scaffold.Options) { o.Owner, o.License = "The owners", "MIT OR Apache-2.0" })
	for at, content := range files {
		if filepath.Ext(at) == ".go" && bytes.Count(content, []byte(want)) != 1 {
			t.Errorf("%s has not the header\n%s", at, content)
		}
	}
}

// TestVersions: a project begins with the versions that this repository uses.
func TestVersions(t *testing.T) {
	for file, want := range map[string]string{
		"../../../../go.mod":            "go " + scaffold.GoVersion,
		"../../../../hack/tools/go.mod": "sigs.k8s.io/controller-tools " + scaffold.ControllerGenVersion,
	} {
		if content, err := os.ReadFile(file); err != nil || !strings.Contains(string(content), want) {
			t.Errorf("%s does not say %q (%v)", file, want, err)
		}
	}
}

// TestWrite: a folder must be empty, and a write that was interrupted is finished by the next one.
func TestWrite(t *testing.T) {
	first, second := scaffold.Files{"a/b.txt": []byte("1"), "c.txt": []byte("2")}, scaffold.Files{"c.txt": []byte("3")}
	dir := filepath.Join(t.TempDir(), "new", "folder")
	// What a run has left that was interrupted at once.
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".espalier-new-file"), []byte("0"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := first.Write(dir, false); err != nil {
		t.Fatal(err)
	}
	if err := second.Write(dir, false); err == nil || !strings.Contains(err.Error(), "--force") {
		t.Errorf("a folder that is not empty: want an error with --force, got %v", err)
	}
	if got := contents(t, dir); got != "a/b.txt=1 c.txt=2" {
		t.Errorf("the files are %s", got)
	}
	if err := second.Write(dir, true); err != nil {
		t.Error(err)
	}
	if got := contents(t, dir); got != "a/b.txt=1 c.txt=3" {
		t.Errorf("with force, the files are %s", got)
	}
	// As if the first write had been interrupted.
	list := digest("a/b.txt", "1") + digest("c.txt", "3") + digest("../outside.txt", "4")
	outside := filepath.Join(dir, "..", "outside.txt")
	for at, content := range map[string]string{filepath.Join(dir, ".espalier-new"): list, outside: "4"} {
		if err := os.WriteFile(at, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := second.Write(dir, false); err != nil {
		t.Error(err)
	}
	if got := contents(t, dir); got != "c.txt=3" {
		t.Errorf("after a write that was interrupted, the files are %s", got)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Errorf("a file outside is gone: %v", err)
	}
}

// digest is a line of the list that a write keeps.
func digest(name, content string) string {
	return fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte(content)), name)
}

// TestWriteKeeps: what the interrupted write has not written is neither removed nor written over without force.
func TestWriteKeeps(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		".espalier-new": digest("a.txt", "1") + digest("b.txt", "2") + digest("c.txt", "3"),
		"a.txt":         "theirs", "b.txt": "2", "c.txt": "theirs",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files := scaffold.Files{"c.txt": []byte("4")}
	if err := files.Write(dir, false); err == nil || !strings.Contains(err.Error(), "c.txt was not written by the run") {
		t.Errorf("want an error about c.txt, got %v", err)
	}
	if err := files.Write(dir, true); err != nil {
		t.Error(err)
	}
	if got := contents(t, dir); got != "a.txt=theirs b.txt=2 c.txt=4" {
		t.Errorf("with force, the files are %s", got)
	}
	list := digest("a.txt", "1") + digest("b.txt", "2") + digest("c.txt", "4")
	if err := os.WriteFile(filepath.Join(dir, ".espalier-new"), []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (scaffold.Files{"c.txt": []byte("5")}).Write(dir, false); err != nil {
		t.Error(err)
	}
	if got := contents(t, dir); got != "a.txt=theirs c.txt=5" {
		t.Errorf("after the run that finishes it, the files are %s", got)
	}
}

func contents(t *testing.T, dir string) string {
	t.Helper()
	var found []string
	for _, pattern := range []string{"*", "*/*"} {
		names, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if content, err := os.ReadFile(name); err == nil {
				relative, err := filepath.Rel(dir, name)
				if err != nil {
					t.Fatal(err)
				}
				found = append(found, filepath.ToSlash(relative)+"="+string(content))
			}
		}
	}
	slices.Sort(found)
	return strings.Join(found, " ")
}

// TestKinds: a kind may have the name of a file that is derived.
func TestKinds(t *testing.T) {
	for _, kind := range []string{"Role", "CRD", "Webhooks", "Manifests", "Kustomization", "Values", "Type", "Controller"} {
		for _, component := range []string{"", "chart"} {
			lower := strings.ToLower(kind)
			files := filesOf(t, func(o *scaffold.Options) {
				o.Kind, o.Component, o.Namespaced, o.Defaulting = kind, component, false, true
			})
			sample := string(files["config/samples/"+lower+".yaml"])
			if !strings.HasPrefix(sample, "apiVersion: shop.example.com/v1\nkind: "+kind+"\nmetadata:\n  name: sample\n") {
				t.Errorf("the sample of %s is\n%s", kind, sample)
			}
			for at, want := range map[string]string{
				"config/rbac/role.yaml": "kind: ClusterRole\n", "chart/files/crd.yaml": "scope: Cluster\n",
				"config/webhook/manifests.yaml": "kind: MutatingWebhookConfiguration\n",
			} {
				if !strings.Contains(string(files[at]), want) {
					t.Errorf("%s of %s lacks %q:\n%s", at, kind, want, files[at])
				}
			}
		}
	}
}
