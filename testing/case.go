package testing

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/testing/internal/check"
	"github.com/espalier-dev/espalier/testing/internal/words"
)

// VerifyFunc checks the outcome of a reconcile where the fields of a test case are not enough.
type VerifyFunc func(t *testing.T, result reconcilers.Result, err error)

// testCase is a pointer to a case of one of the tables.
type testCase[Case any] interface {
	*Case
	fields() caseFields[Case]
}

// caseFields are the fields that cases of all tables have. A table without one of them has a variable in its place.
type caseFields[Case any] struct {
	name        *string
	focus, skip bool
	origin      **words.Origin
	metadata    *map[string]any
	now         *time.Time
	differ      *Differ
	additional  map[string]ExpectConfig
	prepare     func(*testing.T, context.Context, *Case) (context.Context, error)
	cleanUp     func(*testing.T, context.Context, *Case) error
	faithful    faithfulFields
}

// runTests runs cases by name as subtests.
func runTests[Case any, P testCase[Case]](t *testing.T, cases map[string]Case, run func(t *testing.T, tc *Case)) {
	t.Helper()
	suite := make([]Case, 0, len(cases))
	for name, tc := range cases {
		*P(&tc).fields().name = name
		suite = append(suite, tc)
	}
	runSuite[Case, P](t, suite, run)
}

// runSuite runs cases as subtests. If some are focused only those run, and the suite fails, so that a focus is not left
// behind.
func runSuite[Case any, P testCase[Case]](t *testing.T, suite []Case, run func(t *testing.T, tc *Case)) {
	t.Helper()
	focused := slices.DeleteFunc(slices.Clone(suite), func(tc Case) bool { return !P(&tc).fields().focus })
	running := suite
	if len(focused) > 0 {
		running = focused
	}
	from := words.Here("", reflect.TypeFor[Case]())
	for _, tc := range running {
		f := P(&tc).fields()
		*f.origin = from.Named(*f.name)
		t.Run(*f.name, func(t *testing.T) {
			t.Helper()
			run(t, &tc)
		})
	}
	if len(focused) > 0 {
		t.Errorf("%d tests out of %d are still focused, so the test suite fails", len(focused), len(suite))
	}
}

// caseRun is one run of a case: its context and its configs.
type caseRun struct {
	ctx    context.Context
	expect *ExpectConfig
	// additional are the AdditionalConfigs, by name.
	additional map[string]*ExpectConfig
	cleanUp    func() error
	// resource is the resource of a sub-reconciler's case, nil in other cases.
	resource client.Object
	// request is the request to a root, nil in other cases.
	request *reconcilers.Request
	// report has what fails, until the end of the case.
	report *words.Report
	// lacksError says that an expected error was not returned.
	lacksError bool
	// clock is the time of a faithful row.
	clock *clock
}

// begin prepares a case. Call end when it is over.
func begin[Case any, P testCase[Case]](
	t *testing.T, tc P, scheme *runtime.Scheme, contexts ...func(context.Context) context.Context,
) *caseRun {
	t.Helper()
	f := tc.fields()
	if f.skip {
		t.SkipNow()
	}
	if f.now.IsZero() {
		*f.now = time.Now()
	}
	if *f.metadata == nil {
		*f.metadata = map[string]any{}
	}
	if *f.origin == nil {
		*f.origin = words.Here(*f.name, reflect.TypeFor[Case]())
	}
	if problem := f.faithful.problem(); problem != "" {
		t.Fatal(problem)
	}
	f.faithful.reset()
	r := &caseRun{ctx: newContext(t, *f.now, scheme), report: &words.Report{Origin: *f.origin}}
	for _, with := range contexts {
		r.ctx = with(r.ctx)
	}
	var err error
	if r.ctx, err = prepare(t, r.ctx, tc); err != nil {
		t.Fatal(err)
	}
	// Prepare may have changed the case.
	f = tc.fields()
	if problem := f.faithful.problem(); problem != "" {
		t.Fatal(problem)
	}
	r.clock = &clock{at: *f.now, virtual: f.faithful.virtual}
	if *f.differ == nil {
		*f.differ = DefaultDiffer
	}
	if f.cleanUp != nil {
		r.cleanUp = func() error { return f.cleanUp(t, r.ctx, tc) }
	}
	r.expect = expectConfigOf(tc, scheme)
	r.additional = additionalConfigs(f.additional, scheme, *f.differ)
	for _, c := range append(slices.Collect(maps.Values(r.additional)), r.expect) {
		c.report = r.report
		c.faithful = f.faithful.faithful && c.WithClientBuilder == nil
		c.reconciled, c.now = -1, r.clock.now
	}
	r.chooseServers(t, f.faithful)
	return r
}

// prepare calls the Prepare of a case, and returns the context to go on with.
func prepare[Case any, P testCase[Case]](t *testing.T, ctx context.Context, tc P) (context.Context, error) {
	t.Helper()
	f := tc.fields()
	if f.prepare == nil {
		return ctx, nil
	}
	prepared, err := f.prepare(t, ctx, tc)
	if err != nil {
		return nil, fmt.Errorf("error during prepare: %w", err)
	}
	if prepared == nil {
		return ctx, nil
	}
	return prepared, nil
}

// additionalConfigs returns the additional configs of a case, with its scheme and differ where they have none.
func additionalConfigs(
	configs map[string]ExpectConfig, scheme *runtime.Scheme, differ Differ,
) map[string]*ExpectConfig {
	additional := map[string]*ExpectConfig{}
	for name, config := range configs {
		config.Name = name
		config.parts = nil
		if config.Scheme == nil {
			config.Scheme = scheme
		}
		if config.Differ == nil {
			config.Differ = differ
		}
		additional[name] = &config
	}
	return additional
}

// stashAdditional adds the additional configs to ctx.
func (r *caseRun) stashAdditional(ctx context.Context) context.Context {
	configs := make(map[string]reconcilers.Config, len(r.additional))
	for name, config := range r.additional {
		configs[name] = config.Config()
	}
	return reconcilers.StashAdditionalConfigs(ctx, configs)
}

// assert asserts the expectations of all configs, and fails the test for all that was reported.
func (r *caseRun) assert(t *testing.T) {
	t.Helper()
	r.expect.AssertExpectations(t)
	for _, c := range r.inOrder() {
		c.AssertExpectations(t)
	}
	if t.Failed() || r.report.HasFailures() {
		r.report.Notes = r.explanations()
	}
	r.report.Fail(t)
}

// explanations returns what may be the cause of a failure: mistakes in a row that its differences do not show.
func (r *caseRun) explanations() []string {
	var texts []string
	if r.request != nil {
		if text, _ := r.expect.explain().MissingRequest(r.request.NamespacedName); text != "" {
			texts = append(texts, text)
		}
	}
	calls, failed := r.expect.made().client.Offered()
	if r.lacksError && len(r.expect.WithReactors) > 0 && !failed {
		text := "no reactor made a call fail; the calls were: " + strings.Join(calls, ", ")
		texts = append(texts, strings.TrimSuffix(text, ": "))
	}
	for _, c := range append([]*ExpectConfig{r.expect}, r.inOrder()...) {
		of := append(c.explain().Failure(), c.notInScheme()...)
		slices.Sort(of)
		for _, text := range slices.Compact(of) {
			texts = append(texts, text+c.suffix())
		}
	}
	return texts
}

// inOrder returns the additional configs by name.
func (r *caseRun) inOrder() []*ExpectConfig {
	var configs []*ExpectConfig
	for _, name := range slices.Sorted(maps.Keys(r.additional)) {
		configs = append(configs, r.additional[name])
	}
	return configs
}

// end calls the CleanUp of the case and releases its configs.
func (r *caseRun) end(t *testing.T) {
	t.Helper()
	r.report.Fail(t)
	defer func() {
		t.Helper()
		r.reportDifferences(t)
		for _, c := range append(slices.Collect(maps.Values(r.additional)), r.expect) {
			if err := c.Release(context.Background()); err != nil {
				t.Errorf("error during clean up: %s", err)
			}
		}
	}()
	if r.cleanUp == nil {
		return
	}
	if err := r.cleanUp(); err != nil {
		t.Errorf("error during clean up: %s", err)
	}
}

// expectConfigOf returns the config of a case, a pointer to a struct. It copies the fields that an ExpectConfig has by
// the same name and type.
func expectConfigOf(tc any, scheme *runtime.Scheme) *ExpectConfig {
	c := &ExpectConfig{}
	from, to := reflect.ValueOf(tc).Elem(), reflect.ValueOf(c).Elem()
	for _, field := range sharedFieldsOf(from.Type()) {
		to.Field(field.config).Set(from.FieldByIndex(field.row))
	}
	c.Name, c.Scheme = "default", scheme
	return c
}

// sharedField is a field that a case and an ExpectConfig have: its index in an ExpectConfig, and in the case.
type sharedField struct {
	config int
	row    []int
}

var sharedFields sync.Map // of []sharedField by reflect.Type of the case

func sharedFieldsOf(row reflect.Type) []sharedField {
	if known, ok := sharedFields.Load(row); ok {
		return known.([]sharedField)
	}
	var shared []sharedField
	config := reflect.TypeFor[ExpectConfig]()
	for i := range config.NumField() {
		want := config.Field(i)
		if field, ok := row.FieldByName(want.Name); ok && want.IsExported() && field.Type == want.Type {
			shared = append(shared, sharedField{i, field.Index})
		}
	}
	sharedFields.Store(row, shared)
	return shared
}

// assertError asserts that the error of a call is the expected one, or has its text. Without an expected error, it
// asserts only whether there is one.
func assertError(t *testing.T, call string, err, expected error, should bool) {
	t.Helper()
	if f, failed := errorFailure(call, err, expected, should); failed {
		t.Error(f.Text())
	}
}

// errorFailure is the failure of a call whose error is not the expected one.
func errorFailure(call string, err, expected error, should bool) (words.Failure, bool) {
	switch {
	case expected == nil && (err != nil) != should:
		return words.Failure{Headline: fmt.Sprintf("%s error = %v, ShouldErr %v", call, err, should)}, true
	case expected != nil && (err == nil || !errors.Is(err, expected) && err.Error() != expected.Error()):
		return words.Failure{Headline: fmt.Sprintf("%s error = %v, ExpectedErr %v", call, err, expected)}, true
	}
	return words.Failure{}, false
}

// outcome has the results of a reconcile and the expected ones.
type outcome struct {
	result reconcilers.Result
	err    error
	// unrest says that the requests go on.
	unrest         error
	expectedResult reconcilers.Result
	shouldErr      bool
	expectedErr    error
	verify         VerifyFunc
	differ         Differ
}

func (o outcome) assert(t *testing.T, run *caseRun) {
	t.Helper()
	c := run.expect
	if o.unrest != nil {
		c.page().Add(t, words.Failure{Headline: o.unrest.Error()}, nil)
	}
	if f, failed := errorFailure("Reconcile()", o.err, o.expectedErr, o.shouldErr); failed {
		c.page().Add(t, f, nil)
		run.lacksError = o.err == nil
	}
	if o.err == nil || o.expectedErr != nil {
		// Beside an error only the nodes above use the result, so tables that expect any error need not know it.
		check.Value[reconcilers.Result]{Field: "ExpectedResult", Diff: by(c, Differ.Result)}.
			Assert(c.page(), t, normalized(o.expectedResult), normalized(o.result))
	}
	if o.verify != nil {
		o.verify(t, o.result, o.err)
	}
}

// normalized clears the field that controller-runtime ignores beside RequeueAfter.
func normalized(result reconcilers.Result) reconcilers.Result {
	if result.RequeueAfter != 0 {
		//lint:ignore SA1019 Trees for older versions still set it.
		result.Requeue = false
	}
	return result
}

// expectPanic makes a test fail at the end of a call that does not panic but should. Defer it.
func expectPanic(t *testing.T, call string) {
	t.Helper()
	if recover() == nil {
		t.Errorf("expected %s to panic", call)
	}
}
