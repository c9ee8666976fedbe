package main

import (
	"os"
	"testing"

	"github.com/espalier-dev/espalier/internal/controlplane"
	"github.com/espalier-dev/espalier/internal/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/storytelling/storytellingtest"
)

var plane = controlplanetest.Shared{Options: controlplane.Options{NamespaceDeletion: true}}

func TestMain(m *testing.M) { os.Exit(plane.Main(m)) }

func TestExistingCluster(t *testing.T) {
	storytellingtest.RunOnExistingCluster(t, plane.Config(t), demo, "the platform is Ready", "has none")
}
