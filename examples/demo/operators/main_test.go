package main

import (
	"os"
	"testing"

	platform "github.com/espalier-dev/espalier/examples/platform/demo/scenario"
	tenant "github.com/espalier-dev/espalier/examples/tenant/demo/scenario"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/demo/demotest"
)

var plane = controlplanetest.Shared{Options: controlplane.Options{NamespaceDeletion: true}}

func TestMain(m *testing.M) { os.Exit(plane.Main(m)) }

func TestExistingCluster(t *testing.T) {
	demotest.RunOnExistingCluster(t, plane.Config(t), tenant.Demo, "both are Ready", "A user deletes")
	demotest.RunOnExistingCluster(t, plane.Config(t), platform.Demo, "the platform is Ready", "which has none")
}
