package controller_test

import (
	"os"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/envtest"

	rtesting "github.com/espalier-dev/espalier/testing"
)

// TestMain lets the flag -rtesting.differential make the calls of the tables on a real API server, too.
func TestMain(m *testing.M) {
	os.Exit(rtesting.Main(m, &envtest.Environment{CRDDirectoryPaths: []string{"../config/crd"}}))
}
