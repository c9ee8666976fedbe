package scenario_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	v1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
	"github.com/espalier-dev/espalier/examples/shop/demo/scenario"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
	"github.com/espalier-dev/espalier/internal/testenv/demo/demotest"
)

var plane = controlplanetest.Shared{Options: controlplane.Options{GarbageCollection: true, NamespaceDeletion: true}}

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard()) // informers log errors when their API server is killed, replicas when they are
	os.Exit(plane.Main(m))
}

// parts are what names of objects of the scenario have in them.
var parts = []string{"demo-shop", "shop-operator", ".shop.example.com"}

// shopObjects are of the kinds that a shop has objects of.
var shopObjects = demotest.Objects{Parts: parts, Kinds: []schema.GroupVersionKind{
	v1.GroupVersion.WithKind("Shop"),
	appsv1.SchemeGroupVersion.WithKind("Deployment"),
	batchv1.SchemeGroupVersion.WithKind("CronJob"),
	corev1.SchemeGroupVersion.WithKind("ConfigMap"),
	corev1.SchemeGroupVersion.WithKind("Service"),
	networkingv1.SchemeGroupVersion.WithKind("Ingress"),
}}

// objects are all of the scenario, those that it makes itself included.
var objects = demotest.Objects{Parts: parts, Kinds: append([]schema.GroupVersionKind{
	apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"),
	corev1.SchemeGroupVersion.WithKind("Namespace"),
	rbacv1.SchemeGroupVersion.WithKind("ClusterRole"),
	rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
	admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration"),
	admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"),
}, shopObjects.Kinds...)}

// TestScenarioEndsTheSame plays the scenario three times: as in the demo, with an API server that fails time and again,
// and with one that is killed in some steps. Each time the cluster has to look the same before the shop is deleted.
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
				"The ConfigMap is created", "A value in the ConfigMap changes",
				"The shop is deleted, which is not protected any more")
			killed = play(t, options, nil)
		})
	})
	for name, disturbed := range map[string]map[string]any{"faulty": faulty, "killed": killed} {
		if diff := cmp.Diff(undisturbed, disturbed); diff != "" {
			t.Errorf("%s: the cluster differs (-undisturbed +disturbed)\n%s", name, diff)
		}
	}
}

// play plays the scenario, and returns what the cluster was like before its last two steps.
func play(t *testing.T, options demo.Options, prepare func(testing.TB, *demo.Scenario)) map[string]any {
	t.Helper()
	var seen map[string]any
	demotest.Play(t, scenario.Open, options, objects, func(s *demo.Scenario) {
		if prepare != nil {
			prepare(t, s)
		}
		s.Steps[len(s.Steps)-2].Do = func(context.Context) error {
			seen = shopObjects.Snapshot(t, options.Admin)
			return nil
		}
	})
	if len(seen) == 0 {
		t.Error("the cluster was empty when it was looked at")
	}
	return seen
}

// TestPlay shares a cluster that is ready among its subtests: each needs what the one before has left.
func TestPlay(t *testing.T) {
	t.Parallel()
	options := demotest.NewOptions(t, demotest.StartPlane(t, plane.Options), scenario.OperatorUser)
	options.Patience = 100 * time.Millisecond
	s, err := scenario.Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
		objects.AreGone(t, options.Admin)
	})
	play := func(ctx context.Context, steps ...demo.Step) error {
		s.Steps = steps
		return s.Play(ctx)
	}
	start := s.Steps[0]
	holds := func(err error) func(context.Context) error { return func(context.Context) error { return err } }

	t.Run("a cluster that is inhabited", func(t *testing.T) {
		before := objects.Names(t, options.Admin)
		if _, err := scenario.Open(t.Context(), options); err == nil || !strings.Contains(err.Error(), "already exists") {
			t.Errorf("the error is %v", err)
		}
		if diff := cmp.Diff(before, objects.Names(t, options.Admin)); diff != "" || len(before) == 0 {
			t.Errorf("what was there has changed (-before +after)\n%s", diff)
		}
	})
	t.Run("no operator", func(t *testing.T) {
		err := play(t.Context(), demo.Step{Title: "Waiting", Checks: start.Checks})
		if err == nil || !strings.Contains(err.Error(), "the operator does not run") {
			t.Errorf("the error is %v", err)
		}
	})
	t.Run("not true", func(t *testing.T) {
		err := play(t.Context(),
			demo.Step{Title: "Nothing happens"},
			demo.Step{Title: "The operator starts", Do: start.Do, Checks: []demo.Check{
				{Text: "that is true", Holds: holds(nil)},
				{Text: "pigs fly", Holds: holds(errors.New("they are on the ground"))},
			}},
			demo.Step{Title: "This is not played", Do: func(context.Context) error { panic("played") }},
		)
		want := `step 2, "The operator starts": pigs fly: not so after 100ms: they are on the ground`
		if err == nil || err.Error() != want {
			t.Errorf("the error is\n%v, not\n%s", err, want)
		}
	})
	t.Run("interrupted", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("enough")
		err := play(ctx, demo.Step{Title: "Waiting", Checks: []demo.Check{
			{Text: "never", Holds: func(context.Context) error { cancel(cause); return errors.New("never") }},
		}})
		if !errors.Is(err, cause) {
			t.Errorf("the error is %v", err)
		}
	})
}

// TestReplicas plays the scenario as in the demo, and as in the demo on a cluster that cannot call the sharder.
func TestReplicas(t *testing.T) {
	t.Parallel()
	for name, calls := range map[string]bool{"with the webhook of the sharder": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			options := demotest.NewOptions(t, demotest.StartPlane(t, plane.Options), scenario.OperatorUser)
			options.Webhooks = calls
			demotest.Play(t, scenario.OpenReplicas, options, objects, func(*demo.Scenario) {})
		})
	}
}
