package dependents_test

import (
	"os"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/testing/apiserver"
)

// TestMain lets the flags -rtesting.real and -rtesting.differential run the tables on an API server.
func TestMain(m *testing.M) {
	os.Exit(apiserver.Main(m, apiserver.Options{
		CRDs: []*apiextensionsv1.CustomResourceDefinition{resources.CRD()},
	}))
}
