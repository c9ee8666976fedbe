package scenario_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/examples/platform/delivery/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/platform/delivery/demo/scenario"
	"github.com/espalier-dev/espalier/examples/platform/delivery/software"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
	"github.com/espalier-dev/espalier/internal/testenv/demo/demotest"
)

var plane = controlplanetest.Shared{Options: controlplane.Options{GarbageCollection: true, NamespaceDeletion: true}}

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard()) // informers log errors when their API server is killed
	os.Exit(plane.Main(m))
}

// objects are those of the scenario in the first cluster.
var objects = demotest.Objects{
	Kinds: []schema.GroupVersionKind{
		v1alpha1.GroupVersion.WithKind("Monitor"),
		v1alpha1.GroupVersion.WithKind("Agent"),
		software.ProbeKind,
		batchv1.SchemeGroupVersion.WithKind("Job"),
		corev1.SchemeGroupVersion.WithKind("Namespace"),
		corev1.SchemeGroupVersion.WithKind("ConfigMap"),
		corev1.SchemeGroupVersion.WithKind("Secret"),
		corev1.SchemeGroupVersion.WithKind("Service"),
		corev1.SchemeGroupVersion.WithKind("ServiceAccount"),
		rbacv1.SchemeGroupVersion.WithKind("ClusterRole"),
		rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
		apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"),
	},
	Parts: []string{"demo-delivery", "delivery-", "monitor.example.com", "platform.example.com"},
}

// TestScenario plays the scenario as in the demo. At least one fact of each step is not true before the step is taken.
func TestScenario(t *testing.T) {
	demotest.Play(t, scenario.Open, newOptions(t), objects, func(s *demo.Scenario) { demotest.EachStepIsNeeded(t, s) })
}

// TestScenarioWithFaults plays it while each second write fails in the first cluster.
func TestScenarioWithFaults(t *testing.T) {
	options := newOptions(t)
	options.Users[scenario.OperatorUser].Wrap(demotest.WithFaults(t, plane.Config(t)))
	demotest.Play(t, scenario.Open, options, objects, func(*demo.Scenario) {})
}

// TestScenarioWithoutSecondCluster plays what is left then.
func TestScenarioWithoutSecondCluster(t *testing.T) {
	demotest.Play(t, scenario.Open, newOptionsOfOneCluster(t), objects, func(*demo.Scenario) {})
}

// TestScenarioWithoutOperator plays it with an operator that stops.
func TestScenarioWithoutOperator(t *testing.T) {
	demotest.PlaySabotaged(t, scenario.Open, newOptionsOfOneCluster(t), objects, demotest.Sabotage{
		Step: "The Job of that hook succeeds",
		Do:   func(_ context.Context, s *demo.Scenario) error { return s.Operator.Stop() },
		Want: "the operator does not run",
	})
}

// TestScenarioWithAllRights plays it with an account in the second cluster that may do everything.
func TestScenarioWithAllRights(t *testing.T) {
	options := newOptions(t)
	second, err := client.New(options.Second.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	fixture := &demo.Fixture{Client: second}
	demotest.PlaySabotaged(t, scenario.Open, options, objects, demotest.Sabotage{
		Step: "An agent is ordered: a kustomization for another cluster, as a service account there",
		Do: func(ctx context.Context, _ *demo.Scenario) error {
			const courier = "system:serviceaccount:demo-delivery:courier"
			everything := &rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{
				{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
			}}
			everything.Name = "everything"
			if err := fixture.Grants(everything, courier)(ctx); err != nil {
				return err
			}
			return demo.Eventually(ctx, demo.Patience, fixture.May(courier, "create", "", "configmaps", "default"))
		},
		Want: "the condition says who lacks which permission",
	})
}

func newOptionsOfOneCluster(t *testing.T) demo.Options {
	t.Helper()
	options, err := demo.NewOptions(plane.Environment(t), scenario.OperatorUser)
	if err != nil {
		t.Fatal(err)
	}
	return options
}

func newOptions(t *testing.T) demo.Options {
	t.Helper()
	options := newOptionsOfOneCluster(t)
	second, err := controlplane.Start(t.Context(), controlplane.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(second.Err(), second.Stop()); err != nil {
			t.Error(err)
		}
	})
	options.Second = second
	return options
}
