package command_test

import (
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/command"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
)

// plane is the cluster of the tests of components.
var plane = controlplanetest.Shared{
	Options: controlplane.Options{GarbageCollection: true, NamespaceDeletion: true},
}

// runsCommand is the environment variable with which the test binary is the command.
const runsCommand = "ESPALIER_TEST_RUNS_COMMAND"

func TestMain(m *testing.M) {
	command.SetCompletionTime(time.Minute)
	if os.Getenv(runsCommand) != "" {
		command.Main()
	}
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.Discard())
	os.Exit(plane.Main(m))
}
