package testing

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/espalier-dev/espalier/reconcilers"
	rtime "github.com/espalier-dev/espalier/time"
)

// prepare calls the Prepare of a case, if it has one, and returns the context to go on with.
func prepare[Case any](
	t *testing.T, ctx context.Context, tc *Case, hook func(*testing.T, context.Context, *Case) (context.Context, error),
) context.Context {
	t.Helper()
	if hook == nil {
		return ctx
	}
	prepared, err := hook(t, ctx, tc)
	if err != nil {
		t.Fatalf("error during prepare: %s", err)
	}
	if prepared == nil {
		return ctx
	}
	return prepared
}

// cleanUp calls the CleanUp of a case, if it has one.
func cleanUp[Case any](
	t *testing.T, ctx context.Context, tc *Case, hook func(*testing.T, context.Context, *Case) error,
) {
	t.Helper()
	if hook == nil {
		return
	}
	if err := hook(t, ctx, tc); err != nil {
		t.Errorf("error during clean up: %s", err)
	}
}

// expectConfigOf returns the config of a case, a pointer to a struct: what the case gives and expects is in fields that
// have the names and types of those of an ExpectConfig.
func expectConfigOf(tc any, scheme *runtime.Scheme) *ExpectConfig {
	c := &ExpectConfig{}
	from, to := reflect.ValueOf(tc).Elem(), reflect.ValueOf(c).Elem()
	for i := range to.NumField() {
		field := to.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		if value := from.FieldByName(field.Name); value.IsValid() && value.Type() == field.Type {
			to.Field(i).Set(value)
		}
	}
	c.Name, c.Scheme = "default", scheme
	return c
}

// assertError asserts that the error of a call is the expected one, or has its text. Without an expected error, it asserts
// only whether there is one.
func assertError(t *testing.T, call string, err, expected error, should bool) {
	t.Helper()
	switch {
	case expected == nil && (err != nil) != should:
		t.Errorf("%s error = %v, ShouldErr %v", call, err, should)
	case expected != nil && (err == nil || !errors.Is(err, expected) && err.Error() != expected.Error()):
		t.Errorf("%s error = %v, ExpectedErr %v", call, err, expected)
	}
}

// additional are the configs of a case beside its own, by name. What is built of them is what is asserted.
type additional map[string]*ExpectConfig

// additionalOf completes the additional configs of a case by what they share with it.
func additionalOf(configs map[string]ExpectConfig, scheme *runtime.Scheme, differ Differ) additional {
	made := additional{}
	for name, config := range configs {
		config.Name = name
		config.parts = nil
		if config.Scheme == nil {
			config.Scheme = scheme
		}
		if config.Differ == nil {
			config.Differ = differ
		}
		made[name] = &config
	}
	return made
}

func (a additional) stash(ctx context.Context) context.Context {
	configs := make(map[string]reconcilers.Config, len(a))
	for name, config := range a {
		configs[name] = config.Config()
	}
	return reconcilers.StashAdditionalConfigs(ctx, configs)
}

func (a additional) configs() []*ExpectConfig {
	return slices.Collect(maps.Values(a))
}

func (a additional) assert(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		a[name].AssertExpectations(t)
	}
}

// VerifyFunc checks the outcome of a reconcile beyond what the fields of a test case can express.
type VerifyFunc func(t *testing.T, result reconcilers.Result, err error)

// member is a case of a suite.
type member struct {
	name    string
	focused bool
	run     func(t *testing.T)
}

// runSuite runs the members as subtests. If some are focused only those run, and the suite fails, so that a focus is not
// left behind.
func runSuite(t *testing.T, members []member) {
	t.Helper()
	var focused []member
	for _, m := range members {
		if m.focused {
			focused = append(focused, m)
		}
	}
	running := members
	if len(focused) > 0 {
		running = focused
	}
	for _, m := range running {
		t.Run(m.name, m.run)
	}
	if len(focused) > 0 {
		t.Errorf("%d tests out of %d are still focused, so the test suite fails", len(focused), len(members))
	}
}

// newContext returns the context of a case: it has the time, a logger that writes to the test, and the test's deadline.
func newContext(t *testing.T, now time.Time) context.Context {
	ctx := rtime.StashNow(context.Background(), now)
	ctx = logr.NewContext(ctx, testr.New(t))
	if deadline, ok := t.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline)
		t.Cleanup(cancel)
	}
	return ctx
}

// outcome is what a reconcile returned, and what the case expects.
type outcome struct {
	result         reconcilers.Result
	err            error
	expectedResult reconcilers.Result
	shouldErr      bool
	expectedErr    error
	verify         VerifyFunc
	differ         Differ
}

func (o outcome) assert(t *testing.T) {
	t.Helper()
	assertError(t, "Reconcile()", o.err, o.expectedErr, o.shouldErr)
	if o.err == nil || o.expectedErr != nil {
		// Next to an error the result matters to the nodes above only, so tables that say no more than that there is one
		// need not know it.
		if diff := o.differ.Result(normalized(o.expectedResult), normalized(o.result)); diff != "" {
			t.Errorf("ExpectedResult differs %s:\n%s", legend(), ColorizeDiff(diff))
		}
	}
	if o.verify != nil {
		o.verify(t, o.result, o.err)
	}
}

// normalized drops what controller-runtime does not look at.
func normalized(result reconcilers.Result) reconcilers.Result {
	if result.RequeueAfter != 0 {
		//lint:ignore SA1019 Trees for older versions still set it.
		result.Requeue = false
	}
	return result
}
