package simulation

import "time"

// hottest is how often the operator may write an object in the same way within a minute. In virtual time, an operator
// that causes its own next reconcile does so a thousand times in a second, and time hardly passes.
const hottest = 1000

// loops counts what the operator writes within a minute.
type loops struct {
	since time.Time
	made  map[written]int
}

// writes counts a write. It reports whether there were too many of its kind.
func (l *loops) writes(w Write) bool {
	if l.made == nil || w.Time.Sub(l.since) >= time.Minute {
		l.since, l.made = w.Time, map[written]int{}
	}
	key := newWritten(w)
	l.made[key]++
	return l.made[key] == hottest
}
