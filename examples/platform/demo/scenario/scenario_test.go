package scenario_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/examples/platform/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/platform/controller"
	"github.com/espalier-dev/espalier/examples/platform/demo/scenario"
	"github.com/espalier-dev/espalier/generator"
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

// objects are those of the scenario.
var objects = demotest.Objects{
	Kinds: []schema.GroupVersionKind{
		v1alpha1.GroupVersion.WithKind("Platform"),
		controller.DashboardKind,
		corev1.SchemeGroupVersion.WithKind("Namespace"),
		corev1.SchemeGroupVersion.WithKind("ConfigMap"),
		corev1.SchemeGroupVersion.WithKind("ServiceAccount"),
		rbacv1.SchemeGroupVersion.WithKind("ClusterRole"),
		rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
		apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"),
	},
	Parts: []string{"demo-observability", "platform-operator", "observability.example.com", "platform.example.com"},
}

// TestScenarioEndsTheSame plays the scenario three times: as in the demo, with an API server that fails time and again,
// and with one that is killed in some steps. Before some steps the cluster has to look the same each time.
func TestScenarioEndsTheSame(t *testing.T) {
	t.Parallel()
	var undisturbed, faulty, killed map[string]any
	t.Run("play", func(t *testing.T) {
		t.Run("undisturbed, and with a faulty API server", func(t *testing.T) {
			t.Parallel()
			options := demotest.NewOptions(t, plane.Environment(t), scenario.OperatorUser)
			undisturbed = play(t, options, demotest.EachStepIsNeeded)
			options = demotest.NewOptions(t, plane.Environment(t), scenario.OperatorUser)
			options.Users[scenario.OperatorUser].Wrap(demotest.WithFaults(t, plane.Config(t)))
			faulty = play(t, options, nil)
		})
		t.Run("with a killed API server", func(t *testing.T) {
			t.Parallel()
			env := demotest.StartPlane(t, plane.Options)
			options := demotest.NewOptions(t, env, scenario.OperatorUser)
			options.AfterDo = demotest.RestartAPIServer(t, env,
				"Release 1.0 is ordered: eight objects in three waves",
				"Release 1.1 is ordered, which has no portal",
				"That dashboard is deleted")
			killed = play(t, options, nil)
		})
	})
	for name, disturbed := range map[string]map[string]any{"faulty": faulty, "killed": killed} {
		if diff := cmp.Diff(undisturbed, disturbed); diff != "" {
			t.Errorf("%s: the cluster differs (-undisturbed +disturbed)\n%s", name, diff)
		}
	}
}

// play plays the scenario, and returns what the cluster was like before the steps in which all is as the release wants it.
func play(t *testing.T, options demo.Options, prepare func(testing.TB, *demo.Scenario)) map[string]any {
	t.Helper()
	seen := map[string]any{}
	demotest.Play(t, scenario.Open, options, objects, func(s *demo.Scenario) {
		if prepare != nil {
			prepare(t, s)
		}
		for _, title := range []string{"A user edits the settings, and deletes the account of the viewer", "The platform is deleted"} {
			demotest.Before(t, s, title, func(context.Context) error {
				const owner = controller.Prefix + "/" + generator.LabelOwnerID // is made of the UID of the platform
				seen[title] = objects.Snapshot(t, options.Admin,
					[]string{"metadata", "labels", owner}, []string{"metadata", "annotations", owner})
				return nil
			})
		}
	})
	return seen
}

// TestScenarioFails plays the scenario with operators that are broken: it stops where that shows, and cleans up.
func TestScenarioFails(t *testing.T) {
	t.Parallel()
	env := demotest.StartPlane(t, plane.Options)
	for name, sabotage := range map[string]demotest.Sabotage{
		"the operator has lost its rights": {
			Step: "A user edits the settings, and deletes the account of the viewer",
			Do:   forbid,
			Want: `the viewer": the settings are as before`,
		},
		"the operator is gone": {
			Step: "The migration is carried out",
			Do:   func(_ context.Context, s *demo.Scenario) error { return s.Operator.Stop() },
			Want: "the operator does not run",
		},
		"the other dashboard belongs to the platform": {
			Step: "The platform is deleted",
			Do:   func(ctx context.Context, s *demo.Scenario) error { return giveAway(ctx, s.Client) },
			Want: `"The platform is deleted": that is blocked`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			options := demotest.NewOptions(t, env, scenario.OperatorUser)
			demotest.PlaySabotaged(t, scenario.Open, options, objects, sabotage)
		})
	}
}

// forbid takes what the operator may do away from it, but for what the platform itself needs.
func forbid(ctx context.Context, s *demo.Scenario) error {
	role := &rbacv1.ClusterRole{}
	if err := s.Client.Get(ctx, client.ObjectKey{Name: scenario.OperatorUser}, role); err != nil {
		return err
	}
	for i := range role.Rules {
		if role.Rules[i].Resources[0] == "configmaps" {
			role.Rules[i].Verbs = []string{"get", "list", "watch", "delete"}
		}
	}
	if err := s.Client.Update(ctx, role); err != nil {
		return err
	}
	isForbidden := s.MayNot(scenario.OperatorUser, "patch", "", "configmaps", demo.Everywhere)
	return demo.Eventually(ctx, demo.Patience, isForbidden)
}

// giveAway has the other dashboard look like one of the platform.
func giveAway(ctx context.Context, c client.Client) error {
	own := controller.NewDashboard("demo-observability", "demo-overview", "")
	other := controller.NewDashboard("demo-observability", "sales", "")
	for _, dashboard := range []client.Object{own, other} {
		if err := c.Get(ctx, client.ObjectKeyFromObject(dashboard), dashboard); err != nil {
			return err
		}
	}
	other.SetLabels(own.GetLabels())
	other.SetAnnotations(own.GetAnnotations())
	return c.Update(ctx, other)
}

// TestInhabitedCluster: what the platform would wait for belongs to another user.
func TestInhabitedCluster(t *testing.T) {
	options := demotest.NewOptions(t, plane.Environment(t), scenario.OperatorUser)
	admin, err := client.New(options.Admin, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: controller.ViewerRoleName("demo-observability", "demo")}}
	if err := admin.Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin.Delete(context.Background(), role); err != nil {
			t.Error(err)
		}
	})
	names := objects.Names(t, options.Admin)
	if _, err = scenario.Open(t.Context(), options); err == nil || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("the error is %v", err)
	}
	if diff := cmp.Diff(names, objects.Names(t, options.Admin)); diff != "" || len(names) == 0 {
		t.Errorf("what was there has changed (-before +after)\n%s", diff)
	}
}
