package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	shop "github.com/espalier-dev/espalier/examples/shop/demo/scenario"
	plugins "github.com/espalier-dev/espalier/examples/shop/plugins/demo/scenario"
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
	demotest.RunOnExistingCluster(t, plane.Config(t), shop.Demo,
		"the registry, outside the cluster, has its host", "The Deployment is rolled out")
	demotest.RunOnExistingCluster(t, plane.Config(t), shop.Replicas, "each was reconciled", "A third replica joins")
	built := t.TempDir()
	if text, err := exec.CommandContext(t.Context(), "../../shop/plugins/build", built).CombinedOutput(); err != nil {
		t.Fatalf("build the plugins: %v\n%s", err, text)
	}
	demotest.RunOnExistingCluster(t, plane.Config(t), plugins.New(built),
		"users see what they can ask for", "The server of the database runs")
}

// TestKeep has the program leave its operator running, does all that it says, and interrupts it.
func TestKeep(t *testing.T) {
	controlplanetest.SkipIfShort(t)
	bin := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-w", "-o", bin, ".")
	build.Dir = "../../../hack/kubectl"
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build kubectl: %v\n%s", err, text)
	}
	command := exec.CommandContext(t.Context(), os.Args[0], "-keep")
	command.Env = append(os.Environ(), program+"=1", "USE_EXISTING_CLUSTER=", "REAL=")
	kubeconfig, printed := demotest.StartWithKubeconfig(t, command)
	env := append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))

	answers := [][]string{
		{"shop.shop.example.com/blue created", "condition met", "deployment.apps/blue", "service/blue", "blue.example.com"},
		{"SettingsFound", "DeploymentReady", "IngressReady", "Registered"},
		{`service "blue" deleted`, `ingress.networking.k8s.io "blue" deleted`, `cronjob.batch "blue-mail" deleted`},
		{"service/blue condition met", "cronjob.batch/blue-mail condition met", "Created Service"},
		{"shop blue is protected", `shop.shop.example.com "blue" deleted`},
	}
	if len(answers) != len(shop.Demo.Trials) {
		t.Fatalf("there are %d trials, want %d", len(shop.Demo.Trials), len(answers))
	}
	for i, trial := range shop.Demo.Trials {
		controlplanetest.Eventually(t, "it is not printed how to "+trial.Text, func(context.Context) error {
			if text := printed(); !strings.Contains(text, trial.Text+"\n\n"+trial.Commands) {
				return fmt.Errorf("it is printed\n%s", text)
			}
			return nil
		})
		shell := exec.CommandContext(t.Context(), "sh", "-c", trial.Commands)
		shell.Env = env
		text, _ := shell.CombinedOutput() // The last one is refused something.
		for _, want := range answers[i] {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s: it is printed\n%s\nand not %q", trial.Text, text, want)
			}
		}
	}
}

// TestKeepOnExistingCluster is refused: what a user makes would stay.
func TestKeepOnExistingCluster(t *testing.T) {
	t.Setenv("USE_EXISTING_CLUSTER", "true")
	kept := shop.Demo
	kept.Keep = true
	if err := kept.Run(t.Context(), logr.Discard(), io.Discard); err == nil || !strings.Contains(err.Error(), "-keep") {
		t.Errorf("the demo ended with %v, want an error about -keep", err)
	}
}
