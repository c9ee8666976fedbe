package fault_test

import (
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/fault"
)

func TestFaultString(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]fault.Fault{
		`DiesAfter("create ConfigMap ns/one")`:     {Kind: fault.DiesAfter, Path: "create ConfigMap ns/one"},
		`Fails("create ConfigMap ns/one-*", 2)`:    {Kind: fault.Fails, Path: "create ConfigMap ns/one-*", Nth: 2},
		`Stale("get ConfigMap ns/one")`:            {Kind: fault.Stale, Path: "get ConfigMap ns/one", Nth: 1},
		`Expires("operator list /api/v1/pods", 3)`: {Kind: fault.Expires, Actor: "operator", Verb: "list", Path: "/api/v1/pods", Nth: 3},
	} {
		if got := f.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestFaultEffect(t *testing.T) {
	t.Parallel()
	for _, kind := range []fault.Kind{
		fault.Refuses, fault.Fails, fault.LosesAnswer, fault.Conflicts, fault.Throttles, fault.Expires, fault.CutsWatch,
		fault.DelaysWatch, fault.DiesBefore, fault.DiesAfter, fault.Restarts, fault.Stale,
	} {
		if effect := (fault.Fault{Kind: kind}).Effect(); effect == string(kind) {
			t.Errorf("the effect of %s is %q, want words", kind, effect)
		}
	}
	late := fault.Fault{Kind: fault.Throttles, Delay: 5 * time.Second}
	if got, want := late.Effect(), "too many requests, without effect, 5s"; got != want {
		t.Errorf("the effect with a delay is %q, want %q", got, want)
	}
}
