package testing_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"
	rtesting "github.com/espalier-dev/espalier/testing"
)

// A case that fails needs a *testing.T that fails. So the suites below run in a process of their own, the test binary
// again, and their output is looked at.
const scenarioVariable = "RTESTING_FAILING_SUITE"

// scenario is a suite that must fail.
type scenario struct {
	run func(t *testing.T)
	// args are further arguments of the process.
	args []string
	// want are parts of the output.
	want []string
	// unwanted are no parts of the output.
	unwanted []string
}

func nothing(context.Context, *corev1.ConfigMap) error { return nil }

var errOops = errors.New("oops")

// fails is the metadata of a case whose sub-reconciler returns err.
func fails(err error) map[string]any {
	return does(func(context.Context, *corev1.ConfigMap) error { return err })
}

func one(tc cmCase) func(t *testing.T) {
	return func(t *testing.T) {
		if tc.Resource == nil {
			tc.Resource = settings.Object()
		}
		if tc.Metadata == nil {
			tc.Metadata = does(nothing)
		}
		runNode(t, cmTests{"case": tc})
	}
}

func whole(tc rtesting.ReconcilerTestCase) func(t *testing.T) {
	return func(t *testing.T) {
		rtesting.ReconcilerTests{"case": tc}.Run(t, scheme, newCopier)
	}
}

var scenarios = map[string]scenario{
	"error expected": {
		run:  one(cmCase{ShouldErr: true}),
		want: []string{"Reconcile() error = <nil>, ShouldErr true"},
	},
	"no error expected": {
		run: one(cmCase{
			ExpectedResult: reconcilers.Result{RequeueAfter: 1},
			Metadata:       does(func(context.Context, *corev1.ConfigMap) error { return errors.New("oops") }),
		}),
		want:     []string{"Reconcile() error = oops, ShouldErr false"},
		unwanted: []string{"ExpectedResult"},
	},
	"result": {
		run:  one(cmCase{ExpectedResult: reconcilers.Result{RequeueAfter: 1}}),
		want: []string{"ExpectedResult differs (-expected, +actual):\n"},
	},
	"another error": {
		run:      one(cmCase{ExpectedErr: reconcilers.ErrQuiet, Metadata: fails(errOops)}),
		want:     []string{"Reconcile() error = oops, ExpectedErr "},
		unwanted: []string{"ShouldErr", "ExpectedResult"},
	},
	"no error, one expected": {
		run:  one(cmCase{ExpectedErr: errOops, ShouldErr: true}),
		want: []string{"Reconcile() error = <nil>, ExpectedErr oops"},
	},
	"result beside an error": {
		run:      one(cmCase{ExpectedErr: errOops, ExpectedResult: reconcilers.Result{RequeueAfter: 1}, Metadata: fails(errOops)}),
		want:     []string{"ExpectedResult differs (-expected, +actual):\n"},
		unwanted: []string{"ExpectedErr"},
	},
	"result beside an error of a whole": {
		run: func(t *testing.T) {
			rtesting.ReconcilerTests{"case": {
				Request: request, GivenObjects: []client.Object{settings},
				WithReactors:   []rtesting.ReactionFunc{rtesting.InduceFailure("get", "ConfigMap")},
				ExpectedErr:    errors.New("inducing failure for get ConfigMap"),
				ExpectedResult: reconcilers.Result{RequeueAfter: 1},
			}}.Run(t, scheme, newCopier)
		},
		want:     []string{"ExpectedResult differs (-expected, +actual):\n"},
		unwanted: []string{"ExpectedErr"},
	},
	"order": {
		run: one(cmCase{
			ExpectOrder:   []string{"create ConfigMap default/settings"},
			ExpectUpdates: []client.Object{changed},
			Metadata: does(func(ctx context.Context, cm *corev1.ConfigMap) error {
				return reconcilers.RetrieveConfigOrDie(ctx).Update(ctx, changed.Object())
			}),
		}),
		want: []string{"ExpectOrder differs (-expected, +actual):\n", "To expect it, set ExpectOrder to:"},
	},
	"resource": {
		run:  one(cmCase{ExpectResource: changed.Object()}),
		want: []string{"ExpectResource differs (-expected, +actual):\n", `"w"`},
	},
	"resource must not change": {
		run:  one(cmCase{Metadata: does(func(_ context.Context, cm *corev1.ConfigMap) error { cm.Name = "x"; return nil })}),
		want: []string{"ExpectResource differs (-expected, +actual):\n"},
	},
	"resource missing": {
		run:  func(t *testing.T) { runNode(t, cmTests{"case": {Metadata: does(nothing)}}) },
		want: []string{"Resource field is required"},
	},
	"stash": {
		run:  one(cmCase{ExpectStashedValues: map[stash.Key]any{"a": "b"}}),
		want: []string{`ExpectStashedValues["a"] differs (-expected, +actual):`},
	},
	"no panic": {
		run:  one(cmCase{ShouldPanic: true}),
		want: []string{"expected Reconcile() to panic"},
	},
	"prepare": {
		run: one(cmCase{Prepare: func(*testing.T, context.Context, *cmCase) (context.Context, error) {
			return nil, errors.New("oops")
		}}),
		want: []string{"error during prepare: oops"},
	},
	"clean up": {
		run:  one(cmCase{CleanUp: func(*testing.T, context.Context, *cmCase) error { return errors.New("oops") }}),
		want: []string{"error during clean up: oops"},
	},
	"validation": {
		run: one(cmCase{Metadata: map[string]any{"node": node[*corev1.ConfigMap]{
			validate: func(context.Context) error { return errors.New("oops") },
		}}}),
		want: []string{"subreconciler validation failed: oops"},
	},
	"validation of a whole": {
		run: func(t *testing.T) {
			invalid := func(*testing.T, *rtesting.ReconcilerTestCase, reconcilers.Config) reconcile.Reconciler {
				return invalidReconciler{}
			}
			rtesting.ReconcilerTests{"case": {}}.Run(t, scheme, invalid)
		},
		want: []string{"reconciler validation failed: oops"},
	},
	"additional config, missing": {
		run: one(cmCase{AdditionalConfigs: map[string]rtesting.ExpectConfig{
			"elsewhere": {ExpectUpdates: []client.Object{changed}},
		}}),
		want: []string{`ExpectUpdates[0] not observed for config "elsewhere": ConfigMap default/settings`},
	},
	"additional config, extra": {
		run: one(cmCase{
			AdditionalConfigs: map[string]rtesting.ExpectConfig{"elsewhere": {}},
			Metadata: does(func(ctx context.Context, _ *corev1.ConfigMap) error {
				return reconcilers.RetrieveAdditionalConfigs(ctx)["elsewhere"].Create(ctx, settings.Object())
			}),
		}),
		want: []string{
			`Unexpected Create observed for config "elsewhere": ConfigMap default/settings`,
			"To expect it, add to ExpectCreates:",
			"&corev1.ConfigMap{",
		},
	},
	"whole": {
		run:  whole(rtesting.ReconcilerTestCase{Request: request, GivenObjects: []client.Object{settings}}),
		want: []string{"Unexpected Create observed: ConfigMap default/copy\n", `Unexpected Event observed: Normal Copied on ConfigMap default/settings: "Copied to \"copy\""`},
	},
	"focus": {
		run: func(t *testing.T) {
			rtesting.ReconcilerTestSuite{
				{Name: "first", Focus: true}, {Name: "second", ShouldErr: true}, {Name: "third", Focus: true},
			}.Run(t, scheme, newCopier)
		},
		want: []string{
			"PASS: " + "%s/first", "PASS: " + "%s/third",
			"2 tests out of 3 are still focused, so the test suite fails",
		},
		unwanted: []string{"/second"},
	},
	"additional focus": {
		run:  one(cmCase{AdditionalReconciles: []cmCase{{Focus: true, Resource: settings.Object()}}}),
		want: []string{"Focus is not allowed for AdditionalReconciles"},
	},
}

type invalidReconciler struct{ reconcile.Reconciler }

func (invalidReconciler) Validate(context.Context) error { return errors.New("oops") }

// TestFailingSuite is the suite that the other process runs.
func TestFailingSuite(t *testing.T) {
	name := os.Getenv(scenarioVariable)
	if name == "" {
		t.Skip("runs in a process of its own only")
	}
	scenarios[name].run(t)
}

// harnessLine matches a line about a file of the harness itself.
// The stack of a panic is below the panic. Logs are at lines of what logs.
var harnessLine = regexp.MustCompile(`(?m)^\s*(` + strings.Join([]string{
	"assert", "case", "context", "expectation", "failure", "finding", "objectmanager", "real", "reconciler", "replays",
	"setup", "subreconciler", "tables", "update", "values",
	"webhook",
}, "|") + `)\.go:\d+: [^"]*$`)

func TestFailures(t *testing.T) {
	for name, tc := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command := exec.Command(os.Args[0], "-test.run=^TestFailingSuite$", "-test.v")
			command.Args = append(command.Args, tc.args...)
			command.Env = append(os.Environ(), scenarioVariable+"="+name)
			raw, err := command.CombinedOutput()
			output := strings.ReplaceAll(string(raw), "    ", "")
			if err == nil {
				t.Errorf("want the suite to fail, got\n%s", output)
			}
			if line := harnessLine.FindString(output); line != "" {
				t.Errorf("the failure is at a line of the harness: %s\n%s", line, output)
			}
			for _, want := range tc.want {
				if want := strings.ReplaceAll(want, "%s", "TestFailingSuite"); !strings.Contains(output, want) {
					t.Errorf("want %q in\n%s", want, output)
				}
			}
			for _, unwanted := range tc.unwanted {
				if strings.Contains(output, unwanted) {
					t.Errorf("%q is not wanted in\n%s", unwanted, output)
				}
			}
		})
	}
}
