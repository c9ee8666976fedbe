package reconcilers_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/validation"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
)

type (
	widgetAlways        = reconcilers.Always[*resources.Widget]
	widgetTryCatch      = reconcilers.TryCatch[*resources.Widget]
	widgetAdvice        = reconcilers.Advice[*resources.Widget]
	widgetOverrideSetup = reconcilers.OverrideSetup[*resources.Widget]
	widgetWhile         = reconcilers.While[*resources.Widget]
	widgetForEachString = reconcilers.ForEach[*resources.Widget, string]
	widgetWithConfig    = reconcilers.WithConfig[*resources.Widget]
)

// combinators have each combinator around one node, which runs once.
func combinators(node widgetNode) map[string]widgetNode {
	return map[string]widgetNode{
		"Always":        widgetAlways{node},
		"Reverse":       widgetReverse{node},
		"TryCatch":      &widgetTryCatch{Try: node},
		"Finally":       &widgetTryCatch{Try: widgetSequence{}, Finally: node},
		"Advice":        &widgetAdvice{Reconciler: node},
		"OverrideSetup": &widgetOverrideSetup{Reconciler: node},
		"While":         &widgetWhile{Condition: iterationsBelow(1), Reconciler: node},
		"ForEach":       &widgetForEachString{Items: itemsOf("item"), Reconciler: node},
		"WithConfig":    &widgetWithConfig{Config: sameConfig, Reconciler: node},
	}
}

func iterationsBelow(n int) func(context.Context, *resources.Widget) bool {
	return func(ctx context.Context, _ *resources.Widget) bool { return reconcilers.RetrieveIteration(ctx) < n }
}

func itemsOf[Item any](items ...Item) func(context.Context, *resources.Widget) ([]Item, error) {
	return func(context.Context, *resources.Widget) ([]Item, error) { return items, nil }
}

func sameConfig(_ context.Context, config reconcilers.Config) (reconcilers.Config, error) {
	return config, nil
}

// syncing returns a node that does one thing.
func syncing(do func(ctx context.Context, w *resources.Widget)) widgetNode {
	return &widgetSync{Sync: func(ctx context.Context, w *resources.Widget) error {
		do(ctx, w)
		return nil
	}}
}

// setup returns a Setup function that records its call.
func (c *trace) setup(name string, err error) func(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
	return func(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
		c.add("set up %s", name)
		return err
	}
}

// combinedTree has a node of each sort, with leaves that do the same in set-up and in requests.
func combinedTree(do func(context.Context)) widgetNode {
	leaf := func(name string) widgetNode {
		return &widgetSync{
			Name:  name,
			Setup: func(ctx context.Context, _ reconcilers.Manager, _ *reconcilers.Builder) error { do(ctx); return nil },
			Sync:  func(ctx context.Context, _ *resources.Widget) error { do(ctx); return nil },
		}
	}
	return widgetAlways{
		leaf("a"),
		&widgetTryCatch{Try: leaf("try"), Finally: leaf("finally")},
		&widgetAdvice{Reconciler: widgetAlways{leaf("b"), leaf("c")}},
		&widgetOverrideSetup{
			Setup:      func(ctx context.Context, _ reconcilers.Manager, _ *reconcilers.Builder) error { do(ctx); return nil },
			Reconciler: leaf("d"),
		},
		&widgetWhile{Condition: iterationsBelow(2), Reconciler: leaf("e")},
		&widgetForEachString{Name: "Ports", Items: itemsOf("http", "https"), Reconciler: &widgetAdvice{Name: "Timed", Reconciler: leaf("f")}},
		&widgetWithConfig{Config: sameConfig, Reconciler: leaf("g")},
	}
}

func TestCombinatorsDescribeThemselves(t *testing.T) {
	const expected = `Always
├─ SyncReconciler "a"
├─ TryCatch "TryCatch"
│  ├─ Try: SyncReconciler "try"
│  └─ Finally: SyncReconciler "finally"
├─ Advice "Advice"
│  └─ Always
│     ├─ SyncReconciler "b"
│     └─ SyncReconciler "c"
├─ OverrideSetup "SkipSetup"
│  └─ SyncReconciler "d"
├─ While "While"
│  └─ SyncReconciler "e"
├─ ForEach "Ports"
│  └─ Advice "Timed"
│     └─ SyncReconciler "f"
└─ WithConfig "WithConfig"
   └─ SyncReconciler "g"
`
	actual := reconcilers.Describe(combinedTree(func(context.Context) {})).String()
	if diff := cmp.Diff(expected, actual); diff != "" {
		t.Errorf("the tree differs (-expected, +actual):\n%s", diff)
	}
}

// The names that a logger carries are the path, in set-up as in requests, and do not pile up.
func TestCombinatorsNameTheirNodes(t *testing.T) {
	var names, paths []string
	tree := combinedTree(func(ctx context.Context) {
		paths = append(paths, reconcilers.RetrievePath(ctx))
		logr.FromContextOrDiscard(ctx).Info("")
	})
	logger := funcr.New(func(prefix, _ string) { names = append(names, prefix) }, funcr.Options{})
	ctx := logr.NewContext(testContext(t, expectWidget().Config()), logger)
	check := func(when string, expected []string) {
		t.Helper()
		if diff := cmp.Diff(expected, paths); diff != "" {
			t.Errorf("%s the paths differ (-expected, +actual):\n%s", when, diff)
		}
		if !slices.Equal(names, paths) {
			t.Errorf("%s the loggers are called %v, want them to be called as the paths %v", when, names, paths)
		}
		names, paths = nil, nil
	}

	if err := tree.SetupWithManager(ctx, nil, nil); err != nil {
		t.Fatal(err)
	}
	setup := []string{
		"0/a", "1/TryCatch/try", "1/TryCatch/finally", "2/Advice/0/b", "2/Advice/1/c", "3/SkipSetup",
		"4/While/e", "5/Ports/Timed/f", "6/WithConfig/g",
	}
	check("in set-up", setup)
	var described []string
	reconcilers.Describe(tree).Walk(func(path string, d reconcilers.Description) {
		if d.Kind == "SyncReconciler" {
			described = append(described, strings.TrimSuffix(path, "/d"))
		}
	})
	if diff := cmp.Diff(setup, described); diff != "" {
		t.Errorf("the described paths differ, want those of set-up (-set-up +described):\n%s", diff)
	}

	if _, err := tree.Reconcile(ctx, widget.Object()); err != nil {
		t.Fatal(err)
	}
	check("in requests", []string{
		"0/a", "1/TryCatch/try", "1/TryCatch/finally", "2/Advice/0/b", "2/Advice/1/c", "3/SkipSetup/d",
		"4/While/0/e", "4/While/1/e", "5/Ports/0/Timed/f", "5/Ports/1/Timed/f", "6/WithConfig/g",
	})
}

// A node of another package does not note where its error came up: the nearest combinator does.
func TestCombinatorsLocateErrors(t *testing.T) {
	paths := map[string]string{
		"Always":        "Root/0",
		"Reverse":       "Root/0",
		"TryCatch":      "Root/TryCatch",
		"Finally":       "Root/TryCatch",
		"Advice":        "Root/Advice",
		"OverrideSetup": "Root/SkipSetup",
		"While":         "Root/While/0",
		"ForEach":       "Root/ForEach/0",
		"WithConfig":    "Root/WithConfig",
	}
	for name, node := range combinators((&trace{}).step("failing", reconcilers.Result{}, errBoom)) {
		t.Run(name, func(t *testing.T) {
			locates(t, node, errBoom, paths[name])
		})
	}
}

// locates checks the error of a tree, and where it says that this came up.
func locates(t *testing.T, node widgetNode, expected error, path string) {
	t.Helper()
	root := &widgetRoot{Name: "Root", Reconciler: node, Config: expectWidget(widget).Config()}
	_, err := root.Reconcile(t.Context(), widgetRequest)
	var located *reconcilers.Error
	if !errors.Is(err, expected) || !errors.As(err, &located) || located.Path != path {
		t.Errorf("returned %v, expected %v at %s", err, expected, path)
	}
}

// An error of what the author gave a combinator comes up at the combinator.
func TestCombinatorsLocateErrorsOfTheirOwn(t *testing.T) {
	type (
		result = reconcilers.Result
		config = reconcilers.Config
	)
	for name, test := range map[string]struct {
		node widgetNode
		path string
	}{
		"Before": {&widgetAdvice{
			Before: func(context.Context, *resources.Widget) (context.Context, result, error) {
				return nil, result{}, errBoom
			},
			Reconciler: widgetSequence{},
		}, "Root/Advice"},
		"After": {&widgetAdvice{
			After: func(context.Context, *resources.Widget, result, error) (result, error) {
				return result{}, errBoom
			},
			Reconciler: widgetSequence{},
		}, "Root/Advice"},
		"Items": {&widgetForEachString{
			Items:      func(context.Context, *resources.Widget) ([]string, error) { return nil, errBoom },
			Reconciler: widgetSequence{},
		}, "Root/ForEach"},
		"Config": {&widgetWithConfig{
			Config:     func(context.Context, config) (config, error) { return config{}, errBoom },
			Reconciler: widgetSequence{},
		}, "Root/WithConfig"},
	} {
		t.Run(name, func(t *testing.T) { locates(t, test.node, errBoom, test.path) })
	}
}

// A combinator runs its Setup function and sets up its nodes, in its order and up to the first error.
func TestCombinatorsSetUp(t *testing.T) {
	type setUp = func(context.Context, reconcilers.Manager, *reconcilers.Builder) error
	ctx := testContext(t, expectWidget().Config())
	always := iterationsBelow(1)
	for name, test := range map[string]struct {
		node  func(own setUp, nested, last widgetNode) widgetNode
		order []string
	}{
		"Always": {func(_ setUp, nested, last widgetNode) widgetNode {
			return widgetAlways{widgetAlways{nested}, last}
		}, []string{"nested", "last"}},
		"Advice": {func(own setUp, nested, _ widgetNode) widgetNode {
			return &widgetAdvice{Setup: own, Reconciler: nested}
		}, []string{"itself", "nested"}},
		"ForEach": {func(own setUp, nested, _ widgetNode) widgetNode {
			return &widgetForEachString{Setup: own, Items: itemsOf("a"), Reconciler: nested}
		}, []string{"nested", "itself"}},
		"IfThen": {func(own setUp, nested, last widgetNode) widgetNode {
			return &widgetIfThen{Setup: own, If: always, Then: nested, Else: last}
		}, []string{"itself", "nested", "last"}},
		"IfThen without Else": {func(own setUp, nested, _ widgetNode) widgetNode {
			return &widgetIfThen{Setup: own, If: always, Then: nested}
		}, []string{"itself", "nested"}},
		"TryCatch": {func(own setUp, nested, last widgetNode) widgetNode {
			return &widgetTryCatch{Setup: own, Try: nested, Finally: last}
		}, []string{"itself", "nested", "last"}},
		"TryCatch without Finally": {func(own setUp, nested, _ widgetNode) widgetNode {
			return &widgetTryCatch{Setup: own, Try: nested}
		}, []string{"itself", "nested"}},
		"While": {func(own setUp, nested, _ widgetNode) widgetNode {
			return &widgetWhile{Setup: own, Condition: always, Reconciler: nested}
		}, []string{"itself", "nested"}},
		"WithFinalizer": {func(_ setUp, nested, _ widgetNode) widgetNode {
			return &widgetFinalizer{Finalizer: ours, Reconciler: nested}
		}, []string{"nested"}},
		"OverrideSetup": {func(own setUp, nested, _ widgetNode) widgetNode {
			return &widgetOverrideSetup{Setup: own, Reconciler: nested}
		}, []string{"itself"}},
	} {
		for _, failing := range []string{"none", "itself", "nested", "last", "no Setup"} {
			t.Run(name+", "+failing, func(t *testing.T) {
				calls := &trace{}
				fails := map[string]error{failing: errBoom}
				step := func(name string) widgetNode { return calls.step(name, reconcilers.Result{}, fails[name]) }
				own := calls.setup("itself", fails["itself"])
				if failing == "no Setup" {
					own = nil
				}
				expected, expectedErr := []string{}, error(nil)
				for _, step := range test.order {
					if expectedErr == nil && (step != "itself" || own != nil) {
						expected, expectedErr = append(expected, "set up "+step), fails[step]
					}
				}
				node := test.node(own, step("nested"), step("last"))
				if err := node.SetupWithManager(ctx, nil, nil); !errors.Is(err, expectedErr) {
					t.Errorf("set-up returned %v, want %v", err, expectedErr)
				}
				calls.compare(t, expected)
			})
		}
	}
}

// Invariant L6: a delay reaches the root, also beside an error.
func TestL6CombinatorsKeepDelays(t *testing.T) {
	for _, err := range []error{nil, errBoom, reconcilers.ErrQuiet} {
		for name, node := range combinators((&trace{}).step("delaying", minute, err)) {
			result, actual := node.Reconcile(testContext(t, expectWidget().Config()), widget.Object())
			if result != minute || !errors.Is(actual, err) {
				t.Errorf("%s returned %+v and %v, expected %+v and %v", name, result, actual, minute, err)
			}
		}
	}
}

// Issues 1.4 and 4.4: what is nested is validated, when the tree is set up.
func TestCombinatorsAreValidatedAtSetup(t *testing.T) {
	const missing = `SyncReconciler "SyncReconciler" must implement Sync or SyncWithResult`
	for name, node := range combinators(&widgetSync{}) {
		t.Run(name, func(t *testing.T) {
			ctx := validation.WithRecursive(testContext(t, expectWidget().Config()))
			root := &widgetRoot{Reconciler: node, Config: expectWidget().Config()}
			if err := root.Validate(ctx); err == nil || !strings.HasSuffix(err.Error(), missing) {
				t.Errorf("Validate returned %v, want an error that ends with %q", err, missing)
			}
		})
	}
}

// A node that lacks what it needs is an error that names it, in every verb, and can still be described.
func TestL7MisconfiguredCombinators(t *testing.T) {
	always := iterationsBelow(1)
	tests := map[string]struct {
		node  verbs
		names string
	}{
		"always of nil":           {node: widgetAlways{nil}, names: "Always[0]"},
		"always of a nil pointer": {node: widgetAlways{widgetAlways{}, (*widgetSync)(nil)}, names: "Always[1]"},
		"always of nil always":    {node: widgetAlways{(*widgetAlways)(nil)}, names: "Always[0]"},
		"try":                     {node: &widgetTryCatch{}, names: `TryCatch "TryCatch"`},
		"try nil":                 {node: &widgetTryCatch{Try: (*widgetSync)(nil)}, names: `TryCatch "TryCatch"`},
		"advice":                  {node: &widgetAdvice{}, names: `Advice "Advice"`},
		"advice on nil":           {node: &widgetAdvice{Reconciler: (*widgetSync)(nil)}, names: `Advice "Advice"`},
		"override":                {node: &widgetOverrideSetup{}, names: `OverrideSetup "SkipSetup"`},
		"override nil":            {node: &widgetOverrideSetup{Reconciler: (*widgetSync)(nil)}, names: `OverrideSetup "SkipSetup"`},
		"while":                   {node: &widgetWhile{}, names: `While "While"`},
		"while nothing":           {node: &widgetWhile{Condition: always}, names: `While "While"`},
		"while nil":               {node: &widgetWhile{Condition: always, Reconciler: (*widgetSync)(nil)}, names: `While "While"`},
		"for each":                {node: &widgetForEachString{}, names: `ForEach "ForEach"`},
		"for each, of a nil node": {
			node:  &widgetForEachString{Items: itemsOf("a"), Reconciler: (*widgetSync)(nil)},
			names: `ForEach "ForEach"`,
		},
		"for each of nothing":      {node: &widgetForEachString{Reconciler: widgetSequence{}}, names: `ForEach "ForEach"`},
		"with config":              {node: &widgetWithConfig{}, names: `WithConfig "WithConfig"`},
		"with config, without one": {node: &widgetWithConfig{Reconciler: widgetSequence{}}, names: `WithConfig "WithConfig"`},
		"with config, of a nil node": {
			node:  &widgetWithConfig{Config: sameConfig, Reconciler: (*widgetSync)(nil)},
			names: `WithConfig "WithConfig"`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			ctx := testContext(t, expectWidget().Config())
			node := test.node.(widgetNode)
			for verb, run := range map[string]func() error{
				"Validate":         func() error { return test.node.Validate(validation.WithRecursive(ctx)) },
				"SetupWithManager": func() error { return node.SetupWithManager(ctx, nil, nil) },
				"Reconcile":        func() error { _, err := node.Reconcile(ctx, widget.Object()); return err },
			} {
				if err := neverPanics(t, verb, run); err == nil || !strings.Contains(err.Error(), test.names) {
					t.Errorf("%s returned %v, want an error that names %s", verb, err, test.names)
				}
			}
			if test.node.Describe().String() == "" {
				t.Error("the description is empty, want the node in it")
			}
		})
	}
	for _, nothing := range []any{widgetAlways(nil), (*widgetAlways)(nil), (*widgetTryCatch)(nil), (*widgetAdvice)(nil),
		(*widgetOverrideSetup)(nil), (*widgetWhile)(nil), (*widgetForEachString)(nil), (*widgetWithConfig)(nil)} {
		if reconcilers.Describe(nothing).String() == "" {
			t.Errorf("the description of a nil %T is empty, want some", nothing)
		}
	}
}
