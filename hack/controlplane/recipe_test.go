package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestRecipesOfThisModule(t *testing.T) {
	keys := map[string]string{}
	for _, s := range []set{controlPlane, cluster} {
		r, err := readRecipe(".", s)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(r.version, "v1.") {
			t.Errorf("%s: the version of Kubernetes is %q", s.name, r.version)
		}
		again, err := readRecipe(".", s)
		if err != nil {
			t.Fatal(err)
		}
		if r.key() != again.key() {
			t.Errorf("%s: the key changed from %s to %s", s.name, r.key(), again.key())
		}
		if other, taken := keys[r.key()]; taken {
			t.Errorf("%s and %s have one key", s.name, other)
		}
		keys[r.key()] = s.name
	}
}

func TestModulesOfASet(t *testing.T) {
	s := set{binaries: []binary{{name: "a"}, {name: "b", module: "../other"}, {name: "c"}}}
	if got, want := s.modules(), []string{".", "../other"}; !slices.Equal(got, want) {
		t.Errorf("the modules are %q, want %q", got, want)
	}
}

func TestRecipeKey(t *testing.T) {
	base := recipe{version: "v1.37.2", goos: "linux", goarch: "amd64", mod: []byte("module"), sum: []byte("sum")}
	for name, change := range map[string]func(*recipe){
		"version":            func(r *recipe) { r.version = "v1.38.0" },
		"operating system":   func(r *recipe) { r.goos = "darwin" },
		"architecture":       func(r *recipe) { r.goarch = "arm64" },
		"go.mod":             func(r *recipe) { r.mod = []byte("module2") },
		"go.sum":             func(r *recipe) { r.sum = []byte("sum2") },
		"a shifted boundary": func(r *recipe) { r.mod, r.sum = []byte("modules"), []byte("um") },
	} {
		t.Run(name, func(t *testing.T) {
			changed := base
			change(&changed)
			if changed.key() == base.key() {
				t.Errorf("both have the key %s", base.key())
			}
		})
	}
	if !strings.HasPrefix(base.key(), "v1.37.2-linux-amd64-") {
		t.Errorf("key is %s", base.key())
	}
}

func TestRecipeFlagsCarryTheVersion(t *testing.T) {
	flags := strings.Fields(strings.Join(recipe{version: "v1.37.2"}.flags(), " "))
	for _, want := range []string{"gitVersion=v1.37.2", "gitMajor=1", "gitMinor=37"} {
		if !slices.ContainsFunc(flags, func(f string) bool { return strings.HasSuffix(f, "."+want) }) {
			t.Errorf("%s is not among %q", want, flags)
		}
	}
}

func TestVersionOfARecipe(t *testing.T) {
	for _, tc := range []struct{ name, mod, version, err string }{
		{name: "required", mod: "require (\n\tk8s.io/kubectl v0.1.0\n\tk8s.io/kubernetes v1.2.3 // why\n)\n", version: "v1.2.3"},
		{name: "alone", mod: "require k8s.io/kubernetes v1.2.3\n", version: "v1.2.3"},
		{name: "not required", mod: "require k8s.io/api v1.2.3\n", err: "go.mod does not require k8s.io/kubernetes"},
		{name: "replaced", mod: "replace k8s.io/kubernetes v1.2.3 => ../k\n", err: "does not require"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, content := range map[string]string{"go.mod": tc.mod, "go.sum": ""} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r, err := readRecipe(dir, set{binaries: []binary{{name: "a"}}})
			if r.version != tc.version {
				t.Errorf("version is %q, want %q", r.version, tc.version)
			}
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("error is %v, want %q", err, tc.err)
			}
		})
	}
}

func TestCacheDir(t *testing.T) {
	t.Run("of the user", func(t *testing.T) {
		t.Setenv("ESPALIER_CONTROLPLANE_DIR", "")
		home := t.TempDir()
		t.Setenv("HOME", home)
		t.Setenv("XDG_CACHE_HOME", "")
		dir, err := cacheDir()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(dir, home) || !strings.HasSuffix(dir, filepath.Join("espalier", "controlplane")) {
			t.Errorf("the folder is %s", dir)
		}
	})
	t.Run("chosen", func(t *testing.T) {
		want := t.TempDir()
		t.Setenv("ESPALIER_CONTROLPLANE_DIR", want)
		if dir, err := cacheDir(); err != nil || dir != want {
			t.Errorf("the folder is %s, %v", dir, err)
		}
	})
	t.Run("nowhere", func(t *testing.T) {
		for _, name := range []string{"ESPALIER_CONTROLPLANE_DIR", "HOME", "XDG_CACHE_HOME"} {
			t.Setenv(name, "")
		}
		if _, err := cacheDir(); err == nil || !strings.Contains(err.Error(), "set ESPALIER_CONTROLPLANE_DIR") {
			t.Errorf("error is %v", err)
		}
	})
}

func TestRunBuildsNothingWhenAssetsAreGiven(t *testing.T) {
	t.Setenv("KUBEBUILDER_ASSETS", "/elsewhere")
	cache := t.TempDir()
	t.Setenv("ESPALIER_CONTROLPLANE_DIR", cache)
	var out strings.Builder
	if err := run(t.Context(), controlPlane, &out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "using /elsewhere") {
		t.Errorf("printed %q", out.String())
	}
	if entries, err := os.ReadDir(cache); err != nil || len(entries) != 0 {
		t.Errorf("the cache holds %v, %v", entries, err)
	}
}

func TestLinkReplaces(t *testing.T) {
	name := filepath.Join(t.TempDir(), "bin", "controlplane")
	for _, target := range []string{"/first", "/second", "/second"} {
		if err := link(target, name); err != nil {
			t.Fatal(err)
		}
		if got, err := os.Readlink(name); err != nil || got != target {
			t.Errorf("the link leads to %s, %v, want %s", got, err, target)
		}
	}
}
