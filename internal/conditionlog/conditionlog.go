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
	// around is the log that has the changes which this one is told of; nil if it has them itself.
	around *Log
	// changes are those of the status of the resource in a branch.
	changes []Change
}

// Change is a change that a branch has made to the conditions of its copy of the resource.
type Change struct {
	// Summary is the type of the condition that may have changed because it sums up others. It is empty if none may.
	Summary string
	// Again makes the change in another status.
	Again func(status any)
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

// Within has l pass changes on to the log around it, which may be nil.
func (l *Log) Within(around *Log) { l.around = around }

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
	if l.NotesChanges() {
		for _, change := range branch.changes {
			l.Changed(change)
		}
	}
}

// NotesChanges reports whether changes of the conditions of the resource are to be noted.
func (l *Log) NotesChanges() bool { return l != nil && (l.outer != nil || l.around.NotesChanges()) }

// Changed notes a change of the conditions of the resource.
func (l *Log) Changed(change Change) {
	if l.around != nil {
		l.around.Changed(change)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changes = append(l.changes, change)
}

// Changes returns the changes that a branch has made, in their order.
func (l *Log) Changes() []Change {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changes
}

// Resource knows the status of the resource, for those who have only a status.
type Resource interface {
	// HasStatus reports whether a status is that of the resource, or of an object that stands for it, and no other one.
	HasStatus(status any) bool
}

// ResourceKey is the key of the [Resource] on a context.
type ResourceKey struct{}

// ResourceOf returns the resource on a context, or nil.
func ResourceOf(ctx context.Context) Resource {
	resource, _ := ctx.Value(ResourceKey{}).(Resource)
	return resource
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
