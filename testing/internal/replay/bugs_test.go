package replay_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/internal/replay"
)

// bug is a mistake in code that passes each test without a fault, and the code without the mistake.
type bug struct {
	given []client.Object
	// wrong and right are the code, which may work with a service.
	wrong, right func(service *counter) code
	// found is the finding with the shortest story.
	found string
}

// oneLine joins the lines of a story that is too long for one.
func oneLine(story string) string { return strings.ReplaceAll(story, " ·\n", " · ") }

func TestEachBugIsFoundAndItsRemedyIsNot(t *testing.T) {
	t.Parallel()
	for name, b := range bugs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := given(t, append([]client.Object{widget()}, b.given...)...)
			program := func(make func(*counter) code) replay.Program {
				service := &counter{}
				p := programOf(s, make(service), service.external())
				p.IgnoreObserved = true
				return p
			}
			report := explore(t, program(b.wrong), replay.Options{})
			found := shortest(t, report)
			if got := told(found); got != oneLine(b.found) {
				t.Errorf("got\n%s\nwant\n%s", got, b.found)
			}
			again, err := replay.Run(t.Context(), program(b.wrong), found.Faults, replay.Options{})
			if err != nil || again == nil || told(*again) != told(found) {
				t.Errorf("alone the finding is %v (%v), want\n%s", again, err, told(found))
			}
			for _, f := range explore(t, program(b.right), replay.Options{Pairs: true}).Findings {
				t.Errorf("there is a finding, want none since nothing is wrong:\n%s", told(f))
			}
		})
	}
}

func TestAnEndlessRequestIsToldInShort(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		loop  func(ctx context.Context, p *process, i int) error
		story string
	}{
		"the same call": {
			func(ctx context.Context, p *process, _ int) error { return p.Create(ctx, configMap("one")) },
			"create ConfigMap one (answer lost) · 9999 times: create ConfigMap one (AlreadyExists) · error",
		},
		"many calls": {
			func(ctx context.Context, p *process, i int) error {
				err := p.Create(ctx, configMap("one"))
				_ = p.Patch(ctx, configMap("one"), mergePatch(fmt.Sprintf(`{"data":{"i":"%d"}}`, i)))
				return err
			},
			"create ConfigMap one (answer lost) · patch ConfigMap one · create ConfigMap one (AlreadyExists) · " +
				strings.Repeat("patch ConfigMap one · create ConfigMap one (AlreadyExists) · ", 23) +
				"patch ConfigMap one · 9950 more calls · error",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := programOf(given(t, widget()), func(ctx context.Context, p *process) error {
				for i := 0; ; i++ {
					if err := tc.loop(ctx, p, i); err == nil || p.memory["made"] != "" {
						p.memory["made"] = "yes"
						return nil
					}
				}
			})
			// It ends by the number of calls, however busy the machine is.
			program.Patience = time.Hour
			struck := fault.Fault{Kind: fault.LosesAnswer, Path: "create ConfigMap ns/one"}
			found, err := replay.Run(t.Context(), program, []fault.Fault{struck}, replay.Options{})
			if err != nil || found == nil || found.Story != tc.story {
				t.Errorf("the finding is %v (%v), want the story\n%s", found, err, tc.story)
			}
		})
	}
}
