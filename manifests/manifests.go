// Package manifests writes the files that can be derived from the tree of an operator: its RBAC role, a picture of the
// tree, and the ring of a sharded one. It is for a command that "go generate" runs:
//
//	func main() { manifests.Main(".", files) }
//
//	func files(dir string) (manifests.Files, error) {
//		g := manifests.Generator{Scheme: scheme, Definitions: os.DirFS(filepath.Join(dir, "crd"))}
//		return g.Operator("shop-operator", controller.New(reconcilers.Config{}))
//	}
//
// and for a test that fails when the files are not current, see [Files.Compare].
package manifests

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/internal/definitions"
	"github.com/espalier-dev/espalier/reconcilers"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Paths of the files that [Generator.Operator] makes.
const (
	// TreeFile is the picture of the tree.
	TreeFile = "tree.txt"
	// RoleFile is the role of the operator.
	RoleFile = "rbac/role.yaml"
)

// header marks generated manifests.
const header = "# Derived from the tree. DO NOT EDIT.\n"

// Generator derives files from descriptions of trees. The output depends on nothing but its fields and the description.
type Generator struct {
	// Scheme gives the kinds of Go types. Required.
	Scheme *runtime.Scheme

	// Mapper gives the names of resources. Optional.
	Mapper meta.RESTMapper

	// Definitions has the CustomResourceDefinitions of the operator, in YAML or JSON files in any folder. They give the
	// names of resources too. Other objects and other files are ignored. Definitions that the tree itself uses, such as
	// the Dependents of a component, need not be there. The name of a resource that nothing gives is guessed, and
	// marked with a comment. Optional.
	Definitions fs.FS
}

// Operator returns the files of an operator with one root: [TreeFile], and [RoleFile] with a ClusterRole of that name.
func (g Generator) Operator(role string, root reconcilers.Describer) (Files, error) {
	tree := root.Describe()
	manifest, err := g.ClusterRole(role, tree)
	if err != nil {
		return nil, err
	}
	return Files{TreeFile: []byte(tree.String()), RoleFile: manifest}, nil
}

// ClusterRole returns the manifest of a ClusterRole with the rules that the tree needs.
func (g Generator) ClusterRole(name string, tree reconcilers.Description) ([]byte, error) {
	return g.manifest(tree, func(rules []rbacv1.PolicyRule) any {
		return rbacv1.ClusterRole{
			TypeMeta: typeMeta("ClusterRole"), ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules,
		}
	})
}

// Role returns the manifest of a Role with the rules that the tree needs. The namespace may be empty, for the one that
// the manifest is applied to.
func (g Generator) Role(namespace, name string, tree reconcilers.Description) ([]byte, error) {
	return g.manifest(tree, func(rules []rbacv1.PolicyRule) any {
		return rbacv1.Role{
			TypeMeta: typeMeta("Role"), ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Rules: rules,
		}
	})
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}

func (g Generator) manifest(tree reconcilers.Description, role func([]rbacv1.PolicyRule) any) ([]byte, error) {
	mapper, err := g.mapper()
	if err != nil {
		return nil, err
	}
	rules, err := tree.PolicyRules(g.Scheme, mapper)
	if err != nil {
		return nil, err
	}
	guessed, err := tree.GuessedResources(g.Scheme, mapper)
	if err != nil {
		return nil, err
	}
	manifest, err := yaml.Marshal(role(rules))
	if err != nil {
		return nil, err
	}
	return noteGuessed(manifest, rules, guessed), nil
}

// mapper returns a mapper of what the fields say.
func (g Generator) mapper() (meta.RESTMapper, error) {
	var mappers meta.MultiRESTMapper
	if g.Mapper != nil {
		mappers = append(mappers, g.Mapper)
	}
	if g.Definitions != nil {
		defined, err := readObjects(g.Definitions)
		if err != nil {
			return nil, fmt.Errorf("unable to read definitions: %w", err)
		}
		mappers = append(mappers, definitions.Mapper(defined...))
	}
	return meta.FirstHitRESTMapper{MultiRESTMapper: mappers}, nil
}

// readObjects returns the objects in the manifests of a folder and its subfolders, sorted by path.
func readObjects(folder fs.FS) ([]runtime.Object, error) {
	var objects []runtime.Object
	err := fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name)) {
			return err
		}
		content, err := fs.ReadFile(folder, name)
		if err != nil {
			return err
		}
		decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), len(content)+1)
		for {
			fields := map[string]any{}
			switch err := decoder.Decode(&fields); {
			case errors.Is(err, io.EOF):
				return nil
			case err != nil:
				return fmt.Errorf("%s: %w", name, err)
			}
			objects = append(objects, &unstructured.Unstructured{Object: fields})
		}
	})
	return objects, err
}

// Files are contents of files by their paths, with slashes.
type Files map[string][]byte

// Write writes the files below dir, in folders that it makes.
func (f Files) Write(dir string) error {
	for _, name := range slices.Sorted(maps.Keys(f)) {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(at, f[name], 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Compare returns an error that names the files below dir that are missing or have another content, each with the first
// line that differs. It is for a test:
//
//	if err := files.Compare(".."); err != nil {
//		t.Error(err)
//	}
func (f Files) Compare(dir string) error {
	var stale []error
	for _, name := range slices.Sorted(maps.Keys(f)) {
		content, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		switch {
		case err != nil:
			stale = append(stale, fmt.Errorf("run go generate: %w", err))
		case !bytes.Equal(content, f[name]):
			stale = append(stale, fmt.Errorf("run go generate: %s is not what is derived: %s",
				name, firstDifference(string(content), string(f[name]))))
		}
	}
	return errors.Join(stale...)
}

func firstDifference(is, derived string) string {
	old, current := strings.Split(is, "\n"), strings.Split(derived, "\n")
	i := 0
	for i < min(len(old), len(current)) && old[i] == current[i] {
		i++
	}
	line := func(lines []string) string {
		if i < len(lines) {
			return fmt.Sprintf("%q", lines[i])
		}
		return "the end of the file"
	}
	return fmt.Sprintf("line %d is %s instead of %s", i+1, line(old), line(current))
}

// Main writes the files that derive returns for dir below dir. After an error it prints the error and ends the program
// with the code 1.
func Main(dir string, derive func(dir string) (Files, error)) {
	files, err := derive(dir)
	if err == nil {
		err = files.Write(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
