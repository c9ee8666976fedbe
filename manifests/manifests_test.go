package manifests_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/espalier-dev/espalier/manifests"
	"github.com/espalier-dev/espalier/reconcilers"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// root is a root that reads objects of a custom type.
func root() *reconcilers.ResourceReconciler[*appsv1.Deployment] {
	index := &unstructured.Unstructured{}
	index.SetAPIVersion("example.com/v1")
	index.SetKind("Index")
	return &reconcilers.ResourceReconciler[*appsv1.Deployment]{
		Name: "Web",
		Reconciler: &reconcilers.SyncReconciler[*appsv1.Deployment]{
			Name: "Search",
			Sync: func(context.Context, *appsv1.Deployment) error { return nil },
			Uses: []reconcilers.Access{{Object: index, Verbs: []string{"get", "list", "watch"}}},
		},
	}
}

const definition = `
apiVersion: v1
kind: ConfigMap
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
spec:
  group: example.com
  names: {kind: Index, plural: indices}
  versions: [{name: v1}]
`

func ExampleGenerator() {
	g := manifests.Generator{
		Scheme: clientgoscheme.Scheme,
		// Usually os.DirFS("crd").
		Definitions: fstest.MapFS{"index.yaml": {Data: []byte(definition)}},
	}
	files, err := g.Operator("web-operator", root())
	fmt.Println(string(files[manifests.TreeFile]), err)

	_, role, _ := strings.Cut(string(files[manifests.RoleFile]), "- example.com\n")
	fmt.Println(role)
	// Output:
	// ResourceReconciler "Web" Deployment
	// └─ SyncReconciler "Search"
	//  <nil>
	//   resources:
	//   - indices
	//   verbs:
	//   - get
	//   - list
	//   - watch
}

func TestGuessesAreMarked(t *testing.T) {
	const mark = "# The resource indexs.example.com is guessed from the kind Index.\n"
	for name, test := range map[string]struct {
		definitions fstest.MapFS
		guessed     bool
	}{
		"no definitions":           {nil, true},
		"another file":             {fstest.MapFS{"index.txt": {Data: []byte(definition)}}, true},
		"defined":                  {fstest.MapFS{"index.yaml": {Data: []byte(definition)}}, false},
		"defined in a folder":      {fstest.MapFS{"a/b/index.yml": {Data: []byte(definition)}}, false},
		"an empty file":            {fstest.MapFS{"index.yaml": {}}, true},
		"a file of comments alone": {fstest.MapFS{"index.yaml": {Data: []byte("# nothing\n---\n")}}, true},
	} {
		g := manifests.Generator{Scheme: clientgoscheme.Scheme}
		if test.definitions != nil {
			g.Definitions = test.definitions
		}
		for kind, derive := range map[string]func() ([]byte, error){
			"ClusterRole": func() ([]byte, error) { return g.ClusterRole("web", root().Describe()) },
			"Role":        func() ([]byte, error) { return g.Role("here", "web", root().Describe()) },
		} {
			manifest, err := derive()
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if strings.Contains(string(manifest), mark) != test.guessed || strings.Contains(string(manifest), "indices") == test.guessed {
				t.Errorf("%s: the %s is\n%s\nwant the guess marked: %t", name, kind, manifest, test.guessed)
			}
			if !strings.Contains(string(manifest), "\nkind: "+kind+"\n") {
				t.Errorf("%s: the manifest is\n%[3]s\nwant a %[2]s", name, kind, manifest)
			}
		}
	}
}

func TestMalformedDefinitionsAreAnError(t *testing.T) {
	g := manifests.Generator{
		Scheme: clientgoscheme.Scheme, Definitions: fstest.MapFS{"index.yaml": {Data: []byte("a: [")}},
	}
	if _, err := g.Operator("web", root()); err == nil || !strings.Contains(err.Error(), "index.yaml") {
		t.Errorf("the error is %v, want one that names index.yaml", err)
	}
}

func TestFilesAreWrittenAndCompared(t *testing.T) {
	dir := t.TempDir()
	files := manifests.Files{"tree.txt": []byte("a\nb\n"), "rbac/role.yaml": []byte("c\n")}
	if err := files.Compare(dir); err == nil || !strings.Contains(err.Error(), "role.yaml") {
		t.Errorf("with missing files, the error is %v, want one that names role.yaml", err)
	}
	if err := files.Write(dir); err != nil {
		t.Fatal(err)
	}
	if err := files.Compare(dir); err != nil {
		t.Errorf("current files: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "tree.txt"), []byte("a\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	err := files.Compare(dir)
	if err == nil || !strings.Contains(err.Error(), `tree.txt is not what is derived: line 2 is "" instead of "b"`) ||
		strings.Contains(err.Error(), "role.yaml") {
		t.Errorf("with a stale file, the error is %v, want one that names line 2 of tree.txt, and not role.yaml", err)
	}
	if err := files.Write(filepath.Join(dir, "tree.txt")); err == nil {
		t.Error("the files are written below a file, want an error")
	}
}
