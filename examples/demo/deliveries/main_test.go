package main

import (
	"os"
	"os/exec"
	"testing"

	delivery "github.com/espalier-dev/espalier/examples/platform/delivery/demo/scenario"
	plugins "github.com/espalier-dev/espalier/examples/plugins/demo/scenario"
	shop "github.com/espalier-dev/espalier/examples/shop/demo/scenario"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/demo/demotest"
)

var plane = controlplanetest.Shared{Options: controlplane.Options{NamespaceDeletion: true}}

func TestMain(m *testing.M) { os.Exit(plane.Main(m)) }

func TestExistingCluster(t *testing.T) {
	demotest.RunOnExistingCluster(t, plane.Config(t), shop.Demo, "each was reconciled", "A third replica joins")
	demotest.RunOnExistingCluster(t, plane.Config(t), delivery.Demo,
		"the monitor is Ready: revision 1", "the schema of the chart refuses")
	built := t.TempDir()
	if text, err := exec.CommandContext(t.Context(), "../../plugins/build", built).CombinedOutput(); err != nil {
		t.Fatalf("build the plugins: %v\n%s", err, text)
	}
	demotest.RunOnExistingCluster(t, plane.Config(t), plugins.New(built),
		"users see what they can ask for", "The server of the database runs")
}
