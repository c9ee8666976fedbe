package resourcestate

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// follows is a change that follows the status.
func follows(i uint64) Change {
	c := change(i, 1, 1)
	c.Status = i
	return c
}

// change is desired object number desired, made of a resource and inputs with these digests.
func change(desired, resource, inputs uint64) Change {
	return Change{Desired: Desired{digest: desired, Known: true}, Resource: resource, Inputs: inputs}
}

// undone is a write of what another client has undone in a version of the object.
func undone(version uint64) Change {
	c := change(1, 1, 1)
	c.Undone, c.Base = fmt.Sprint(version), fmt.Sprint("base of ", version)
	return c
}

func TestFlapping(t *testing.T) {
	start := time.Date(2025, 2, 3, 4, 5, 6, 0, time.UTC)
	type step struct {
		after  time.Duration
		change Change
	}
	every := func(gap time.Duration, n int, made func(i uint64) Change) []step {
		var steps []step
		for i := range n {
			steps = append(steps, step{gap, made(uint64(i))})
		}
		return steps
	}
	flaps := func(i uint64) Change { return change(i, 1, 1) }
	for name, test := range map[string]struct {
		steps          []step
		flaps, contest bool
	}{
		"the first writes":  {steps: every(time.Second, immediateChanges, flaps)},
		"too many":          {steps: every(time.Second, immediateChanges+1, flaps), flaps: true},
		"undone too often":  {steps: every(time.Second, 6, undone), flaps: true, contest: true},
		"undone five times": {steps: every(time.Second, 5, undone)},
		"undone every 10 s": {steps: every(10*time.Second, 100, undone)},
		"undone, and the write fails": {steps: every(time.Second, 100, func(i uint64) Change {
			c := undone(1) // The object has other versions meanwhile, for other reasons.
			c.Base = fmt.Sprint(i)
			return c
		})},
		"written by a stale cache": {steps: every(time.Second, 100, func(i uint64) Change {
			c := undone(i)
			c.Base = "the version before"
			return c
		})},
		"undone, and the inputs change at last": {steps: append(every(time.Second, 20, undone), step{0, change(99, 1, 2)})},
		"undone, the resource changes":          {steps: append(every(time.Second, 20, undone), step{0, change(99, 2, 1)})},
		"too many, but slowly":                  {steps: every(20*time.Second, 100, flaps)},
		"the same again and again":              {steps: every(time.Second, 100, func(uint64) Change { return change(1, 1, 1) })},
		"one of two, by turns":                  {steps: every(time.Second, 5, func(i uint64) Change { return change(i%2, 1, 1) }), flaps: true},
		"the resource changes":                  {steps: every(time.Second, 100, func(i uint64) Change { return change(i, i, 1) })},
		"the inputs change":                     {steps: every(time.Second, 100, func(i uint64) Change { return change(i, 1, i) })},
		"the inputs change now and then":        {steps: every(time.Second, 20, func(i uint64) Change { return change(i, 1, i/4) }), flaps: true},
		"the status changes, too":               {steps: every(time.Millisecond, immediateChanges*statusChanges+1, follows), flaps: true},
		"the phases of a status":                {steps: every(time.Millisecond, immediateChanges*statusChanges, follows)},
		"the status changes slowly":             {steps: every(2*time.Second, 100, follows)},
		"without a reason, every 10 s":          {steps: every(10*time.Second, 100, flaps)},
		"the resource changes at last":          {steps: append(every(time.Second, 20, flaps), step{0, change(99, 2, 1)})},
	} {
		t.Run(name, func(t *testing.T) {
			var known *Changes
			now := start
			for i, step := range test.steps {
				now = now.Add(step.after)
				if known.Holds(step.change, now) {
					continue
				}
				describe := Describe{
					Content: func() map[string]any { return map[string]any{"a": "same", "b": map[string]any{"c": int64(i)}} },
					Contest: func() Contest { return Contest{Fields: []string{".b.c"}} },
				}
				known = known.After(step.change, describe, now).dropPrevious(now)
			}
			field := known.Field
			if known.Contest.IsKnown {
				field = strings.Join(known.Contest.Fields, " ")
			}
			if known.Flaps != test.flaps || test.flaps && field != ".b.c" || known.Contest.IsKnown != test.contest {
				t.Errorf("flaps: %t, in %q, by another client: %t, want %t and %t", known.Flaps, field,
					known.Contest.IsKnown, test.flaps, test.contest)
			}
			if known.Flaps && known.previous != nil {
				t.Error("a copy is kept although the field is known, want none")
			}
			if dropped := known.dropPrevious(now.Add(changeWindow)); dropped.previous != nil {
				t.Error("a copy is kept for ever, want it dropped")
			}
		})
	}
}

func TestDelaysOfFlapping(t *testing.T) {
	var got []time.Duration
	start := time.Date(2025, 2, 3, 4, 5, 6, 0, time.UTC)
	known, now := (*Changes)(nil), start
	describe := Describe{Content: func() map[string]any { return nil }}
	for i := range uint64(immediateChanges + 7) {
		known = known.After(change(i, 1, 1), describe, now)
		if next := change(i+1, 1, 1); known.Flaps {
			got = append(got, known.NextWrite().Sub(now))
			if !known.Holds(next, known.NextWrite().Add(-1)) || known.Holds(next, known.NextWrite()) {
				t.Errorf("change %d is not held until %v, want it held until then and no longer", i, known.NextWrite())
			}
			if quiet := known.QuietUntil().Sub(now); quiet < flapQuietTime || quiet < got[len(got)-1] {
				t.Errorf("after change %d it is quiet after %v, want at least %v and the delay of its write", i, quiet,
					flapQuietTime)
			}
		}
		now = known.NextWrite()
		if now.Before(start) {
			now = start
		}
	}
	if want := "[20s 40s 1m20s 2m40s 2m40s 2m40s 2m40s]"; fmt.Sprint(got) != want {
		t.Errorf("the delays are %v, want %s", got, want)
	}
}

func TestFirstDifference(t *testing.T) {
	type content = map[string]any
	for want, test := range map[string]struct{ a, b any }{
		"":                      {content{"a": []any{content{"b": "1"}}}, content{"a": []any{content{"b": "1"}}}},
		".a":                    {content{"a": "1", "b": "1"}, content{"a": "2", "b": "2"}},
		".c":                    {content{"a": "1"}, content{"a": "1", "c": nil}},
		".a[1].b":               {content{"a": []any{"x", content{"b": "1"}}}, content{"a": []any{"x", content{"b": "2"}}}},
		".a.l":                  {content{"a": content{"l": []any{"1"}}}, content{"a": content{"l": []any{"1", "2"}}}},
		".d[tls.key]":           {content{"d": content{"tls.key": "1"}}, content{"d": content{"tls.key": "2"}}},
		".metadata.labels[a/b]": {content{"metadata": content{"labels": content{"a/b": "1"}}}, content{"metadata": content{"labels": content{}}}},
		".t":                    {content{"t": "1"}, content{"t": content{}}},
	} {
		if got, differs := firstDifference("", test.a, test.b); got != want || differs != (want != "") {
			t.Errorf("got %q, %t, want %q", got, differs, want)
		}
	}
}
