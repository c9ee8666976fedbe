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
	return needed, known
}
