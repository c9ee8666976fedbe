package main

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	platform "github.com/espalier-dev/espalier/examples/platform/demo/scenario"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/demo/demotest"
)

var plane = controlplanetest.Shared{Options: controlplane.Options{NamespaceDeletion: true}}

// program has the test binary be the program.
const program = "ESPALIER_DEMO"

func TestMain(m *testing.M) {
	if os.Getenv(program) != "" {
		main()
		return
	}
	os.Exit(plane.Main(m))
}

func TestExistingCluster(t *testing.T) {
	demotest.RunOnExistingCluster(t, plane.Config(t), platform.Demo, "the platform is Ready", "which has none")
}

// TestKeepOnExistingCluster is refused: what a user makes would stay.
func TestKeepOnExistingCluster(t *testing.T) {
	t.Setenv("USE_EXISTING_CLUSTER", "true")
	kept := platform.Demo
	kept.Keep = true
	if err := kept.Run(t.Context(), logr.Discard(), io.Discard); err == nil || !strings.Contains(err.Error(), "-keep") {
		t.Errorf("the demo ended with %v, want an error about -keep", err)
	}
}
