package reconcilers_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
)

func TestTryCatch(t *testing.T) {
	bang := errors.New("bang")
	hour := reconcilers.Result{RequeueAfter: time.Hour}
	type outcome struct {
		result reconcilers.Result
		err    error
	}
	type catch = func(context.Context, *resources.Widget, reconcilers.Result, error) (reconcilers.Result, error)
	catches := func(calls *trace, with outcome) catch {
		return func(_ context.Context, _ *resources.Widget, result reconcilers.Result, err error) (reconcilers.Result, error) {
			calls.add("catch %s, %v", result.RequeueAfter, err)
			return with.result, with.err
		}
	}
	for name, test := range map[string]struct {
		try     outcome
		catch   *outcome
		finally *outcome
		calls   []string
		returns outcome
	}{
		"success": {
			try: outcome{result: minute}, calls: []string{"try"}, returns: outcome{result: minute},
		},
		"failure": {
			try: outcome{minute, errBoom}, calls: []string{"try"}, returns: outcome{minute, errBoom},
		},
		"catch is called on success": {
			try: outcome{result: minute}, catch: &outcome{hour, nil},
			calls: []string{"try", "catch 1m0s, <nil>"}, returns: outcome{result: hour},
		},
		"catch injects an error": {
			try: outcome{result: minute}, catch: &outcome{hour, errBoom},
			calls: []string{"try", "catch 1m0s, <nil>"}, returns: outcome{hour, errBoom},
		},
		"catch suppresses an error": {
			try: outcome{minute, errBoom}, catch: &outcome{},
			calls: []string{"try", "catch 1m0s, boom"}, returns: outcome{},
		},
		"catch passes an error on": {
			try: outcome{minute, errBoom}, catch: &outcome{minute, errBoom},
			calls: []string{"try", "catch 1m0s, boom"}, returns: outcome{minute, errBoom},
		},
		"catch returns another error": {
			try: outcome{minute, errBoom}, catch: &outcome{minute, bang},
			calls: []string{"try", "catch 1m0s, boom"}, returns: outcome{minute, bang},
		},
		"finally after success": {
			try: outcome{result: hour}, finally: &outcome{result: minute},
			calls: []string{"try", "finally"}, returns: outcome{result: minute},
		},
		"finally after failure": {
			try: outcome{minute, errBoom}, finally: &outcome{result: hour},
			calls: []string{"try", "finally"}, returns: outcome{minute, errBoom},
		},
		"finally after a halt": {
			try: outcome{minute, reconcilers.ErrHaltSubReconcilers}, finally: &outcome{result: hour},
			calls: []string{"try", "finally"}, returns: outcome{minute, reconcilers.ErrHaltSubReconcilers},
		},
		"finally fails": {
			try: outcome{result: hour}, finally: &outcome{minute, bang},
			calls: []string{"try", "finally"}, returns: outcome{minute, bang},
		},
		"all three": {
			try: outcome{minute, errBoom}, catch: &outcome{hour, bang}, finally: &outcome{result: requeue},
			calls:   []string{"try", "catch 1m0s, boom", "finally"},
			returns: outcome{reconcilers.AggregateResults(hour, requeue), bang},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for life, resource := range map[string]*resources.Widget{"alive": widget.Object(), "terminating": terminatingWidget.Object()} {
				calls := &trace{}
				node := &widgetTryCatch{Try: calls.step("try", test.try.result, test.try.err)}
				if test.catch != nil {
					node.Catch = catches(calls, *test.catch)
				}
				if test.finally != nil {
					node.Finally = calls.step("finally", test.finally.result, test.finally.err)
				}
				result, err := node.Reconcile(testContext(t, expectWidget().Config()), resource)
				if result != test.returns.result || err != test.returns.err {
					t.Errorf("%s: returned %+v, %v, expected %+v", life, result, err, test.returns)
				}
				calls.compare(t, test.calls)
			}
		})
	}
}

// Invariant L6: an error of Finally does not hide the one before it.
func TestL6FinallyHidesNoError(t *testing.T) {
	result := reconcilers.Result{}
	bang := errors.New("bang")
	for name, test := range map[string]struct {
		try, finally error
		text         string
	}{
		"both fail":        {try: errBoom, finally: bang, text: "boom\nbang"},
		"finally is quiet": {try: errBoom, finally: reconcilers.ErrQuiet, text: "boom"},
		"try is quiet":     {try: reconcilers.ErrHaltSubReconcilers, finally: bang, text: "bang"},
		"try fails, and wants no status": {
			try: errors.Join(reconcilers.ErrQuiet, reconcilers.ErrSkipStatusUpdate), finally: bang,
			text: reconcilers.ErrSkipStatusUpdate.Error() + "\nbang",
		},
	} {
		t.Run(name, func(t *testing.T) {
			node := &widgetTryCatch{Try: (&trace{}).step("", result, test.try), Finally: (&trace{}).step("", result, test.finally)}
			_, err := node.Reconcile(t.Context(), widget.Object())
			checkError(t, "", err, test.text)
		})
	}
}

// Panics are not caught: neither Catch nor Finally hears of one.
func TestTryCatchLetsPanicsPass(t *testing.T) {
	calls := &trace{}
	node := &widgetTryCatch{
		Try: syncing(func(context.Context, *resources.Widget) { panic(errBoom) }),
		Catch: func(context.Context, *resources.Widget, reconcilers.Result, error) (reconcilers.Result, error) {
			calls.add("catch")
			return reconcilers.Result{}, nil
		},
		Finally: calls.step("finally", reconcilers.Result{}, nil),
	}
	defer func() {
		if p := recover(); p != errBoom {
			t.Errorf("it recovered %v, want %v", p, errBoom)
		}
		calls.compare(t, []string{})
	}()
	_, _ = node.Reconcile(t.Context(), widget.Object())
}

func TestTryCatchValidate(t *testing.T) {
	valid := &widgetSync{Sync: func(context.Context, *resources.Widget) error { return nil }}
	invalid := &widgetSync{}
	const missing = `SyncReconciler "SyncReconciler" must implement Sync or SyncWithResult`
	validationTests{
		"empty":      {node: &widgetTryCatch{}, shallow: `TryCatch "TryCatch" must implement Try`},
		"no Try":     {node: &widgetTryCatch{Name: "mine", Finally: valid}, shallow: `TryCatch "mine" must implement Try`},
		"no Finally": {node: &widgetTryCatch{Try: valid}},
		"all":        {node: &widgetTryCatch{Try: valid, Finally: widgetAlways{}}},
		"bad Try":    {node: &widgetTryCatch{Try: invalid}, recursive: `TryCatch "TryCatch" must have a valid Try: ` + missing},
		"bad Finally": {
			node:      &widgetTryCatch{Try: valid, Finally: invalid},
			recursive: `TryCatch "TryCatch" must have a valid Finally: ` + missing,
		},
	}.run(t)
}
