package testing

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/replay"
	"github.com/espalier-dev/espalier/testing/internal/run"
	"github.com/espalier-dev/espalier/testing/internal/words"
)

const pasteHint = "\nTo replay this alone, paste the row:\n"

// maxOthers is how many findings are listed beside the first.
const maxOthers = 10

// fail fails the test for what replays have found: the first finding with the smallest row that shows it, the others in
// a line each.
func (r *replayed) fail(t *testing.T, ctx context.Context, findings []replay.Finding, options replay.Options) {
	t.Helper()
	if len(findings) == 0 {
		return
	}
	first, others, paste := findings[0], findings[1:], ""
	switch {
	case !r.row.fault.isZero():
	case first.Endless:
		paste = pasteHint + r.pastable(Fault{faults: first.Faults}, r.shrinkable())
	default:
		shrinking, cancel := run.BeforeDeadline(ctx)
		defer cancel()
		var kept []shrunk
		kept, first = replay.Shrink(shrinking, r.shrinkable(), func(some []shrunk) (replay.Program, error) {
			return r.program(t, r.with(some))
		}, first, options)
		paste = pasteHint + r.pastable(Fault{faults: first.Faults}, kept)
	}
	r.row.origin.Fail(t, words.Failure{
		Headline: fmt.Sprintf("replayed with %s, the row ends in another way", Fault{faults: first.Faults}),
		Details:  first.String() + listed(others) + paste,
	})
}

// failUnrest fails the test for requests that go on without a fault.
func (r *replayed) failUnrest(t *testing.T, f replay.Finding) {
	t.Helper()
	r.row.origin.Fail(t, words.Failure{
		Headline: "without a fault, the row never comes to rest",
		Details: f.String() + `
The requests after the first find what it has left: let them change nothing and return no error. If the code waits for
somebody else, let its result ask for a delay. To leave it as it is, set:
  Replays: rtesting.NoReplays("why it never comes to rest"),`,
	})
}

// listed lists findings.
func listed(findings []replay.Finding) string {
	if len(findings) == 0 {
		return ""
	}
	text := fmt.Sprintf("\nSo it does with %s:", words.Count(len(findings), "other fault"))
	for i, f := range findings {
		if i == maxOthers {
			return text + "\n  ..."
		}
		text += fmt.Sprintf("\n  %s: %s", Fault{faults: f.Faults}, f.Differences[0])
	}
	return text
}

// shrunk is a given object that the smallest row may lack.
type shrunk struct {
	object client.Object
	// field and index are where the row has it.
	field string
	index int
}

// shrinkable returns the given objects that the smallest row may lack. There are none if Prepare may have changed what
// the row gives.
func (r *replayed) shrinkable() []shrunk {
	var all []shrunk
	if r.row.prepare != nil {
		return nil
	}
	for i, obj := range r.expect.GivenObjects {
		if i != r.expect.how.Reconciled || !r.ofNode {
			all = append(all, shrunk{obj, "GivenObjects", i})
		}
	}
	for i, obj := range r.expect.APIGivenObjects {
		all = append(all, shrunk{obj, "APIGivenObjects", i})
	}
	return all
}

// with returns the config of the row with those of the shrinkable objects that are kept.
func (r *replayed) with(kept []shrunk) ExpectConfig {
	c := *r.expect
	if r.row.prepare != nil {
		return c
	}
	c.GivenObjects, c.APIGivenObjects, c.how.Reconciled = nil, nil, -1
	for _, given := range kept {
		if given.field == "APIGivenObjects" {
			c.APIGivenObjects = append(c.APIGivenObjects, given.object)
		} else {
			c.GivenObjects = append(c.GivenObjects, given.object)
		}
	}
	if r.ofNode {
		c.how.Reconciled = len(c.GivenObjects)
		c.GivenObjects = append(c.GivenObjects, r.expect.GivenObjects[r.expect.how.Reconciled])
	}
	return c
}

// pastable returns the row with a fault, those of the shrinkable objects that are kept, and no expectations.
func (r *replayed) pastable(fault Fault, kept []shrunk) string {
	paste := r.row.origin.NewPaste(*r.row.name + ": " + fault.String())
	row := reflect.ValueOf(r.inTable).Elem()
	for i := range row.NumField() {
		field, value := row.Type().Field(i), row.Field(i)
		if !field.IsExported() || value.IsZero() || isExpectation(field.Name) || unpasted[field.Name] {
			continue
		}
		list, isList := value.Interface().([]client.Object)
		if !isList || r.row.prepare != nil || !strings.HasSuffix(field.Name, "GivenObjects") {
			paste.Field(field.Name, value.Interface())
			continue
		}
		var some []int
		for _, given := range kept {
			if given.field == field.Name {
				some = append(some, given.index)
			}
		}
		paste.List(field.Name, list, some)
	}
	paste.Value("Fault", fault.expression())
	return paste.String()
}

// unpasted are fields of a case that the smallest row does not need.
var unpasted = map[string]bool{
	"Name": true, "Focus": true, "Skip": true, "Fault": true, "Differ": true, "Until": true,
	"VerifyStashedValue": true, "StatusSubResourceTypes": true, "AdditionalReconciles": true,
}
