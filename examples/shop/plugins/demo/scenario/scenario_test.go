package scenario_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	v1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
	"github.com/espalier-dev/espalier/examples/shop/plugins/demo/scenario"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
	"github.com/espalier-dev/espalier/internal/testenv/demo/demotest"
)

var plane = controlplanetest.Shared{Options: controlplane.Options{GarbageCollection: true, NamespaceDeletion: true}}

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard()) // informers log errors when their operator ends
	os.Exit(plane.Main(m))
}

// objects are those of the scenario.
var objects = demotest.Objects{
	Kinds: []schema.GroupVersionKind{
		v1.GroupVersion.WithKind("Shop"),
		{Group: "plugins.espalier.dev", Version: "v1alpha1", Kind: "Capability"},
		appsv1.SchemeGroupVersion.WithKind("Deployment"),
		appsv1.SchemeGroupVersion.WithKind("StatefulSet"),
		corev1.SchemeGroupVersion.WithKind("Namespace"),
		corev1.SchemeGroupVersion.WithKind("ConfigMap"),
		corev1.SchemeGroupVersion.WithKind("Secret"),
		corev1.SchemeGroupVersion.WithKind("Service"),
		rbacv1.SchemeGroupVersion.WithKind("ClusterRole"),
		rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
		apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"),
	},
	Parts: []string{"demo-market", "shop-operator", "shop.", "plugins.espalier.dev"},
}

// open builds the plugins, and returns what opens the scenario with them.
func open(t *testing.T) func(context.Context, demo.Options) (*demo.Scenario, error) {
	t.Helper()
	controlplanetest.SkipIfShort(t)
	built := t.TempDir()
	if text, err := exec.CommandContext(t.Context(), "../../build", built).CombinedOutput(); err != nil {
		t.Fatalf("build the plugins: %v\n%s", err, text)
	}
	return scenario.New(built).Open
}

func newOptions(t *testing.T) demo.Options {
	t.Helper()
	options, err := demo.NewOptions(plane.Environment(t), scenario.OperatorUser)
	if err != nil {
		t.Fatal(err)
	}
	return options
}

// TestScenario plays the scenario as in the demo, also without Python, and while each second write fails. At least one
// fact of each step is not true before the step is taken. What fails, fails where it shows.
func TestScenario(t *testing.T) {
	open := open(t)
	t.Run("as in the demo", func(t *testing.T) {
		demotest.Play(t, open, newOptions(t), objects, func(s *demo.Scenario) { demotest.EachStepIsNeeded(t, s) })
	})
	t.Run("without Python", func(t *testing.T) {
		t.Setenv("PYTHONHOME", "/nowhere")
		demotest.Play(t, open, newOptions(t), objects, func(s *demo.Scenario) {
			i := slices.IndexFunc(s.Steps, func(step demo.Step) bool { return strings.Contains(step.Title, "starts beside") })
			s.Steps[i] = s.Steps[i].See("it is the one in Go", func(context.Context) error {
				if which := s.Steps[i].Show(); !strings.HasSuffix(which, "/rabbit") {
					return errors.New(which)
				}
				return nil
			})
		})
	})
	t.Run("with faults", func(t *testing.T) {
		options := newOptions(t)
		options.Users[scenario.OperatorUser].Wrap(demotest.WithFaults(t, plane.Config(t)))
		demotest.Play(t, open, options, objects, func(*demo.Scenario) {})
	})
	t.Run("the operator is gone", func(t *testing.T) {
		demotest.PlaySabotaged(t, open, newOptions(t), objects, demotest.Sabotage{
			Step: "The server of the database runs",
			Do:   func(_ context.Context, s *demo.Scenario) error { return s.Operator.Stop() },
			Want: "the operator does not run",
		})
	})
}
