package migrate

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// parsed returns a file without types.
func parsed(t *testing.T, content []byte) (*source, bool) {
	t.Helper()
	fset := token.NewFileSet()
	syntax, err := parser.ParseFile(fset, "file.go", content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, false
	}
	return &source{path: "file.go", fset: fset, syntax: syntax, bytes: content}, true
}

// checkRewritten checks what holds for each file: it has the same syntax tree but for the paths of imports, none of
// which is one of the peer that has a counterpart, and a second run changes nothing.
func checkRewritten(t *testing.T, name string, content []byte) {
	t.Helper()
	before, ok := parsed(t, content)
	if !ok {
		return
	}
	out, _, err := before.rewrite(nil)
	if err != nil {
		return // names change, which needs types
	}
	after, ok := parsed(t, out)
	if !ok {
		t.Fatalf("%s: the changed file has no valid syntax:\n%s", name, out)
	}
	if again, _, err := after.rewrite(nil); err != nil || !bytes.Equal(again, out) {
		t.Errorf("%s: a second run changes the file again, %v:\n%s", name, err, again)
	}
	want, got := shape(before.syntax, true), shape(after.syntax, false)
	if !reflect.DeepEqual(want, got) {
		t.Errorf("%s: the changed file has another syntax tree", name)
	}
}

// shape is the syntax tree of a file without its comments and the order of its imports.
func shape(syntax *ast.File, moved bool) map[string]int {
	nodes := map[string]int{}
	ast.Inspect(syntax, func(node ast.Node) bool {
		switch n := node.(type) {
		case nil, *ast.Comment, *ast.CommentGroup:
			return false
		case *ast.ImportSpec:
			path := importPath(n)
			if of, ok := originOf(path); ok && moved && of.target(of.relative(path)) != "" {
				path = of.target(of.relative(path))
			}
			name := ""
			if n.Name != nil {
				name = n.Name.Name
			}
			nodes["import "+name+" "+path]++
			return false
		case *ast.Ident:
			nodes[strconv.Itoa(len(nodes))+" "+n.Name]++
		case *ast.BasicLit:
			nodes[strconv.Itoa(len(nodes))+" "+n.Value]++
		default:
			nodes[reflect.TypeOf(n).String()]++
		}
		return true
	})
	return nodes
}

// Each Go file of this repository is a file of a user, once it imports the peer.
func TestFilesOfThisRepositoryAsThoseOfAUser(t *testing.T) {
	out, err := exec.Command("git", "-C", "../../../..", "ls-files", "*.go").Output()
	if err != nil {
		t.Skipf("this is no git repository: %v", err)
	}
	files := 0
	for path := range strings.FieldsSeq(string(out)) {
		content, err := os.ReadFile(filepath.Join("../../../..", path))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(content, []byte(Module)) {
			continue
		}
		files++
		checkRewritten(t, path, bytes.ReplaceAll(content, []byte(Module), []byte(runtime.module)))
	}
	if files < 100 {
		t.Errorf("%d files were tried, want 100 or more", files)
	}
}

func FuzzRewrite(f *testing.F) {
	for _, content := range []string{
		"package a\n\nimport \"reconciler.io/runtime/stash\"\n",
		"package a\n\nimport (\n\t. \"reconciler.io/runtime/stash\"\n\t_ \"reconciler.io/runtime/time\"\n)\n",
		"package a;import\"reconciler.io/runtime/stash\";import b`reconciler.io/runtime/apis`",
		"// [reconciler.io/runtime/stash.Key]\r\npackage a\r\n\r\nimport \"reconciler.io/runtime/stash\"\r\n",
		"package a\n\nimport \"reconciler.io/runtime/internal/resources\"\n\nconst s = \"reconciler.io/runtime/stash\"\n",
		"package a\n\nimport (\n\t\"reconciler.io/runtime/stash\"\n\n\t\"github.com/espalier-dev/espalier/stash\"\n)\n",
	} {
		f.Add([]byte(content))
	}
	f.Fuzz(func(t *testing.T, content []byte) { checkRewritten(t, "file.go", content) })
}

func TestImportsAndLinks(t *testing.T) {
	for _, tc := range []struct{ name, before, want string }{
		{
			"names of imports stay",
			"import (\n\tr \"reconciler.io/runtime/reconcilers\"\n\t. \"reconciler.io/runtime/stash\"\n" +
				"\t_ \"reconciler.io/runtime/time\"\n)\n",
			"import (\n\tr \"github.com/espalier-dev/espalier/reconcilers\"\n\t. \"github.com/espalier-dev/espalier/stash\"\n" +
				"\t_ \"github.com/espalier-dev/espalier/time\"\n)\n",
		},
		{
			"the order within a group follows the paths, and groups stay",
			"import (\n\t\"context\"\n\n\t\"k8s.io/api/core/v1\"\n\t\"reconciler.io/runtime/stash\"\n)\n",
			"import (\n\t\"context\"\n\n\t\"github.com/espalier-dev/espalier/stash\"\n\t\"k8s.io/api/core/v1\"\n)\n",
		},
		{
			"a file that is not formatted stays so",
			"import \"reconciler.io/runtime/stash\"\n\nvar  a = 1\n",
			"import \"github.com/espalier-dev/espalier/stash\"\n\nvar  a = 1\n",
		},
		{
			"packages that are like those of the peer, and those without a counterpart",
			"import (\n\t\"reconciler.io/dies/apis\"\n\t\"reconciler.io/runtime/internal/resources\"\n\t\"reconciler.io/runtimes\"\n)\n",
			"import (\n\t\"reconciler.io/dies/apis\"\n\t\"reconciler.io/runtime/internal/resources\"\n\t\"reconciler.io/runtimes\"\n)\n",
		},
		{
			"links of comments, and nothing else in them",
			"// See [reconciler.io/runtime/stash.Key], [*reconciler.io/runtime/stash.Stasher.Store] and reconciler.io/runtime/stash.\n" +
				"// [stash.Key] and [reconciler.io/runtime] stay.\nimport \"reconciler.io/runtime/stash\"\n",
			"// See [github.com/espalier-dev/espalier/stash.Key], [*github.com/espalier-dev/espalier/stash.Stasher.Store] " +
				"and reconciler.io/runtime/stash.\n" +
				"// [stash.Key] and [reconciler.io/runtime] stay.\nimport \"github.com/espalier-dev/espalier/stash\"\n",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, ok := parsed(t, []byte("package a\n\n"+tc.before))
			if !ok {
				t.Fatal("the test has no valid syntax")
			}
			got, _, err := s.rewrite(nil)
			if want := "package a\n\n" + tc.want; err != nil || string(got) != want {
				t.Errorf("got %v\n%s\nwant\n%s", err, got, want)
			}
		})
	}
}
