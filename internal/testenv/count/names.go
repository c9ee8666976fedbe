package count

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/espalier-dev/espalier"

// Names returns the names of this repository that packages and their tests use, such as "espalier.Owns", in order:
// functions, types, variables, fields and methods. Methods of one name in one package are one word to learn. Files of
// the names in but, and generated ones, do not count, and neither do examples and internal packages.
func Names(t testing.TB, folders []string, but ...string) []string {
	t.Helper()
	names := map[string]bool{}
	for _, folder := range folders {
		u := uses{TB: t, fset: token.NewFileSet(), folder: folder, but: but, names: names}
		u.collect()
	}
	return slices.Sorted(maps.Keys(names))
}

// uses collects the names that one package uses.
type uses struct {
	testing.TB
	fset   *token.FileSet
	folder string
	but    []string
	names  map[string]bool
}

// listed is what "go list" says about a package. Export is the file with what it exports.
type listed struct {
	ImportPath, Export    string
	GoFiles, XTestGoFiles []string
	DepOnly               bool
}

func (u uses) collect() {
	u.Helper()
	fields := "-json=ImportPath,Export,GoFiles,XTestGoFiles,DepOnly"
	command := exec.CommandContext(u.Context(), "go", "list", "-export", "-deps", "-test", fields, ".")
	command.Dir, command.Stderr = u.folder, os.Stderr
	out, err := command.Output()
	if err != nil {
		u.Fatalf("go list in %s: %v", u.folder, err)
	}
	exports := map[string]string{}
	var own listed
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
		var p listed
		if err := decoder.Decode(&p); err != nil {
			u.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		// The first one that is not a mere dependency is the package itself. Others are made of it for its test.
		if !p.DepOnly && own.ImportPath == "" {
			own = p
		}
	}
	imports := importer.ForCompiler(u.fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	u.check(imports, own.ImportPath, own.GoFiles)
	u.check(imports, own.ImportPath+"_test", own.XTestGoFiles)
}

func (u uses) check(imports types.Importer, path string, names []string) {
	u.Helper()
	var files []*ast.File
	for _, name := range names {
		file, err := parser.ParseFile(u.fset, filepath.Join(u.folder, name), nil, 0)
		if err != nil {
			u.Fatal(err)
		}
		files = append(files, file)
	}
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: imports}
	if _, err := config.Check(path, u.fset, files, &info); err != nil {
		u.Fatal(err)
	}
	for used, object := range info.Uses {
		if u.leavesOut(used) {
			continue
		}
		if p := object.Pkg(); p != nil && isPublic(p.Path()) && object.Exported() {
			u.names[p.Name()+"."+object.Name()] = true
		}
	}
}

// leavesOut reports whether a name is in a file that does not count.
func (u uses) leavesOut(name *ast.Ident) bool {
	file := filepath.Base(u.fset.Position(name.Pos()).Filename)
	return strings.HasPrefix(file, "zz_generated") || slices.Contains(u.but, file)
}

// isPublic reports whether a package is one that authors of operators import.
func isPublic(path string) bool {
	below, ours := strings.CutPrefix(path+"/", module+"/")
	return ours && !strings.HasPrefix(below, "examples/") && !strings.Contains("/"+below, "/internal/")
}
