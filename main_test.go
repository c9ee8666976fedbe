package espalier_test

import (
	"os"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	rtesting "github.com/espalier-dev/espalier/testing"
)

// TestMain lets the flag -rtesting.differential make the calls of the tables on a real API server, too.
func TestMain(m *testing.M) {
	os.Exit(rtesting.Main(m, &envtest.Environment{
		CRDs: []*apiextensionsv1.CustomResourceDefinition{resources.CRD()},
	}))
}
