package replay_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/testenv/replay"
)

// bug is a mistake in code that passes each test without a fault, and the code without the mistake.
type bug struct {
	given []client.Object
	// wrong and right are the code, which may work with a service.
	wrong, right func(service *counter) code
	// found is the finding with the shortest story.
	found string
}

func TestEachBugIsFoundAndItsRemedyIsNot(t *testing.T) {
	t.Parallel()
	for name, b := range bugs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := given(t, append([]client.Object{widget()}, b.given...)...)
			program := func(make func(*counter) code) replay.Program {
				service := &counter{}
				return programOf(s, make(service), service.external())
			}
			report := explore(t, program(b.wrong), replay.Options{})
			found := shortest(t, report)
			if got := told(found); got != b.found {
				t.Errorf("got\n%s\nwant\n%s", got, b.found)
			}
			again, err := replay.Run(t.Context(), program(b.wrong), found.Faults, replay.Options{})
			if err != nil || again == nil || told(*again) != told(found) {
				t.Errorf("alone it is %v, %v", again, err)
			}
			for _, f := range explore(t, program(b.right), replay.Options{Pairs: true}).Findings {
				t.Errorf("nothing is wrong here, but got\n%s", told(f))
			}
		})
	}
}
