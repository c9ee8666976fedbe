package readiness_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/component/readiness"
)

func TestReadyWhen(t *testing.T) {
	const thing = `
apiVersion: example.com/v1
kind: Thing
metadata: {name: x, labels: {tier: gold}}
spec: {token: s3cret}
status: {phase: Running, shards: [{up: true}, {up: false}], replicas: 2, share: 0.5, free: null}`
	tests := map[string]struct {
		expression string
		want       readiness.Result
	}{
		"true":                  {`object.status.phase == "Running"`, current},
		"false":                 {`object.status.phase == "Ready"`, inProgress("ready-when: is not true yet")},
		"whole numbers":         {`object.status.replicas >= 2`, current},
		"broken numbers":        {`object.status.share < 0.75 && object.status.share < 1`, current},
		"null":                  {`object.status.free == null`, current},
		"over a list":           {`object.status.shards.exists(s, s.up) && size(object.status.shards) == 2`, current},
		"not all of a list":     {`object.status.shards.all(s, s.up)`, inProgress("ready-when: is not true yet")},
		"strings":               {`object.status.phase.lowerAscii() == "running" && object.metadata.name.charAt(0) == "x"`, current},
		"sets":                  {`sets.contains(["Running", "Done"], [object.status.phase])`, current},
		"an optional field":     {`object.?status.?address.hasValue()`, inProgress("ready-when: is not true yet")},
		"a missing field":       {`object.status.address != ""`, inProgress("ready-when: no such key: address")},
		"asked for":             {`!has(object.status.address)`, current},
		"a value of the object": {`int(object.spec.token) > 0`, inProgress("ready-when: cannot be evaluated")},
		"other types":           {`object.status.phase > 1`, inProgress("ready-when: no such overload")},
		"out of a list":         {`object.status.shards[5].up`, inProgress("ready-when: index out of bounds: 5")},
		"no bool after all":     {`object.status.phase`, inProgress("ready-when: is neither true nor false, but of type string")},
		"a bool after all":      {`object.status.shards[0].up`, current},
		"no bool":               {`"yes"`, failed("ready-when: must be true or false, not of type string")},
		"no expression":         {`object.status.`, failed("ready-when: Syntax error: no viable alternative at input '.' (line 1, column 15)")},
		"an unknown variable":   {"true &&\nself.ready", failed("ready-when: undeclared reference to 'self' (in container '') (line 2, column 1)")},
		"too long":              {strings.Repeat(" ", 8<<10) + "true", failed("ready-when: is longer than 8192 bytes")},
		"too deep":              {strings.Repeat("(", 4000) + "true" + strings.Repeat(")", 4000), failed("ready-when: expression recursion limit exceeded: 250 (line -1, column 0)")},
		"too expensive": {
			`[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, [0,1,2,3,4,5,6,7,8,9].all(d, ` +
				`[0,1,2,3,4,5,6,7,8,9].all(e, a + b + c + d + e >= 0)))))`,
			inProgress("ready-when: takes too long to evaluate")},
		"a replacement that grows": {`"aaa".replace("", "aaa") == ""`, failed("ready-when: the function replace is not available")},
		"a format that grows":      {`["%s".format([object])].exists(s, ["a"].join(s) == "")`, failed("ready-when: the function format is not available")},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			settings := generator.Settings{ReadyWhen: tc.expression}
			check(t, parse(t, thing), settings, tc.want)

			err := readiness.Validate(settings)
			if valid := tc.want.Status != apis.ObjectFailed; valid != (err == nil) {
				t.Errorf("Validate says %v, want an error: %t", err, !valid)
			}
			if err != nil && err.Error() != tc.want.Message {
				t.Errorf("Validate: want %q, got %q", tc.want.Message, err)
			}
		})
	}
}

func TestWithoutAnExpressionSettingsAreValid(t *testing.T) {
	if err := readiness.Validate(generator.Settings{}); err != nil {
		t.Error(err)
	}
}

// The expression is evaluated last: it cannot make an object ready that other rules find not ready.
func TestReadyWhenComesLast(t *testing.T) {
	for status, want := range map[string]readiness.Result{
		"{conditions: [{type: Stalled, status: 'True'}]}":                         failed("Stalled"),
		"{conditions: [{type: Ready, status: 'False'}]}":                          inProgress("Ready is False"),
		"{conditions: [{type: Ready, status: 'True'}, {type: Test, status: no}]}": inProgress("Test is no"),
	} {
		object := parse(t, "apiVersion: example.com/v1\nkind: Thing\nstatus: "+strings.ReplaceAll(status, "no}", "'no'}"))
		check(t, object, generator.Settings{
			ReadyWhen:  "true",
			StatusHint: generator.StatusHint{Conditions: []string{"Test"}},
		}, want)
	}
}

// The expression has the object as it is, without what a hint adds.
func TestReadyWhenSeesNoHints(t *testing.T) {
	object := parse(t, `
apiVersion: v1
kind: ConfigMap
metadata: {name: x}`)
	check(t, object, generator.Settings{
		ReadyWhen:  "!has(object.status)",
		StatusHint: generator.StatusHint{HasObservedGeneration: true, HasReadyCondition: true},
	}, current)
}

// No message about a Secret has a value of it, for any expression.
func TestL9NoMessageHasAValueOfASecret(t *testing.T) {
	const value = "c3VwZXJzZWNyZXQ="
	secret := parse(t, `
apiVersion: v1
kind: Secret
metadata: {name: x, labels: {}}
data: {password: `+value+`}`)
	for _, expression := range []string{
		`int(object.data.password) > 0`,
		`object.metadata.labels[object.data.password] == ""`,
		`{}[object.data.password]`,
		`object.data.password`,
		`timestamp(object.data.password) > timestamp("2025-01-01T00:00:00Z")`,
		`duration(object.data.password) > duration("1s")`,
		`"".matches(object.data.password + "(")`,
	} {
		got := readiness.Of(secret, generator.Settings{ReadyWhen: expression})
		if got.Status != apis.ObjectInProgress {
			t.Errorf("%s: want InProgress, got %v", expression, got)
		}
		if strings.Contains(got.Message, value) {
			t.Errorf("%s: the message shows the value, want it hidden: %s", expression, got.Message)
		}
	}
}

// Expressions are kept up to a limit, and may be evaluated concurrently.
func TestExpressionsAreKeptForAll(t *testing.T) {
	object := parse(t, "apiVersion: example.com/v1\nkind: Thing\nstatus: {count: 7}")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 1500 {
				got := readiness.Of(object, generator.Settings{ReadyWhen: fmt.Sprintf("object.status.count != %d", i)})
				if want := i != 7; want != (got == current) {
					t.Errorf("the result of expression %d is %v, want it current: %t", i, got, want)
				}
			}
		})
	}
	wg.Wait()
	if n, most := readiness.Kept(), readiness.MaxPrograms; n != most {
		t.Errorf("%d expressions are kept, want %d", n, most)
	}
}
