package controller_test

import (
	"os"
	"testing"

	"github.com/espalier-dev/espalier/testing/apiserver"
)

// TestMain lets the flags -rtesting.real and -rtesting.differential run the tables on an API server.
func TestMain(m *testing.M) {
	os.Exit(apiserver.Main(m, apiserver.Options{CRDPaths: []string{"../config/crd"}}))
}
