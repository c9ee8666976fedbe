package reconcilers_test

import (
	"testing"
	"time"

	"github.com/espalier-dev/espalier/reconcilers"
)

func TestAggregateResults(t *testing.T) {
	hour := reconcilers.Result{RequeueAfter: time.Hour}
	both := requeue
	both.RequeueAfter = time.Minute
	tests := map[string]struct {
		results  []reconcilers.Result
		expected reconcilers.Result
	}{
		"none":           {},
		"empty":          {results: []reconcilers.Result{{}, {}}},
		"requeue":        {results: []reconcilers.Result{{}, requeue, {}}, expected: requeue},
		"delay":          {results: []reconcilers.Result{{}, minute, {}}, expected: minute},
		"shortest delay": {results: []reconcilers.Result{hour, minute, hour}, expected: minute},
		// The queue ignores a negative delay, so it must not hide another one (invariant L6).
		"negative delay":         {results: []reconcilers.Result{{RequeueAfter: -1}, minute, {RequeueAfter: -1}}, expected: minute},
		"requeue beside a delay": {results: []reconcilers.Result{requeue, hour, minute}, expected: both},
		"highest priority": {
			results:  []reconcilers.Result{{Priority: new(-100)}, {Priority: new(-2)}, {}},
			expected: reconcilers.Result{Priority: new(-2)},
		},
		"priority beside a delay": {
			results:  []reconcilers.Result{{Priority: new(5)}, minute},
			expected: reconcilers.Result{RequeueAfter: time.Minute, Priority: new(5)},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			actual := reconcilers.AggregateResults(test.results...)
			if !sameResult(actual, test.expected) {
				t.Errorf("aggregated to %+v, expected %+v", actual, test.expected)
			}
		})
	}
}

func sameResult(a, b reconcilers.Result) bool {
	if (a.Priority == nil) != (b.Priority == nil) || a.Priority != nil && *a.Priority != *b.Priority {
		return false
	}
	a.Priority, b.Priority = nil, nil
	return a == b
}
