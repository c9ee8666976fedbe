// Package pace limits how often one object is written again. It knows the times of the writes, and nothing of their
// reasons: two clients that undo each other's writes, and a desired object that is another one each time, look alike.
package pace

import (
	"slices"
	"time"
)

// Pace is what is known of the writes of one object. Five writes within five minutes are made at once. The next one
// waits until ten seconds after the last. Each further one that has to wait waits twice as long as the one before, at
// most 160 seconds, until the object was not written for five minutes. A write that comes late enough by itself does
// not wait, so one write every ten seconds goes on for ever. The zero value is no writes.
//
// Its functions return what is known afterwards, and change nothing.
type Pace struct {
	// at is the time of the last write, whether it counts or not.
	at time.Time
	// counted are the times of the last writes that count, oldest first, at most AtOnce.
	counted []time.Time
	// waited is how many writes had to wait.
	waited int
	// waits is true if a write has to wait since the last one.
	waits bool
}

const (
	// AtOnce is how many writes are made at once within Window.
	AtOnce = 5
	// Window is the time in which writes are counted, and after which they are forgotten.
	Window = 5 * time.Minute
	// Recreation is as how many writes it counts that an object is deleted and created again.
	Recreation = AtOnce

	// firstWait is the time to the next write after AtOnce. It doubles up to longestWait.
	firstWait   = 10 * time.Second
	longestWait = 160 * time.Second
	// tolerated is the part of a wait that need not be over: writes in the rhythm of a wait are not held when one of
	// them comes a little early.
	tolerated = 10
)

// Wait returns how long the next write has to wait; 0 if it may be made now.
func (p Pace) Wait(now time.Time) time.Duration {
	gap := p.gap(now)
	if left := p.at.Add(gap).Sub(now); left > gap/tolerated {
		return left
	}
	return 0
}

// gap returns the time from the last write to the next one.
func (p Pace) gap(now time.Time) time.Duration {
	switch {
	case p.IsOver(now):
		return 0
	case p.waited == 0 && (len(p.counted) < AtOnce || now.Sub(p.counted[0]) >= Window):
		return 0
	}
	return min(firstWait<<min(p.waited, 8), longestWait)
}

// IsOver reports whether the last write is so long ago that all are forgotten.
func (p Pace) IsOver(now time.Time) bool { return now.Sub(p.at) >= Window }

// Limited returns for how long another write would have to wait, if one had to before; else 0.
func (p Pace) Limited(now time.Time) time.Duration {
	if p.waited == 0 && !p.waits {
		return 0
	}
	return max(0, p.at.Add(p.gap(now)).Sub(now))
}

// Held returns what is known once a write has to wait.
func (p Pace) Held() Pace {
	p.waits = true
	return p
}

// Written returns what is known after a write that counts as that many.
func (p Pace) Written(now time.Time, times int) Pace {
	if p.IsOver(now) {
		p = Pace{}
	}
	next := Pace{at: now, counted: slices.Clone(p.counted), waited: p.waited}
	if p.waits {
		next.waited++
	}
	for range times {
		next.counted = append(next.counted, now)
	}
	next.counted = next.counted[max(0, len(next.counted)-AtOnce):]
	return next
}
