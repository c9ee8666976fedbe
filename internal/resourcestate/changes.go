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
// If another client undoes what is desired, that is written again, which may have the other client undo it again. This
// counts as such a change, too, although what is desired stays the same.
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
	// Contest is what another client keeps undoing; empty if what is desired changes. It is only there if Flaps is.
	Contest Contest
}

// Contest is what another client keeps undoing. It has no values.
type Contest struct {
	// Fields are the paths of the fields, and Managers the names of who owns them. What is not known is not there.
	Fields, Managers []string
	// IsKnown is true if there is a contest.
	IsKnown bool
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
	// Undone is the version of the object that agreed last with what is desired, which another client has undone;
	// empty if no version did.
	Undone string
	// Base is the version of the object that is written.
	Base string
}

const (
	// immediateChanges is how many changes without a reason there are within changeWindow before it is flapping. Of
	// those that follow the status, there are statusChanges times as many. So what changes every ten seconds is never
	// flapping. A change that was undone costs undoneCost, so that it is written six times at once.
	immediateChanges = 4
	statusChanges    = 5
	undoneCost       = 4
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
	return c != nil && c.Flaps && !c.isSame(change) && !c.isOther(change) && now.Before(c.NextWrite())
}

// isSame reports whether the change is the last one: its write has failed, or the cache does not show it yet.
func (c *Changes) isSame(change Change) bool {
	return change.Desired == c.change.Desired &&
		(change.Undone == "" || change.Undone == c.change.Undone || change.Base == c.change.Base)
}

// isOther reports whether what is desired is another thing for a reason, so that what was counted does not matter.
func (c *Changes) isOther(change Change) bool {
	return change.Resource != c.change.Resource ||
		c.Contest.IsKnown && change.Desired != c.change.Desired && change.Inputs != c.change.Inputs
}

// Describe says more of a change that is written.
type Describe struct {
	// Content returns the content of what is desired, or nil.
	Content func() map[string]any
	// Contest returns what another client has undone.
	Contest func() Contest
}

// After returns what is known when a change is written; c may be nil.
func (c *Changes) After(change Change, describe Describe, now time.Time) *Changes {
	switch {
	case c == nil, c.isOther(change):
		return &Changes{change: change}
	case c.isSame(change):
		return c
	}
	next := *c
	next.change = change
	isUndone := change.Desired == c.change.Desired
	if !c.Flaps && !isUndone && change.Inputs != c.change.Inputs {
		if c.previous != nil {
			next.previous = describe.Content()
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
	switch {
	case isUndone:
		next.cost += undoneCost
	case change.Status == c.change.Status:
		next.cost += statusChanges
	default:
		next.cost++
	}
	next.previous = describe.Content()
	if next.Flaps = next.cost >= immediateChanges*statusChanges; !next.Flaps {
		return &next
	}
	next.delay = firstFlapDelay
	if isUndone {
		next.Contest = describe.Contest()
		next.Contest.IsKnown = true
	} else {
		next.Field, _ = firstDifference("", c.previous, next.previous)
	}
	next.previous = nil
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
