package main

import (
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"testing"

	delivery "github.com/espalier-dev/espalier/examples/platform/delivery/demo/scenario"
	platform "github.com/espalier-dev/espalier/examples/platform/demo/scenario"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/demo/demotest"
)

var plane = controlplanetest.Shared{Options: controlplane.Options{NamespaceDeletion: true}}

// variable has the test binary be the program.
const variable = "ESPALIER_DEMO"

func TestMain(m *testing.M) {
	if os.Getenv(variable) != "" {
		main()
		return
	}
	os.Exit(plane.Main(m))
}

// program returns a command that runs the program on clusters in its process.
func program(t *testing.T, flag string) *exec.Cmd {
	t.Helper()
	controlplanetest.SkipIfShort(t)
	command := exec.CommandContext(t.Context(), os.Args[0], flag)
	command.Env = append(os.Environ(), variable+"=1", "USE_EXISTING_CLUSTER=", "REAL=")
	return command
}

func TestExistingCluster(t *testing.T) {
	demotest.RunOnExistingCluster(t, plane.Config(t), platform.Demo, "the platform is Ready", "which has none")
	demotest.RunOnExistingCluster(t, plane.Config(t), delivery.Demo,
		"the monitor is Ready: revision 1", "the schema of the chart refuses")
}

// TestPage has the program serve the page, and interrupts it.
func TestPage(t *testing.T) {
	line := regexp.MustCompile(`The page of the operator is at (http://\S+) until`)
	address, _ := demotest.StartProgram(t, program(t, "-page"), line)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Error(err)
	}
	if response.StatusCode != http.StatusOK {
		t.Errorf("the page answers %s, want %d", response.Status, http.StatusOK)
	}
}
