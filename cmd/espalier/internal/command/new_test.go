package command_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/command"
)

// runNew runs "espalier new", and returns what it prints.
func runNew(t *testing.T, args ...string) (string, error) {
	t.Helper()
	out := &bytes.Buffer{}
	c := command.New(out, out)
	c.SetArgs(append([]string{"new"}, args...))
	err := c.ExecuteContext(t.Context())
	return out.String(), err
}

func TestNewErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("theirs"), 0o600); err != nil {
		t.Fatal(err)
	}
	plugin := []string{filepath.Join(dir, "a"), "--plugin=database/postgres", "--espalier-version=v0.1.0", "--skip-tidy"}
	shop := []string{"--group=shop.example.com", "--kind=Shop", "--espalier-version=v0.1.0", "--skip-tidy"}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no folder":              {nil, "accepts 1 arg(s), received 0"},
		"no group":               {[]string{filepath.Join(dir, "a")}, "--group is missing"},
		"a mistake":              {append(shop, filepath.Join(dir, "a"), "--version=one"), `--version is "one"`},
		"not a checkout":         {append(shop, filepath.Join(dir, "a"), "--replace="+dir), "there is no checkout of"},
		"no header":              {append(shop, dir+"/a", "--license-header="+dir+"/none"), "--license-header: open"},
		"not an empty folder":    {append(shop, dir), dir + " is not empty, it has file"},
		"below what is a file":   {append(shop, filepath.Join(file, "a")), file + ": not a directory"},
		"a plugin, no text":      {append(plugin, "--plugin="), "--plugin is empty"},
		"a plugin, no type":      {append(plugin, "--plugin=database"), `--plugin is "database", and must be a category`},
		"a plugin with a kind":   {append(plugin, "--kind=Shop"), "--kind is not for --plugin"},
		"a plugin with defaults": {append(plugin, "--version=v1alpha1"), "--version is not for --plugin"},
		"a plugin, added":        {append(plugin, "--add"), "--add is not for --plugin"},
		"a plugin, cluster":      {append(plugin, "--namespaced=false"), "--namespaced is not for --plugin"},
		"a name that is no path": {append(shop, filepath.Join(dir, "Web Shop")), `--module is "example.com/web shop"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := runNew(t, tc.args...)
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("want one line with %q, got %v", tc.want, err)
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
				t.Errorf("something was written: %v (%v)", entries, err)
			}
		})
	}
}

// TestNewWithoutProxy: the error of "go mod tidy" is one line that says what to do, and all files are there.
func TestNewWithoutProxy(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Setenv("GOMODCACHE", t.TempDir())
	dir := filepath.Join(t.TempDir(), "shop")
	args := []string{dir, "--group=shop.example.com", "--kind=Shop", "--espalier-version=v0.1.0"}
	_, err := runNew(t, args...)
	if err == nil || !strings.Contains(err.Error(), `does not build before "go mod tidy" succeeds`) ||
		strings.Contains(err.Error(), "\n") {
		t.Errorf("want one line about go mod tidy, got %v", err)
	}
	for _, file := range []string{"go.mod", "main.go", "api/v1alpha1/zz_generated.deepcopy.go"} {
		if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
			t.Error(err)
		}
	}
	printed, err := runNew(t, append(args, "--force", "--skip-tidy")...)
	if err != nil || !strings.Contains(printed, "go mod tidy)\n    make -C "+dir+" run\n") {
		t.Errorf("with --skip-tidy: %v\n%s", err, printed)
	}
}

// TestNewPlugin: each flag is for plugins, or refused with them.
func TestNewPlugin(t *testing.T) {
	t.Parallel()
	values := map[string]string{
		"module": "example.com/p", "go-version": "1.26.1", "image": "registry.example.com/p:1", "owner": "The owners",
		"license": "MIT", "license-header": "", "espalier-version": "v0.1.0", "replace": "", "force": "true",
		"skip-tidy": "true", "plugin": "database/mysql",
	}
	made, _, err := command.New(io.Discard, io.Discard).Find([]string{"new"})
	if err != nil {
		t.Fatal(err)
	}
	made.Flags().VisitAll(func(flag *pflag.Flag) {
		value, forPlugins := values[flag.Name]
		if !forPlugins {
			value = flag.DefValue
		}
		dir := filepath.Join(t.TempDir(), "p")
		printed, err := runNew(t, dir, "--plugin=database/postgres", "--espalier-version=v0.1.0", "--skip-tidy",
			"--"+flag.Name+"="+value)
		_, there := os.Stat(filepath.Join(dir, "plugin.go"))
		refused := "--" + flag.Name + " is not for --plugin: it says what an operator is like"
		switch {
		case forPlugins && (err != nil || there != nil || !strings.Contains(printed, "make -C "+dir+" test build\n")):
			t.Errorf("with --%s: %v, %v, printed %q, want a project", flag.Name, err, there, printed)
		case !forPlugins && (err == nil || err.Error() != refused || there == nil):
			t.Errorf("with --%s: %v, want nothing but %s", flag.Name, err, refused)
		}
	})
}

// TestNewHeader: a header has the year where controller-gen would put it, and no byte order mark.
func TestNewHeader(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	header := filepath.Join(dir, "header.txt")
	if err := os.WriteFile(header, []byte("\ufeffCopyright YEAR The owners\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{filepath.Join(dir, "shop"), "--group=shop.example.com", "--kind=Shop",
		"--espalier-version=v0.1.0", "--skip-tidy", "--license-header=" + header}
	if _, err := runNew(t, args...); err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`^// Copyright 20\d\d The owners\n`)
	for _, file := range []string{"main.go", "hack/boilerplate.go.txt"} {
		if got, err := os.ReadFile(filepath.Join(dir, "shop", file)); err != nil || !want.Match(got) {
			t.Errorf("%s has not the header (%v):\n%s", file, err, got)
		}
	}
}
