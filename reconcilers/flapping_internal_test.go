package reconcilers

import (
	"fmt"
	"testing"
	"time"
)

// change is desired object number desired, made of a resource and inputs with these digests.
func change(desired, resource, inputs uint64) desiredChange {
	return desiredChange{desired: desiredHash{digest: desired, known: true}, resource: resource, inputs: inputs}
}

func TestFlapping(t *testing.T) {
	start := time.Date(2025, 2, 3, 4, 5, 6, 0, time.UTC)
	type step struct {
		after  time.Duration
		change desiredChange
	}
	every := func(gap time.Duration, n int, made func(i uint64) desiredChange) []step {
		var steps []step
		for i := range n {
			steps = append(steps, step{gap, made(uint64(i))})
		}
		return steps
	}
	flaps := func(i uint64) desiredChange { return change(i, 1, 1) }
	for name, test := range map[string]struct {
		steps []step
		flaps bool
	}{
		"the first writes":               {steps: every(time.Second, immediateChanges, flaps)},
		"too many":                       {steps: every(time.Second, immediateChanges+1, flaps), flaps: true},
		"too many, but slowly":           {steps: every(20*time.Second, 100, flaps)},
		"the same again and again":       {steps: every(time.Second, 100, func(uint64) desiredChange { return change(1, 1, 1) })},
		"one of two, by turns":           {steps: every(time.Second, 5, func(i uint64) desiredChange { return change(i%2, 1, 1) }), flaps: true},
		"the resource changes":           {steps: every(time.Second, 100, func(i uint64) desiredChange { return change(i, i, 1) })},
		"the inputs change":              {steps: every(time.Second, 100, func(i uint64) desiredChange { return change(i, 1, i) })},
		"the inputs change now and then": {steps: every(time.Second, 20, func(i uint64) desiredChange { return change(i, 1, i/4) }), flaps: true},
		"the resource changes at last":   {steps: append(every(time.Second, 20, flaps), step{0, change(99, 2, 1)})},
	} {
		t.Run(name, func(t *testing.T) {
			var known *flapping
			now := start
			for i, step := range test.steps {
				now = now.Add(step.after)
				if known.holds(step.change, now) {
					continue
				}
				content := func() map[string]any { return map[string]any{"a": "same", "b": map[string]any{"c": int64(i)}} }
				known = known.after(step.change, content, now).dropPrevious(now)
			}
			if known.flaps != test.flaps || test.flaps && known.field != ".b.c" {
				t.Errorf("flaps: %t, in %q, want %t", known.flaps, known.field, test.flaps)
			}
			if known.flaps && known.previous != nil {
				t.Error("a copy is kept although the field is known")
			}
			if dropped := known.dropPrevious(now.Add(changeWindow)); dropped.previous != nil {
				t.Error("a copy is kept for ever")
			}
		})
	}
}

func TestDelaysOfFlapping(t *testing.T) {
	var got []time.Duration
	start := time.Date(2025, 2, 3, 4, 5, 6, 0, time.UTC)
	known, now := (*flapping)(nil), start
	content := func() map[string]any { return nil }
	for i := range uint64(immediateChanges + 7) {
		known = known.after(change(i, 1, 1), content, now)
		if next := change(i+1, 1, 1); known.flaps {
			got = append(got, known.nextWrite().Sub(now))
			if !known.holds(next, known.nextWrite().Add(-1)) || known.holds(next, known.nextWrite()) {
				t.Errorf("change %d is not held until %v", i, known.nextWrite())
			}
			if quiet := known.quietUntil().Sub(now); quiet < flapQuietTime || quiet < got[len(got)-1] {
				t.Errorf("after change %d it is quiet after %v", i, quiet)
			}
		}
		now = known.nextWrite()
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

func TestFieldAt(t *testing.T) {
	content := map[string]any{
		"spec":     map[string]any{"containers": []any{map[string]any{"image": "a"}}},
		"metadata": map[string]any{"labels": map[string]any{"a.b/c": "d"}},
	}
	for path, want := range map[string]any{
		"spec.containers[0].image": "a", "metadata.labels[a.b/c]": "d", "spec.containers[1].image": nil, "spec.containers[x]": nil,
		"spec.containers[-1]": nil, "": nil, "spec.none": nil, "spec.containers[0].image.more": nil, "[": nil, "spec..containers": nil,
	} {
		if got, ok := fieldAt(content, path); got != want || ok != (want != nil) {
			t.Errorf("%q: got %v, %t, want %v", path, got, ok, want)
		}
	}
}

func TestWhatIsDesiredOtherwise(t *testing.T) {
	type content = map[string]any
	for name, test := range map[string]struct {
		desired, current any
		want             bool
	}{
		"the same":              {content{"a": "1"}, content{"a": "1"}, false},
		"a default":             {content{"a": "1"}, content{"a": "1", "b": "2"}, false},
		"an empty field":        {content{"a": content{}, "b": nil}, content{}, false},
		"another value":         {content{"a": "1"}, content{"a": "2"}, true},
		"one that is not there": {content{"a": "1"}, nil, true},
		"a longer list":         {[]any{"1", "2"}, []any{"1"}, true},
		"a shorter list":        {[]any{"1"}, []any{"1", "2"}, true},
		"a default in a list":   {[]any{content{"a": "1"}}, []any{content{"a": "1", "b": "2"}}, false},
		"an item differs":       {[]any{content{"a": "1"}}, []any{content{"a": "2"}}, true},
	} {
		if got := setsAnother(test.desired, test.current); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
