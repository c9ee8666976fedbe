package replay

import (
	"fmt"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/internal/store"
)

// end is how a run ended.
type end struct {
	fault.End
	// broken says which calls broke the invariant so far.
	broken []string
	// demands are the names of the calls of the last request, but for reads from a cache.
	demands []string
}

// end returns how the run ended. The instance may still be alive, and with it what it started.
func (r *run) end(rested bool) *end {
	externals := r.readExternals()
	r.mu.Lock()
	defer r.mu.Unlock()
	journal := r.journal()
	e := &end{broken: slices.Clone(r.broken), End: fault.End{
		Objects: map[fault.Key]*fault.Changed{}, Effects: map[fault.Key]*fault.Effects{},
		Externals: externals, Names: namesOf(journal),
	}}
	if !rested {
		e.NotAtRest = r.notAtRest()
	}
	for c, changes := range journal {
		for _, change := range changes {
			e.addChange(c, change)
		}
	}
	for _, call := range r.calls() {
		e.addCall(call)
	}
	for _, conflict := range r.conflicts {
		alias, left := e.Names.Alias(conflict.key)
		if o := e.Objects[alias]; left && o != nil && conflict.lost(clientObject(o.Last)) {
			e.EffectsOf(o.Group).Overwrote = true
		}
	}
	e.demands = r.demands(e.Names)
	return e
}

// addChange notes what a change did to an object.
func (e *end) addChange(c *cluster, change store.Change) {
	key := c.key(change.Key)
	alias, left := e.Names.Alias(key)
	if !left {
		return
	}
	o, ok := e.Objects[alias]
	if !ok {
		o = &fault.Changed{Given: c.object(change.Before, e.Names), Group: e.Names.Group(key)}
		e.Objects[alias] = o
	}
	o.Last = c.object(change.After, e.Names)
	if change.Manager == "" && beginsDeletion(change) {
		e.EffectsOf(o.Group).Deleted++
	}
}

// beginsDeletion reports whether a change begins the deletion of an object.
func beginsDeletion(change store.Change) bool {
	return change.Before != nil && change.Before.GetDeletionTimestamp() == nil &&
		(change.After == nil || change.After.GetDeletionTimestamp() != nil)
}

// addCall notes what a call did to objects.
func (e *end) addCall(call *call) {
	if call.rewrites() && call.Subresource != "status" {
		key := store.Key{Kind: call.Kind.GroupKind(), Namespace: call.Namespace, Name: call.Name}
		e.EffectsOf(e.Names.Group(call.cluster.key(key))).Rewrote = true
	}
	for _, change := range call.changes {
		key := call.cluster.key(change.Key)
		given := e.Objects[key] != nil && e.Objects[key].Given != nil
		if alias, left := e.Names.Alias(key); left && change.Before != nil && change.After != nil {
			e.Objects[alias].Writes = append(e.Objects[alias].Writes, fault.Write{
				Before: call.cluster.object(change.Before, e.Names), After: call.cluster.object(change.After, e.Names),
			})
		}
		d := e.EffectsOf(e.Names.Group(key))
		switch {
		case change.Before == nil:
			d.Created++
		case call.Verb == store.Delete || call.Verb == store.DeleteCollection:
			d.Deleted++
		}
		d.Wrote = d.Wrote || given && call.Subresource != "status"
	}
}

// demandsAtRest is demands for callers that do not hold the lock.
func (r *run) demandsAtRest(names *fault.Names) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.demands(names)
}

// demands returns the sorted names of the calls of the last request, but for reads from a cache.
func (r *run) demands(names *fault.Names) []string {
	var demands []string
	for _, call := range r.requests[len(r.requests)-1].calls {
		if call.demands() {
			demands = append(demands, names.Call(call.name, call.cluster.named()))
		}
	}
	slices.Sort(demands)
	return demands
}

// notAtRest says how the last request ended.
func (r *run) notAtRest() string {
	last := r.requests[len(r.requests)-1]
	how := "a change"
	switch {
	case last.err != nil:
		how = "an error: " + strings.ReplaceAll(last.err.Error(), "\n", " ")
	case !last.moved:
		how = "the result that there is more to do"
	}
	return fmt.Sprintf("request %d ends with %s", len(r.requests), how)
}
