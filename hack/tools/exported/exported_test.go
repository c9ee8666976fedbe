package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/espalier-dev/espalier/hack/tools/internal/golist"
)

func TestDeclarations(t *testing.T) {
	folder := t.TempDir()
	const source = `package a

import "time"

// A is documented.
const A, b = 1, 2

const (
	C kind = iota
	D
)

var E, f time.Duration

var G = 1

type kind int

type H[T any, U interface{ M() }] struct {
	// Field is documented.
	Field  T ` + "`json:\"field\"`" + `
	hidden int
	time.Time
	Call func(T) error
}

type I interface {
	M(a int, b ...string) (err error)
	error
	n()
}

type J = I

type K func(

	a int,
) error

func (h *H[T, U]) Method(a int) {}

func (kind) Hidden() {}

func L[T any](t T) T { return t }

func m() {}
`
	const want = "const A = 1\nconst C kind = iota\nconst D\nfunc (h *H[T, U]) Method(a int)\nfunc L[T any](t T) T\n" +
		"type H struct, Call func(T) error\ntype H struct, Field T `json:\"field\"`\ntype H struct, embedded time.Time\n" +
		"type H[T any, U interface{ M() }] struct\ntype I interface\ntype I interface, M(a int, b ...string) (err error)\n" +
		"type I interface, embedded error\ntype J = I\ntype K func(a int) error\nvar E time.Duration\nvar G\n"
	if err := os.WriteFile(filepath.Join(folder, "a.go"), []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := declarations(golist.Package{Dir: folder, GoFiles: []string{"a.go"}})
	if err != nil || got != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, got, want)
	}
}

// A type of an internal package that has a public name is public with its fields and methods.
func TestDeclarationsOfAnAlias(t *testing.T) {
	root := t.TempDir()
	for path, source := range map[string]string{
		"a/a.go": `package a

import (
	"` + module + `/b"
	"` + module + `/internal/c"
)

type A = b.B

type D = c.C

type E = c.I
`,
		"b/b.go":          "package b\n\ntype B struct{ Field int }\n",
		"internal/c/c.go": "package c\n\ntype C struct{ Field, hidden int }\n\ntype I interface{ M() }\n",
		"internal/c/methods.go": "package c\n\nfunc (c *C) Method() {}\n\nfunc (c C) hide() {}\n\nfunc Other() {}\n\n" +
			"type F struct{ Field int }\n\nfunc (F) Method() {}\n",
		"internal/c/c_test.go": "package c\n\nfunc (c *C) Test() {}\n",
	} {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(source), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const want = "func (c *D) Method()\ntype A = b.B\ntype D = c.C\ntype D struct, Field int\ntype E = c.I\n" +
		"type E interface, M()\n"
	p := golist.Package{ImportPath: module + "/a", Dir: filepath.Join(root, "a"), GoFiles: []string{"a.go"}}
	if got, err := declarations(p); err != nil || got != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, got, want)
	}
}

func TestFileOf(t *testing.T) {
	for _, tc := range []struct {
		path, name, want string
		public           bool
	}{
		{module, "espalier", "espalier.txt", true},
		{module + "/feature/gate", "gate", "feature.gate.txt", true},
		{module + "/testing", "testing", "testing.txt", true},
		{module + "/testing/internal/store", "store", "testing.internal.store.txt", false},
		{module + "/examples/shop/api/v1", "v1", "examples.shop.api.v1.txt", false},
		{module + "/cmd/espalier", "main", "cmd.espalier.txt", false},
	} {
		got, public := fileOf(golist.Package{ImportPath: tc.path, Name: tc.name, GoFiles: []string{"a.go"}})
		if got != tc.want || public != tc.public {
			t.Errorf("%s has the file %s and is public: %t; want %s, %t", tc.path, got, public, tc.want, tc.public)
		}
	}
	if _, public := fileOf(golist.Package{ImportPath: module + "/a", Name: "a"}); public {
		t.Error("a package of tests alone is public, want that it is not")
	}
}

func TestWrite(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "api")
	for _, files := range []map[string]string{{"a.txt": "1\n", "b.txt": "2\n"}, {"a.txt": "3\n"}} {
		if err := write(folder, files); err != nil {
			t.Fatal(err)
		}
	}
	there, _ := filepath.Glob(filepath.Join(folder, "*"))
	content, _ := os.ReadFile(filepath.Join(folder, "a.txt"))
	if len(there) != 1 || string(content) != "3\n" {
		t.Errorf("the folder has %v, and a.txt is %q; want a.txt alone, with 3", there, content)
	}
}

func TestTooMany(t *testing.T) {
	for _, tc := range []struct {
		root, all int
		want      string
	}{
		{maxInRoot, maxInAll, ""},
		{maxInRoot + 1, maxInAll, "the module at the root has 26 public packages, want at most 25"},
		{maxInRoot, maxInAll + 1, "all modules have 33 public packages, want at most 32"},
	} {
		got := ""
		if err := tooMany(tc.root, tc.all); err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("%d and %d: got %q, want %q", tc.root, tc.all, got, tc.want)
		}
	}
}
