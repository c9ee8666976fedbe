package simulation

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// ReadDefinitions reads the custom resource definitions in files and folders. Folders below them are not read. The test
// fails if something cannot be read.
func ReadDefinitions(t testing.TB, paths ...string) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	read := envtest.CRDInstallOptions{Paths: paths, ErrorIfPathMissing: true}
	if err := envtest.ReadCRDFiles(&read); err != nil {
		t.Fatalf("read custom resource definitions: %v", err)
	}
	if len(read.CRDs) == 0 {
		t.Fatalf("there are no custom resource definitions in %q", paths)
	}
	return read.CRDs
}
