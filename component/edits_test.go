package component_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Five edits by hand of five fields are no fight. A sixth within the minute is one, and the next correction waits for 20
// seconds.
func TestEditsByHandAreNoFight(t *testing.T) {
	t.Parallel()
	part := partOf("default", "part", "0")
	for i := range 7 {
		part.Data[fmt.Sprintf("field-%d", i)] = "ours"
	}
	f := newFight(t, resources.NewAssembly("default", "all", part))
	f.until(f.now.Add(time.Second))
	live := &corev1.ConfigMap{}
	get := func() {
		if err := f.raw.Get(t.Context(), client.ObjectKeyFromObject(part), live); err != nil {
			t.Fatal(err)
		}
	}
	healed := func(edit int, within time.Duration) bool {
		get()
		field := fmt.Sprintf("field-%d", edit)
		live.Data[field] = "edited"
		if err := f.raw.Update(t.Context(), live); err != nil {
			t.Fatal(err)
		}
		f.changed = true
		f.until(f.now.Add(within))
		get()
		return live.Data[field] == "ours"
	}
	for edit := range 5 {
		if c := f.condition(); !healed(edit, 5*time.Second) || c.Reason != component.ReasonReady {
			t.Errorf("after edit %d the condition is %s: %s, and the data are %v, want %s, and the edit healed",
				edit, c.Reason, c.Message, live.Data, component.ReasonReady)
		}
	}
	if c := f.condition(); c.Reason != component.ReasonReady {
		t.Errorf("the condition is %s: %s, want %s", c.Reason, c.Message, component.ReasonReady)
	}
	if !healed(5, 5*time.Second) || healed(6, 14*time.Second) || f.condition().Reason != component.ReasonContested {
		t.Errorf("the data are %v, want the sixth edit healed at once, and the seventh later:\n%s", live.Data,
			strings.Join(f.what, "\n"))
	}
	f.until(f.now.Add(4 * time.Second)) // delays are jittered
	if get(); live.Data["field-6"] != "ours" {
		t.Errorf("the data are %v, want the seventh edit healed after 20 seconds", live.Data)
	}
}
