package testing_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"
	rtesting "github.com/espalier-dev/espalier/testing"
)

// A case that fails needs a *testing.T that fails. So the suites below run in other processes, the test binary again,
// and their output is looked at.
const scenarioVariable = "RTESTING_FAILING_SUITE"

// scenario is a suite that must fail.
type scenario struct {
	run func(t *testing.T)
	// alone has the suite run in a process of its own: it looks at how that ends, or waits for seconds.
	alone bool
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
	"a halt": {
		run: one(cmCase{Metadata: map[string]any{"node": node[*corev1.ConfigMap]{
			reconcile: func(context.Context, *corev1.ConfigMap) (reconcilers.Result, error) {
				return reconcilers.Result{RequeueAfter: time.Minute}, fmt.Errorf("late: %w", reconcilers.ErrHaltSubReconcilers)
			},
		}}}),
		want: []string{
			"Reconcile() error = late: stop processing SubReconcilers, without returning an error: ",
			"To expect it, set ExpectedErr to:\nreconcilers.ErrHaltSubReconcilers,",
			"To expect it, set ExpectedResult to:\nreconcilers.Result{RequeueAfter: 1 * time.Minute},",
		},
	},
	"a halt, another error expected": {
		run:  one(cmCase{Metadata: fails(reconcilers.ErrDurable), ExpectedErr: errOops}),
		want: []string{"ExpectedErr oops", "To expect it, set ExpectedErr to:\nreconcilers.ErrDurable,"},
	},
	"a halt beside an error": {
		run:      one(cmCase{Metadata: fails(errors.Join(errOops, reconcilers.ErrHaltSubReconcilers))}),
		want:     []string{"Reconcile() error = oops"},
		unwanted: []string{"To expect it"},
	},
	"a missing create": {
		run: one(cmCase{
			Metadata: does(func(ctx context.Context, _ *corev1.ConfigMap) error {
				c := reconcilers.RetrieveConfigOrDie(ctx)
				return errors.Join(c.Create(ctx, configMap("a")), c.Create(ctx, configMap("c")), c.Create(ctx, configMap("d")))
			}),
			ExpectCreates: []client.Object{configMap("a"), configMap("b"), configMap("c"), configMap("d", "k", "v")},
		}),
		want: []string{
			"ExpectCreates[1] not observed: ConfigMap default/b\n  expected: 4 Creates\n  seen: 3 Creates: " +
				"ConfigMap default/a, ConfigMap default/c, ConfigMap default/d\n" +
				"ExpectCreates[3] differs: ConfigMap default/d\n",
		},
		unwanted: []string{"[0]", "[2]", "Unexpected"},
	},
	"an unexpected create": {
		run: one(cmCase{
			Metadata: does(func(ctx context.Context, _ *corev1.ConfigMap) error {
				c := reconcilers.RetrieveConfigOrDie(ctx)
				return errors.Join(c.Create(ctx, configMap("a")), c.Create(ctx, configMap("b")), c.Create(ctx, configMap("c")))
			}),
			ExpectCreates: []client.Object{configMap("a"), configMap("c")},
		}),
		want: []string{
			"Unexpected Create observed: ConfigMap default/b", "To expect it, add to ExpectCreates, before [1]:",
		},
		unwanted: []string{"differs", "not observed"},
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

// TestFailingSuite has the suites that the other process runs.
func TestFailingSuite(t *testing.T) {
	names := os.Getenv(scenarioVariable)
	if names == "" {
		t.Skip("runs in a process of its own only")
	}
	for name := range strings.SplitSeq(names, "\n") {
		t.Run(name, scenarios[name].run)
	}
}

// harnessLine matches a line about a file of the harness itself.
// The stack of a panic is below the panic. Logs are at lines of what logs.
var harnessLine = regexp.MustCompile(`(?m)^\s*(` + strings.Join([]string{
	"assert", "case", "context", "expectation", "failure", "finding", "objectmanager", "real", "reconciler", "replays",
	"setup", "subreconciler", "tables", "update", "values",
	"webhook",
}, "|") + `)\.go:\d+: [^"]*$`)

// nextSuite matches the line with which the next suite of a process begins.
var nextSuite = regexp.MustCompile(`(?m)^=== RUN   TestFailingSuite/[^/]*$`)

func TestFailures(t *testing.T) {
	// A process takes longer to start than most suites run.
	groups := map[string][]string{}
	for name, tc := range scenarios {
		key := strings.Join(tc.args, " ")
		if tc.alone {
			key = name
		}
		groups[key] = append(groups[key], name)
	}
	for key, names := range groups {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			slices.Sort(names)
			command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFailingSuite$", "-test.v")
			command.Args = append(command.Args, scenarios[names[0]].args...)
			command.Env = append(os.Environ(), scenarioVariable+"="+strings.Join(names, "\n"))
			output, err := command.CombinedOutput()
			if err == nil {
				t.Errorf("want the suites to fail, got\n%s", output)
			}
			for _, name := range names {
				t.Run(name, func(t *testing.T) { scenarios[name].check(t, name, string(output)) })
			}
		})
	}
}

// check looks at what a process has printed in whose suites that of the name is.
func (s scenario) check(t *testing.T, name, all string) {
	suite := "TestFailingSuite/" + strings.ReplaceAll(name, " ", "_")
	output := all
	if !s.alone {
		_, output, _ = strings.Cut(all, "=== RUN   "+suite+"\n")
		if next := nextSuite.FindStringIndex(output); next != nil {
			output = output[:next[0]]
		}
		result := regexp.MustCompile(`(?m)^ *--- (FAIL|PASS|SKIP): ` + regexp.QuoteMeta(suite) + `[/ ].*$`)
		output += "\n" + strings.Join(result.FindAllString(all, -1), "\n")
		if !strings.Contains(output, "--- FAIL: "+suite+" ") {
			t.Errorf("want the suite to fail, got\n%s", output)
		}
	}
	output = strings.ReplaceAll(output, "    ", "")
	if line := harnessLine.FindString(output); line != "" {
		t.Errorf("the failure is at a line of the harness: %s\n%s", line, output)
	}
	for _, want := range s.want {
		if want := strings.ReplaceAll(want, "%s", suite); !strings.Contains(output, want) {
			t.Errorf("want %q in\n%s", want, output)
		}
	}
	for _, unwanted := range s.unwanted {
		if strings.Contains(output, unwanted) {
			t.Errorf("%q is not wanted in\n%s", unwanted, output)
		}
	}
}
