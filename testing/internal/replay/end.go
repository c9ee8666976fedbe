package replay

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/store"
)

// end is how a run ended.
type end struct {
	// objects are those that changed since the beginning, but for those with generated names that are gone again.
	objects map[objectKey]*object
	// effects are what was done to objects. Those with the same prefix of a generated name are one here.
	effects map[objectKey]*effects
	// broken says which calls broke the invariant so far.
	broken []string
	// demands are the names of the calls of the last request, but for reads from a cache.
	demands []string
	// externalStates are the states of all externals, as JSON.
	externalStates string
	// notAtRest says how the last request ended if the run was not at rest then; empty if it was.
	notAtRest string

	mask *mask
}

// object is what became of an object.
type object struct {
	// given is the object at the beginning, and last at the end. Both may be nil.
	given, last client.Object
	// group is the key of its effects.
	group objectKey
	// content is last, masked, once it is known.
	content map[string]any
}

// effects are what the code did to an object.
type effects struct {
	created int
	// deleted counts deletions by the control plane, too: whoever comes first does the same.
	deleted int
	// wrote is set if something else than the status of an object that was given was written.
	wrote bool
	// rewrote is set if a write of something else than the status was accepted, also if it changed nothing: it changes
	// something if somebody else wrote before.
	rewrote bool
	// overwrote is set if a change by somebody else is lost at the end, and the object is still there.
	overwrote bool
}

// objectKey names an object. Cluster is what its name ends with.
type objectKey struct {
	store.Key
	cluster string
}

func (k objectKey) String() string { return k.Key.String() + k.cluster }

func compareKeys(a, b objectKey) int {
	return cmp.Or(
		cmp.Compare(a.cluster, b.cluster),
		cmp.Compare(a.Kind.Kind, b.Kind.Kind), cmp.Compare(a.Kind.Group, b.Kind.Group),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
	)
}

// end returns how the run ended. The instance may still be alive, and with it what it started.
func (r *run) end(rested bool) *end {
	e := &end{objects: map[objectKey]*object{}, effects: map[objectKey]*effects{}}
	e.externalStates = r.readExternals()
	r.mu.Lock()
	defer r.mu.Unlock()
	e.broken = slices.Clone(r.broken)
	if !rested {
		e.notAtRest = r.notAtRest()
	}
	journal := r.journal()
	e.mask = newMask(journal)
	for c, changes := range journal {
		for _, change := range changes {
			e.addChange(objectKey{change.Key, c.suffix()}, change)
		}
	}
	for _, call := range r.calls() {
		e.addCall(call)
	}
	for _, conflict := range r.conflicts {
		alias, left := e.mask.alias(conflict.key)
		if left && e.objects[alias] != nil && conflict.lost(e.objects[alias].last) {
			e.effectsOf(e.objects[alias].group).overwrote = true
		}
	}
	e.demands = r.demands(e.mask)
	return e
}

// addChange notes what a change did to an object.
func (e *end) addChange(key objectKey, change store.Change) {
	alias, left := e.mask.alias(key)
	if !left {
		return
	}
	o, ok := e.objects[alias]
	if !ok {
		o = &object{given: change.Before, group: e.mask.group(key)}
		e.objects[alias] = o
	}
	o.last = change.After
	if change.Manager == "" && beginsDeletion(change) {
		e.effectsOf(o.group).deleted++
	}
}

// beginsDeletion reports whether a change begins the deletion of an object.
func beginsDeletion(change store.Change) bool {
	return change.Before != nil && change.Before.GetDeletionTimestamp() == nil &&
		(change.After == nil || change.After.GetDeletionTimestamp() != nil)
}

// effectsOf returns the effects of a group, which it makes if there are none.
func (e *end) effectsOf(group objectKey) *effects {
	d, ok := e.effects[group]
	if !ok {
		d = &effects{}
		e.effects[group] = d
	}
	return d
}

// addCall notes what a call did to objects.
func (e *end) addCall(call *call) {
	if call.rewrites() && call.Subresource != "status" {
		key := store.Key{Kind: call.Kind.GroupKind(), Namespace: call.Namespace, Name: call.Name}
		e.effectsOf(e.mask.group(objectKey{key, call.cluster.suffix()})).rewrote = true
	}
	for _, change := range call.changes {
		key := objectKey{change.Key, call.cluster.suffix()}
		given := e.objects[key] != nil && e.objects[key].given != nil
		d := e.effectsOf(e.mask.group(key))
		switch {
		case change.Before == nil:
			d.created++
		case call.Verb == store.Delete || call.Verb == store.DeleteCollection:
			d.deleted++
		}
		d.wrote = d.wrote || given && call.Subresource != "status"
	}
}

// demandsAtRest is demands for callers that do not hold the lock.
func (r *run) demandsAtRest(m *mask) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.demands(m)
}

// demands returns the sorted names of the calls of the last request, but for reads from a cache.
func (r *run) demands(m *mask) []string {
	var demands []string
	for _, call := range r.requests[len(r.requests)-1].calls {
		if call.demands() {
			demands = append(demands, m.call(call))
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
