// Package conditionlog notes which conditions are set in a request.
package conditionlog

import (
	"context"
	"sync"
)

// Log has the conditions that were set in a request, and those that are not needed. The zero value notes nothing until
// [Log.Start]. It is safe for concurrent use.
type Log struct {
	mu sync.Mutex
	// needed is true for a type that was set last, and false for one that was said not to be needed last.
	needed map[string]bool

	// outer is the log that this one is a branch of; nil for none.
	outer *Log
	// marks are the calls that have set a condition which sums up others, in a branch.
	marks []mark
}

// mark is one such call. Again makes it for another status.
type mark struct {
	summary string
	status  any
	again   func(status any)
}

// Key is the key of the [Log] on a context, a *Log.
type Key struct{}

// Of returns the log on a context, or nil. The methods of a nil Log do nothing.
func Of(ctx context.Context) *Log {
	log, _ := ctx.Value(Key{}).(*Log)
	return log
}

// Start forgets what was noted, and notes from then on.
func (l *Log) Start() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.needed = map[string]bool{}
}

// Branch has l note what one branch of several sets: it knows what outer knows, which must not change until
// [Log.Merge]. Outer may be nil.
func (l *Log) Branch(outer *Log) {
	if outer == nil {
		outer = &Log{}
	}
	l.outer = outer
	outer.mu.Lock()
	defer outer.mu.Unlock()
	if outer.needed != nil {
		l.needed = map[string]bool{}
	}
}

// Merge notes what a branch of l has noted.
func (l *Log) Merge(branch *Log) {
	if l == nil {
		return
	}
	branch.mu.Lock()
	defer branch.mu.Unlock()
	for conditionType, needed := range branch.needed {
		l.note(conditionType, needed)
	}
	if l.outer != nil {
		l.marks = append(l.marks, branch.marks...)
	}
}

// Marks reports whether the calls that set a condition which sums up others are to be noted.
func (l *Log) Marks() bool { return l != nil && l.outer != nil }

// Marked notes such a call, which has changed status. Again makes it for another status.
func (l *Log) Marked(summary string, status any, again func(status any)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.marks = append(l.marks, mark{summary, status, again})
}

// MarkAgain makes the calls that a branch has noted of some statuses for another one. It returns the types of the
// conditions that sum up others.
func (l *Log) MarkAgain(of func(status any) bool, other any) []string {
	if l == nil {
		return nil
	}
	var summaries []string
	for _, m := range l.marks {
		if of(m.status) {
			m.again(other)
			summaries = append(summaries, m.summary)
		}
	}
	return summaries
}

// Set notes that the condition of that type was set.
func (l *Log) Set(conditionType string) { l.note(conditionType, true) }

// NotNeeded notes that there is to be no condition of that type.
func (l *Log) NotNeeded(conditionType string) { l.note(conditionType, false) }

func (l *Log) note(conditionType string, needed bool) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.needed != nil {
		l.needed[conditionType] = needed
	}
}

// Of returns what was noted of a condition: known is false if nothing was.
func (l *Log) Of(conditionType string) (needed, known bool) {
	if l == nil {
		return false, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	needed, known = l.needed[conditionType]
	if !known {
		return l.outer.Of(conditionType)
	}
	return needed, known
}
