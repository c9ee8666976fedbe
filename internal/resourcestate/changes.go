package resourcestate

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Changes are what is known of the changes of what is desired of one object. A change has a reason if the resource
// changed, or an object that it tracks, or the status of another child. A desired object that depends on the time, on
// random values or on the order of a map changes without a reason. Each such change is a write, whose event brings the
// resource back, which writes the next one.
//
// A change of the status of the resource is half a reason: the child of a canary follows a weight in the status, but a
// tree can also write into the status what it has by chance. So more of such changes are written at once.
//
// The first changes are written at once. If there are too many, what is desired is flapping. It is then written after a
// delay, which doubles with each write. It is flapping until it stays the same for as long as the delay, and for a
// quiet time at least.
type Changes struct {
	// change is the change that was written last.
	change Change
	// cost is that of the changes in a row that had no full reason, since is the time of the first of them, and last
	// the time of the last.
	cost        int
	since, last time.Time
	// delay is the time from last to the next write; 0 unless it flaps.
	delay time.Duration
	// previous is the content of what was desired last. It is kept only while changes without a reason are counted.
	previous map[string]any
	// Flaps reports whether what is desired is flapping. Field is then the path of the first field that changed.
	Flaps bool
	Field string
}

// Change is what is desired, and what it is made of.
type Change struct {
	Desired Desired
	// Resource is the digest of the generation, the labels and the annotations of the resource.
	Resource uint64
	// Inputs is the digest of what else was read, as far as it is known.
	Inputs uint64
	// Status is the digest of the status of the resource when the object is made.
	Status uint64
}

const (
	// immediateChanges is how many changes without a reason there are within changeWindow before it is flapping. Of
	// those that follow the status, there are statusChanges times as many. So what changes every ten seconds is never
	// flapping.
	immediateChanges = 4
	statusChanges    = 5
	changeWindow     = 30 * time.Second
	// firstFlapDelay is the time to the next write once it is flapping. It doubles up to longestFlapDelay.
	firstFlapDelay   = 20 * time.Second
	longestFlapDelay = 8 * firstFlapDelay
	// flapQuietTime is how long it has to stay the same at least to be no longer flapping.
	flapQuietTime = time.Minute
)

// NextWrite is the time until which no change is written.
func (c *Changes) NextWrite() time.Time { return c.last.Add(c.delay) }

// QuietUntil is until when it has to stay the same to be no longer flapping.
func (c *Changes) QuietUntil() time.Time {
	quiet, next := c.last.Add(flapQuietTime), c.NextWrite()
	if next.After(quiet) {
		return next
	}
	return quiet
}

// Holds reports whether the change has to wait until NextWrite.
func (c *Changes) Holds(change Change, now time.Time) bool {
	return c != nil && c.Flaps && change.Desired != c.change.Desired && change.Resource == c.change.Resource &&
		now.Before(c.NextWrite())
}

// After returns what is known when a change is written. Content returns the content of what is desired, or nil; c may
// be nil.
func (c *Changes) After(change Change, content func() map[string]any, now time.Time) *Changes {
	switch {
	case c == nil, change.Resource != c.change.Resource:
		return &Changes{change: change}
	case change.Desired == c.change.Desired:
		return c
	}
	next := *c
	next.change = change
	if !c.Flaps && change.Inputs != c.change.Inputs {
		if c.previous != nil {
			next.previous = content()
		}
		return &next
	}
	next.last = now
	if c.Flaps {
		next.delay = min(2*c.delay, longestFlapDelay)
		return &next
	}
	if now.Sub(c.since) >= changeWindow {
		next.cost, next.since = 0, now
	}
	if change.Status == c.change.Status {
		next.cost += statusChanges
	} else {
		next.cost++
	}
	next.previous = content()
	if next.Flaps = next.cost >= immediateChanges*statusChanges; next.Flaps {
		next.delay = firstFlapDelay
		next.Field, _ = firstDifference("", c.previous, next.previous)
		next.previous = nil
	}
	return &next
}

// dropPrevious returns c without the content that was desired, which is of no use once its changes are not counted any
// more.
func (c *Changes) dropPrevious(now time.Time) *Changes {
	if c.previous == nil || now.Sub(c.since) < changeWindow {
		return c
	}
	next := *c
	next.previous = nil
	return &next
}

// firstDifference returns the path of the first field in which two contents differ, such as .spec.containers[0].image,
// in the order of the names. It is false if they do not differ. Path is the path of a and b themselves. A path never
// has a value in it.
func firstDifference(path string, a, b any) (string, bool) {
	switch a := a.(type) {
	case map[string]any:
		if b, ok := b.(map[string]any); ok {
			return firstDifferentMember(path, a, b)
		}
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return path, true
		}
		for i := range a {
			if found, ok := firstDifference(fmt.Sprintf("%s[%d]", path, i), a[i], b[i]); ok {
				return found, true
			}
		}
		return "", false
	}
	return path, !reflect.DeepEqual(a, b)
}

func firstDifferentMember(path string, a, b map[string]any) (string, bool) {
	names := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		member := path + "." + name
		if strings.ContainsAny(name, "./") {
			member = path + "[" + name + "]"
		}
		valueOfA, inA := a[name]
		valueOfB, inB := b[name]
		if inA != inB {
			return member, true
		}
		if found, ok := firstDifference(member, valueOfA, valueOfB); ok {
			return found, true
		}
	}
	return "", false
}
