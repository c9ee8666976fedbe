package command_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/command"
	"github.com/espalier-dev/espalier/cmd/espalier/vet"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
)

// plane is the cluster of the tests of components.
var plane = controlplanetest.Shared{
	Options: controlplane.Options{GarbageCollection: true, NamespaceDeletion: true},
}

// runsCommand is the environment variable with which the test binary is the command.
const runsCommand = "ESPALIER_TEST_RUNS_COMMAND"

// runChild is main of the command.
func runChild() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command.New(os.Stdout, os.Stderr).ExecuteContext(ctx)
	stop()
	if err != nil && err.Error() != "" {
		fmt.Fprintln(os.Stderr, "espalier:", err)
	}
	os.Exit(command.ExitCode(err))
}

func TestMain(m *testing.M) {
	vet.Main()
	if os.Getenv(runsCommand) != "" {
		runChild()
	}
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.Discard())
	os.Exit(plane.Main(m))
}
