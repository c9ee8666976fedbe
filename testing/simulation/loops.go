package simulation

import "time"

const (
	// hottest is how often the operator may write an object in the same way within a minute. In virtual time, an
	// operator that causes its own next reconcile does so a thousand times in a second, and time hardly passes.
	hottest = 1000
	// warmest is hottest for writes of what is wanted of an object, between two writes of others: controllers act on
	// each of them, which takes real time.
	warmest = 100
)

// loops counts what the operator writes within a minute.
type loops struct {
	since time.Time
	// made has all writes, and wanted those since others wrote that change what is wanted of an object.
	made, wanted map[written]int
}

// writes counts a write. It returns how many of its kind there were if these are too many, and else 0.
func (l *loops) writes(w Write) int {
	if l.made == nil || w.Time.Sub(l.since) >= time.Minute {
		l.since, l.made, l.wanted = w.Time, map[written]int{}, map[written]int{}
	}
	key := newWritten(w)
	l.made[key]++
	if w.before != nil && w.after != nil && w.before.Generation != w.after.Generation {
		l.wanted[key]++
	}
	switch {
	case l.wanted[key] == warmest:
		return warmest
	case l.made[key] == hottest:
		return hottest
	}
	return 0
}

// others has others write.
func (l *loops) others() { clear(l.wanted) }
