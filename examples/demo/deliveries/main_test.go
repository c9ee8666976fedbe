package main

import (
	"os"
	"testing"

	delivery "github.com/espalier-dev/espalier/examples/platform/delivery/demo/scenario"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/demo/demotest"
)

var plane = controlplanetest.Shared{Options: controlplane.Options{NamespaceDeletion: true}}

func TestMain(m *testing.M) { os.Exit(plane.Main(m)) }

func TestExistingCluster(t *testing.T) {
	demotest.RunOnExistingCluster(t, plane.Config(t), delivery.Demo,
		"the monitor is Ready: revision 1", "the schema of the chart refuses")
}
