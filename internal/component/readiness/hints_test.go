package readiness_test

import (
	"fmt"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/component/readiness"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// absent stands for a field or a condition that is not there.
const absent = ""

// state is the status of an object of a kind without rules, of generation 3.
type state struct {
	observed      int64 // 0: none
	ready         string
	readyObserved int64 // 0: none
	test          string
}

func (s state) object() *unstructured.Unstructured {
	status := map[string]any{}
	if s.observed != 0 {
		status["observedGeneration"] = s.observed
	}
	var conditions []any
	if s.ready != absent {
		ready := map[string]any{"type": "Ready", "status": s.ready}
		if s.readyObserved != 0 {
			ready["observedGeneration"] = s.readyObserved
		}
		conditions = append(conditions, ready)
	}
	if s.test != absent {
		conditions = append(conditions, map[string]any{"type": "Test", "status": s.test})
	}
	if conditions != nil {
		status["conditions"] = conditions
	}
	object := map[string]any{
		"apiVersion": "example.com/v1",
		"kind":       "Thing",
		"metadata":   map[string]any{"name": "x", "generation": int64(3)},
	}
	if len(status) > 0 {
		object["status"] = status
	}
	return &unstructured.Unstructured{Object: object}
}

// row is a line of the decision table. An axis with several values stands for all of their combinations.
type row struct {
	observed, readyObserved   []int64
	ready, test               []string
	hintGeneration, hintReady []bool
	hintTest                  bool
	want                      apis.ObjectStatus
}

func (r row) each(visit func(state, generator.StatusHint)) {
	for _, observed := range r.observed {
		for _, ready := range r.ready {
			for _, readyObserved := range r.readyObserved {
				for _, test := range r.test {
					for _, generation := range r.hintGeneration {
						for _, hintReady := range r.hintReady {
							hint := generator.StatusHint{HasObservedGeneration: generation,
								HasReadyCondition: hintReady}
							if r.hintTest {
								hint.Conditions = []string{"Test"}
							}
							visit(state{observed, ready, readyObserved, test}, hint)
						}
					}
				}
			}
		}
	}
}

func TestDecisionTable(t *testing.T) {
	var (
		none    = []int64{0}
		no      = []bool{false}
		yes     = []bool{true}
		noOrYes = []bool{false, true}
		any4    = []string{absent, "True", "False", "Unknown"}
		anyOwn  = []int64{0, 1, 3}
	)
	rows := map[string]row{
		"nothing":                             {none, none, []string{absent}, any4, no, no, false, apis.ObjectCurrent},
		"an old generation":                   {[]int64{1}, anyOwn, any4, any4, noOrYes, noOrYes, false, apis.ObjectInProgress},
		"an old generation, hinted condition": {[]int64{1}, anyOwn, any4, any4, noOrYes, noOrYes, true, apis.ObjectInProgress},
		"this generation":                     {[]int64{3}, none, []string{absent}, any4, noOrYes, no, false, apis.ObjectCurrent},
		"a generation is to come":             {none, none, []string{absent}, any4, yes, no, false, apis.ObjectInProgress},
		"not Ready":                           {[]int64{0, 3}, anyOwn, []string{"Unknown", "False"}, any4, noOrYes, no, false, apis.ObjectInProgress},
		"Ready":                               {[]int64{0, 3}, anyOwn, []string{"True"}, any4, no, no, false, apis.ObjectCurrent},
		"Ready for no or an old generation, one is to come":     {none, []int64{0, 1}, []string{"True"}, any4, yes, no, false, apis.ObjectInProgress},
		"Ready for this generation, one is to come":             {none, []int64{3}, []string{"True"}, any4, yes, no, false, apis.ObjectCurrent},
		"Ready and observed":                                    {[]int64{3}, anyOwn, []string{"True"}, any4, yes, no, false, apis.ObjectCurrent},
		"Ready is to come":                                      {[]int64{0, 1, 3}, none, []string{absent}, any4, noOrYes, yes, false, apis.ObjectInProgress},
		"the hinted condition is not True":                      {[]int64{0, 3}, none, []string{absent}, []string{absent, "Unknown", "False"}, no, no, true, apis.ObjectInProgress},
		"the hinted condition is True":                          {[]int64{0, 3}, none, []string{absent}, []string{"True"}, no, no, true, apis.ObjectCurrent},
		"the hinted condition is True, a generation is to come": {none, none, []string{absent}, []string{"True"}, yes, no, true, apis.ObjectInProgress},
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			r.each(func(s state, hint generator.StatusHint) {
				got := readiness.Of(s.object(), generator.Settings{StatusHint: hint})
				if got.Status != r.want {
					t.Errorf("%+v with %+v: want %s, got %s: %s", s, hint, r.want, got.Status, got.Message)
				}
			})
		})
	}
}

func TestWordsForHints(t *testing.T) {
	generation := generator.StatusHint{HasObservedGeneration: true}
	ready := generator.StatusHint{HasReadyCondition: true}
	test := generator.StatusHint{Conditions: []string{"Test"}}
	tests := map[string]struct {
		state state
		hint  generator.StatusHint
		want  readiness.Result
	}{
		"never observed":                 {state{}, generation, inProgress("has not been observed yet (generation 3)")},
		"observed by Ready":              {state{ready: "True", readyObserved: 2}, generation, inProgress("has not been observed yet (generation 3, observed 2)")},
		"an old generation":              {state{observed: 2}, generator.StatusHint{}, inProgress("has not been observed yet (generation 3, observed 2)")},
		"no condition Ready":             {state{}, ready, inProgress("Ready is Unknown: not reported yet")},
		"no condition Ready among some":  {state{test: "True"}, ready, inProgress("Ready is Unknown: not reported yet")},
		"no hinted condition":            {state{}, test, inProgress("has no condition Test yet")},
		"the hinted condition is False":  {state{test: "False"}, test, inProgress("Test is False")},
		"the rules of the kind go first": {state{ready: "False", test: "False"}, test, inProgress("Ready is False")},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			check(t, tc.state.object(), generator.Settings{StatusHint: tc.hint}, tc.want)
		})
	}
}

// A hint works for any kind, also for kinds with rules.
func TestHintsForKindsWithRules(t *testing.T) {
	object := parse(t, `
apiVersion: v1
kind: ConfigMap
metadata: {name: x, generation: 1}`)
	check(t, object, generator.Settings{StatusHint: generator.StatusHint{HasObservedGeneration: true}},
		inProgress("has not been observed yet (generation 1)"))
	check(t, object, generator.Settings{StatusHint: generator.StatusHint{Conditions: []string{"Synced", "Healthy"}}},
		inProgress("has no condition Synced yet"))
}

// A hint replaces no part of the status.
func TestHintsLeaveTheStatusAsItIs(t *testing.T) {
	object := parse(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: x}
status: {conditions: [{type: Established, status: "True"}, {type: NamesAccepted, status: "True"}]}`)
	check(t, object, generator.Settings{StatusHint: generator.StatusHint{HasReadyCondition: true}}, current)
}

func ExampleOf() {
	widget := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1",
		"kind":       "Widget",
		"metadata":   map[string]any{"name": "new", "generation": int64(1)},
	}}
	hint := generator.StatusHint{HasReadyCondition: true}

	fmt.Println(readiness.Of(widget, generator.Settings{}).Status)
	fmt.Println(readiness.Of(widget, generator.Settings{StatusHint: hint}).Status)
	// Output:
	// Current
	// InProgress
}
