package testing

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/resourcestate"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/testing/internal/words"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// VerifyFunc checks the outcome of a reconcile where the fields of a test case are not enough.
type VerifyFunc func(t *testing.T, result reconcilers.Result, err error)

// testCase is a pointer to a case of one of the tables.
type testCase interface {
	// row returns what the case has now.
	row() row
}

// caseOf is a testCase of a type.
type caseOf[Case any] interface {
	*Case
	testCase
}

// row is what the cases of all tables have. A table without one of these fields has the zero value in its place.
type row struct {
	// The fields that the harness completes: they lead into the case.

	*mark
	name     *string
	metadata *map[string]any
	now      *time.Time

	focus, skip bool
	// of is the case, and builder its WithClientBuilder. additional are its AdditionalConfigs.
	of         any
	builder    func(*fake.ClientBuilder) *fake.ClientBuilder
	additional map[string]ExpectConfig
	// prepare and cleanUp call the functions of the case; nil for none.
	prepare func(t *testing.T, ctx context.Context) (context.Context, error)
	cleanUp func(t *testing.T, ctx context.Context) error

	// The fields that only rows of NodeTests and RootTests may set.

	virtual   bool
	fault     Fault
	replays   Replays
	externals []External
	until     Until
}

// mark is what the harness knows of a case beside its fields.
type mark struct {
	// origin is where the table of the case is run.
	origin *words.Origin
	// onServer says that the row is one of NodeTests or RootTests.
	onServer bool
	// continues says that the row is one of the AdditionalReconciles of another.
	continues bool
	// states are what the nodes of the row know of resources.
	states *states
}

// states are what nodes know of resources from one request of a row to the next.
type states struct {
	byUID map[types.UID]*resourcestate.State
}

// of returns ctx with what is known of resource.
func (s *states) of(ctx context.Context, resource client.Object) context.Context {
	known, ok := s.byUID[resource.GetUID()]
	if !ok {
		known = &resourcestate.State{}
		s.byUID[resource.GetUID()] = known
	}
	return resourcestate.NewContext(ctx, known)
}

// preparing returns what calls the Prepare of a case; nil for none.
func preparing[Case any](
	tc *Case, prepare func(*testing.T, context.Context, *Case) (context.Context, error),
) func(*testing.T, context.Context) (context.Context, error) {
	if prepare == nil {
		return nil
	}
	return func(t *testing.T, ctx context.Context) (context.Context, error) { return prepare(t, ctx, tc) }
}

// cleaning returns what calls the CleanUp of a case; nil for none.
func cleaning[Case any](
	tc *Case, cleanUp func(*testing.T, context.Context, *Case) error,
) func(*testing.T, context.Context) error {
	if cleanUp == nil {
		return nil
	}
	return func(t *testing.T, ctx context.Context) error { return cleanUp(t, ctx, tc) }
}

// runTests runs cases by name as subtests.
func runTests[Case any, P caseOf[Case]](t *testing.T, cases map[string]Case, run func(t *testing.T, tc *Case)) {
	t.Helper()
	suite := make([]Case, 0, len(cases))
	for name, tc := range cases {
		*P(&tc).row().name = name
		suite = append(suite, tc)
	}
	runSuite[Case, P](t, suite, run)
}

// runSuite runs cases as subtests. If some are focused only those run, and the suite fails, so that a focus is not left
// behind.
func runSuite[Case any, P caseOf[Case]](t *testing.T, suite []Case, run func(t *testing.T, tc *Case)) {
	t.Helper()
	focused := slices.DeleteFunc(slices.Clone(suite), func(tc Case) bool { return !P(&tc).row().focus })
	running := suite
	if len(focused) > 0 {
		running = focused
	}
	from := words.Here("", reflect.TypeFor[Case]())
	for _, tc := range running {
		r := P(&tc).row()
		r.origin = from.Named(*r.name)
		t.Run(*r.name, func(t *testing.T) {
			t.Helper()
			run(t, &tc)
		})
	}
	if len(focused) > 0 {
		t.Errorf("%d tests out of %d are still focused, so the test suite fails", len(focused), len(suite))
	}
}

// complete sets what a case needs that is run, and returns where its table is.
func (r row) complete(tc testCase) *words.Origin {
	if r.now.IsZero() {
		*r.now = time.Now()
	}
	if *r.metadata == nil {
		*r.metadata = map[string]any{}
	}
	if r.origin == nil {
		r.origin = words.Here(*r.name, reflect.TypeOf(tc).Elem())
	}
	return r.origin
}

// prepared calls the Prepare of the case, and returns the context to go on with.
func (r row) prepared(t *testing.T, ctx context.Context) (context.Context, error) {
	t.Helper()
	if r.prepare == nil {
		return ctx, nil
	}
	prepared, err := r.prepare(t, ctx)
	if err != nil {
		return nil, fmt.Errorf("error during prepare: %w", err)
	}
	if prepared == nil {
		return ctx, nil
	}
	return prepared, nil
}

// configs are those of a run of a row: its own, and its AdditionalConfigs by name.
type configs struct {
	expect     *ExpectConfig
	additional map[string]*ExpectConfig
}

// all returns the config of the row, then the others by name.
func (c configs) all() []*ExpectConfig {
	all := []*ExpectConfig{c.expect}
	for _, name := range slices.Sorted(maps.Keys(c.additional)) {
		all = append(all, c.additional[name])
	}
	return all
}

// configs returns the config of the case and its additional configs, which have its scheme and differ where they have
// none.
func (r row) configs(scheme *runtime.Scheme) configs {
	expect := configOf(r.of)
	expect.Name, expect.Scheme = "default", scheme
	additional := map[string]*ExpectConfig{}
	for name, config := range r.additional {
		config.Name = name
		config.parts = nil
		if config.Scheme == nil {
			config.Scheme = scheme
		}
		if config.Differ == nil {
			config.Differ = expect.Differ
		}
		additional[name] = &config
	}
	return configs{expect, additional}
}

// configOf returns the config of a case, a pointer to a struct. It copies the fields that an ExpectConfig has by the
// same name, so that no table can leave one out.
func configOf(tc any) *ExpectConfig {
	c := &ExpectConfig{}
	from, to := reflect.ValueOf(tc).Elem(), reflect.ValueOf(c).Elem()
	for i := range to.NumField() {
		field := to.Type().Field(i)
		if value := from.FieldByName(field.Name); field.IsExported() && value.IsValid() {
			to.Field(i).Set(value)
		}
	}
	return c
}

// hasBuilder reports whether a WithClientBuilder takes the place of the API server of a config.
func (r row) hasBuilder() bool {
	for _, c := range r.additional {
		if c.WithClientBuilder != nil {
			return true
		}
	}
	return r.builder != nil
}

func (r row) mustBeValid(t *testing.T) {
	t.Helper()
	if problem := r.problem(); problem != "" {
		t.Fatal(problem)
	}
}

// problem returns what is wrong with the row, empty if nothing is.
func (r row) problem() string {
	for i, external := range r.externals {
		if external.Reset == nil || external.End == nil {
			return fmt.Sprintf("Externals[%d] needs a Reset and an End", i)
		}
	}
	if r.fault.problem != "" {
		return "Fault: " + r.fault.problem
	}
	for i, skipped := range r.replays.Skip {
		if skipped.problem != "" {
			return fmt.Sprintf("Replays.Skip[%d]: %s", i, skipped.problem)
		}
	}
	reason := ": make the row one of NodeTests or RootTests"
	switch {
	case r.onServer && !r.hasBuilder():
		return ""
	case r.onServer:
		reason = ", which the WithClientBuilder asks for"
	}
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"Fault", !r.fault.isZero()}, {"Replays", !r.replays.isZero()},
		{"Externals", r.externals != nil}, {"Until", r.until != Until{}},
	} {
		if field.set {
			return field.name + " has no effect on a fake client" + reason
		}
	}
	return ""
}

// reset resets the externals.
func (r row) reset() {
	for _, external := range r.externals {
		external.Reset()
	}
}
