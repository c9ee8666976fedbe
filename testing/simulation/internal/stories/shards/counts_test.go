package shards_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/internal/testenv/sharder"
	"github.com/espalier-dev/espalier/testing/simulation"
)

// What happens in stories.
const (
	drains    = "a Widget is given back"
	movesAway = "a Widget is taken from a shard that has gone"
	prunes    = "a child is deleted that is not wanted any more"
	inMove    = "a child is deleted that is not wanted any more, within a minute of a move of its Widget"
	releases  = "a Lease is released"
	takes     = "a Lease is taken"
)

// happenings are all of these.
var happenings = []string{drains, movesAway, prunes, inMove, releases, takes}

// counts are how often something happened in a story.
type counts struct {
	mu    sync.Mutex
	times map[string]int
	// moved is when a Widget was moved last, by its UID.
	moved map[string]time.Time
}

var counters simulation.External[counts]

// counted counts what happens. It is a law that always holds.
func counted(w simulation.Write, s simulation.State) error {
	c := counters.In(context.Background())
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.times == nil {
		c.times, c.moved = map[string]int{}, map[string]time.Time{}
	}
	before := &unstructured.Unstructured{}
	switch {
	case w.Kind.Kind == "Widget":
		c.widget(w)
	case slices.Contains(childKinds, w.Kind) && w.Verb() == "delete" && w.ByOperator() && w.Before(before):
		uid := before.GetLabels()[widgetLabel]
		if widget := widgetOf(s, uid); widget == nil || widget.DeletionTimestamp != nil {
			return nil
		}
		c.times[prunes]++
		if moved, ok := c.moved[uid]; ok && w.Time.Sub(moved) < time.Minute {
			c.times[inMove]++
		}
	case w.Kind.Kind == "Lease" && slices.Contains(replicas, w.Name):
		after := &unstructured.Unstructured{}
		if !w.After(after) {
			return nil
		}
		switch holder, _, _ := unstructured.NestedString(after.Object, "spec", "holderIdentity"); holder {
		case "":
			c.times[releases]++
		case sharder.Identity:
			c.times[takes]++
		}
	}
	return nil
}

// widget counts what happens to a Widget.
func (c *counts) widget(w simulation.Write) {
	var before, after resources.Widget
	if !w.Before(&before) || !w.After(&after) {
		return
	}
	label := sharder.ShardLabel(joinings.In(context.Background()).ring())
	from, to := before.Labels[label], after.Labels[label]
	switch {
	case from == to || from == "":
		return
	case w.ByOperator():
		c.times[drains]++
	default:
		c.times[movesAway]++
	}
	c.moved[string(after.UID)] = w.Time
}

// tally is in how many stories something happened, and how many faults struck. It is safe for concurrent use.
type tally struct {
	mu      sync.Mutex
	stories map[string]int
	faults  int
}

// add adds the story of a world.
func (t *tally) add(w *simulation.World) {
	c := counters.Of(w)
	c.mu.Lock()
	happened := slices.Collect(maps.Keys(c.times))
	c.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stories == nil {
		t.stories = map[string]int{}
	}
	for _, name := range happened {
		t.stories[name]++
	}
	t.faults += len(w.Happened())
}

// report logs what happened, and fails if something is rare in many stories.
func (t *tally) report(tb testing.TB, stories int) {
	const many, part = 50, 10
	t.mu.Lock()
	defer t.mu.Unlock()
	tb.Logf("%d faults struck in %d stories", t.faults, stories)
	for _, name := range happenings {
		n := t.stories[name]
		tb.Logf("in %d of %d stories: %s", n, stories, name)
		if stories >= many && n < stories/part && !tb.Failed() {
			tb.Errorf("%q happens in %d of %d stories, want at least %d", name, n, stories, stories/part)
		}
	}
}
