package scenario_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

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
	demotest.Play(t, scenario.Open, newOptions(t), objects, checkEachStepIsNeeded)
}

// TestScenarioWithFaults plays it while each second write fails in the first cluster.
func TestScenarioWithFaults(t *testing.T) {
	options := newOptions(t)
	options.Users[scenario.OperatorUser].Wrap(demotest.WithFaults(t, plane.Config(t)))
	demotest.Play(t, scenario.Open, options, objects, func(*demo.Scenario) {})
}

// TestScenarioWithoutSecondCluster plays what is left then.
func TestScenarioWithoutSecondCluster(t *testing.T) {
	options, err := demo.NewOptions(plane.Environment(t), scenario.OperatorUser)
	if err != nil {
		t.Fatal(err)
	}
	demotest.Play(t, scenario.Open, options, objects, func(*demo.Scenario) {})
}

// TestScenarioFails plays it with an operator or a cluster that is not as it should be: it stops where that shows.
func TestScenarioFails(t *testing.T) {
	options := newOptions(t)
	second, err := client.New(options.Second.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	withoutSecond := options
	withoutSecond.Second = nil
	for name, tc := range map[string]struct {
		options demo.Options
		// sabotage is done before the step of that title.
		step     string
		sabotage func(ctx context.Context, s *demo.Scenario) error
		want     string
	}{
		"the operator is gone": {
			options:  withoutSecond,
			step:     "The Job of that hook succeeds",
			sabotage: func(_ context.Context, s *demo.Scenario) error { return s.Operator.Stop() },
			want:     "the operator does not run",
		},
		"the account may do everything": {
			options: options,
			step:    "An agent is ordered: a kustomization for another cluster, as a service account there",
			sabotage: func(ctx context.Context, _ *demo.Scenario) error {
				binding := &rbacv1.ClusterRoleBinding{
					RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
					Subjects: []rbacv1.Subject{
						{Kind: rbacv1.ServiceAccountKind, Namespace: "demo-delivery", Name: "courier"},
					},
				}
				binding.Name = "everything"
				if err := second.Create(ctx, binding); err != nil {
					return err
				}
				const courier = "system:serviceaccount:demo-delivery:courier"
				has := (&demo.Fixture{Client: second}).May(courier, "create", "", "configmaps", "default")
				return demo.Eventually(ctx, demo.Patience, has)
			},
			want: "the condition says who lacks which permission",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := scenario.Open(t.Context(), tc.options)
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(s.Steps, func(step demo.Step) bool { return step.Title == tc.step })
			if i < 0 {
				t.Fatalf("there is no step %q", tc.step)
			}
			do := s.Steps[i].Do
			s.Steps[i].Do = func(ctx context.Context) error {
				// What is done may take its time. Only the facts that are false then are to fail soon.
				err := errors.Join(tc.sabotage(ctx, s), do(ctx))
				s.Patience = 3 * time.Second
				return err
			}
			if err := s.Play(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v", err)
			}
			if err := s.Close(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
			objects.AreGone(t, options.Admin)
		})
	}
}

func newOptions(t *testing.T) demo.Options {
	t.Helper()
	options, err := demo.NewOptions(plane.Environment(t), scenario.OperatorUser)
	if err != nil {
		t.Fatal(err)
	}
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

// checkEachStepIsNeeded looks at the facts of each step before the step is taken: at least one must not be true yet.
func checkEachStepIsNeeded(s *demo.Scenario) {
	for i, step := range s.Steps {
		if i == 0 || step.Do == nil {
			continue // its facts are that nothing happens
		}
		s.Steps[i].Do = func(ctx context.Context) error {
			holds := func(check demo.Check) bool { return check.Holds(ctx) == nil }
			if !slices.ContainsFunc(step.Checks, func(check demo.Check) bool { return !holds(check) }) {
				return errors.New("its facts are true before it is taken")
			}
			return step.Do(ctx)
		}
	}
}
