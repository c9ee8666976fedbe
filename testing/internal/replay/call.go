package replay

import (
	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/internal/store"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// call is a call of a run.
type call struct {
	store.Call
	// cluster is nil for a call to something outside of the clusters.
	cluster *cluster

	name       string
	occurrence int
	// before and after are the states of the world around the call.
	before, after state
	// revision is that of the cluster before the call.
	revision int64
	// changes are those that the call made in its cluster.
	changes []store.Change
	// err is the answer of the cluster, not that of a fault.
	err error
	// deletable is set if the user could delete the resource just before the call, which is work for somebody else.
	deletable bool
	// fault is what went wrong; empty if nothing did.
	fault fault.Kind
}

// state tells two moments of a run apart, but for what the instance has in memory and the time.
type state struct {
	// revision is the sum of those of all clusters.
	revision int64
	// externalCalls is how many were made.
	externalCalls int
}

// point is the call as faults see it.
func (c *call) point() fault.Call { return fault.Call{Path: c.name, N: c.occurrence} }

// effective reports whether the call had an effect.
func (c *call) effective() bool { return len(c.changes) > 0 || c.external() && c.after != c.before }

func (c *call) external() bool { return c.cluster == nil }

// cached reports whether the call is a read that a cache answers.
func (c *call) cached() bool {
	return !c.external() && !c.Live && (c.Verb == store.Get || c.Verb == store.List)
}

// demands reports whether the call is work for an API server or for an external: a write, a live read, or a call with
// World.Do.
func (c *call) demands() bool { return c.external() || c.Live || c.Writes() }

// rewrites reports whether the call writes an object that existed.
func (c *call) rewrites() bool {
	switch c.Verb {
	case store.Update, store.Patch, store.Apply, store.Delete:
	default:
		return false
	}
	if c.external() || c.DryRun || c.err != nil {
		return false
	}
	return len(c.changes) == 0 || c.changes[0].Before != nil
}

func (c *call) kind() clusterKind { return clusterKind{c.cluster, c.Kind.GroupKind()} }

// clusterKind is a kind of a cluster.
type clusterKind struct {
	cluster *cluster
	schema.GroupKind
}

// names are those of calls.
func names(calls []*call) []string {
	var all []string
	for _, c := range calls {
		all = append(all, c.name)
	}
	return all
}
