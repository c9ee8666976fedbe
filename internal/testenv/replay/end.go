package replay

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/testenv/store"
)

// end is how a run ended.
type end struct {
	// objects are those that changed since the beginning.
	objects map[objectKey]*object
	// overwritten are the objects whose change by somebody else was lost.
	overwritten []objectKey
	// demands are the names of the calls of the last request, but for reads from a cache.
	demands []string
	// externals are what is outside of the clusters, as JSON.
	externals string
	// restless says after what the run was not at rest; empty if it was.
	restless string

	mask *mask
}

// object is what became of an object.
type object struct {
	// given is the object at the beginning, and last at the end. Both may be nil.
	given, last client.Object
	// created and deleted count what the code did.
	created, deleted int
	// written is set if the code wrote something else than the status.
	written bool
	// content is last, masked, once it is known.
	content map[string]any
}

// objectKey names an object. Cluster is what its name ends with.
type objectKey struct {
	store.Key
	cluster string
}

func (k objectKey) String() string {
	name := k.Name
	if k.Namespace != "" {
		name = k.Namespace + "/" + name
	}
	return k.Kind.Kind + " " + name + k.cluster
}

func compareKeys(a, b objectKey) int {
	return cmp.Or(
		cmp.Compare(a.cluster, b.cluster),
		cmp.Compare(a.Kind.Kind, b.Kind.Kind), cmp.Compare(a.Kind.Group, b.Kind.Group),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
	)
}

// end returns how the run ended.
func (r *run) end(rested bool) *end {
	e := &end{objects: map[objectKey]*object{}, externals: r.externalStates()}
	if !rested {
		e.restless = r.restless()
	}
	journal := r.journal()
	e.mask = newMask(journal)
	for c, changes := range journal {
		for _, change := range changes {
			o := e.object(e.mask.alias(objectKey{change.Key, c.in()}), change.Before)
			o.last = change.After
		}
	}
	for _, call := range r.calls() {
		e.count(call)
	}
	last := r.requests[len(r.requests)-1]
	for _, call := range last.calls {
		if call.demands() {
			e.demands = append(e.demands, e.mask.names.Replace(call.name))
		}
	}
	slices.Sort(e.demands)
	return e
}

// object returns an object that changed, which was as given when it first did.
func (e *end) object(key objectKey, given client.Object) *object {
	o, ok := e.objects[key]
	if !ok {
		o = &object{given: given}
		e.objects[key] = o
	}
	return o
}

// count notes what a call did to objects.
func (e *end) count(call *call) {
	for _, change := range call.changes {
		key := e.mask.alias(objectKey{change.Key, call.cluster.in()})
		o := e.objects[key]
		switch {
		case change.Before == nil:
			o.created++
		case change.After == nil:
			o.deleted++
		}
		o.written = o.written || call.Subresource != "status"
		if call.overwrites() {
			e.overwritten = append(e.overwritten, key)
		}
	}
}

// restless says how many requests were not enough, and how the last went.
func (r *run) restless() string {
	last := r.requests[len(r.requests)-1]
	how := "a change"
	switch {
	case last.err != nil:
		how = strings.ReplaceAll(last.err.Error(), "\n", " ")
	case !last.moved:
		how = "a result that asks for another"
	}
	return fmt.Sprintf("%d requests, the last with: %s", len(r.requests), how)
}
