package simulation

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/espalier-dev/espalier/testing/internal/crdfile"
)

// ReadDefinitions reads the custom resource definitions in files and folders. Folders below them are not read. The test
// fails if something cannot be read.
func ReadDefinitions(t testing.TB, paths ...string) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	read, err := crdfile.Read(paths, false)
	if err != nil {
		t.Fatalf("read custom resource definitions: %v", err)
	}
	if len(read) == 0 {
		t.Fatalf("there are no custom resource definitions in %q", paths)
	}
	var definitions []*apiextensionsv1.CustomResourceDefinition
	for _, d := range read {
		definitions = append(definitions, d.CustomResourceDefinition)
	}
	return definitions
}
