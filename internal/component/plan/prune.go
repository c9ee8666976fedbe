package plan

import (
	"github.com/espalier-dev/espalier/apis"

	"k8s.io/apimachinery/pkg/types"
)

// prunable decides about the objects that the component drops, whether or not it is their turn.
func (m *maker) prunable() {
	if len(m.undesired) == 0 {
		return
	}
	for _, it := range m.undesired {
		policy := it.record.DeletePolicy
		m.assessRemoval(it, policy == apis.DeleteOrphan || policy == apis.DeleteOrphanOnApply)
	}
	m.tally()
}

// release lets objects go, as far as the waves of what is desired are concerned.
func (m *maker) release(items []*item) {
	for _, it := range items {
		if it.released || it.twin || it.state == stateGone {
			continue
		}
		it.released = true
		it.kind.unreleased--
		if it.space != nil {
			it.space.unreleased--
		}
	}
}

// obstructed tells whether a wave has to wait for what is to be pruned before it. What will not go before the wave is written, or
// not until others give it up, is not waited for.
func (m *maker) obstructed(before []*item) bool {
	for _, it := range before {
		if it.state == stateGone || it.state == stateBlocked || !it.released {
			continue
		}
		if !m.detained(it) {
			return true
		}
	}
	return false
}

// alias is what two keys of one object have in common: an object may be served under two groups, and a type may change its
// scope. Where that is the group, or whether there is a namespace, it is left out.
type alias struct {
	group, kind, namespace, name string
	namespaced                   bool
}

func byGroup(k Key) alias {
	return alias{kind: k.Kind, namespace: k.Namespace, name: k.Name}
}

func byScope(k Key, namespaced bool) alias {
	return alias{group: k.Group, kind: k.Kind, name: k.Name, namespaced: namespaced}
}

// twins finds records of objects that are desired under another key. If it is known to be the same object, the record is dropped: to
// delete it would be to delete what is desired. While that is not known, the object stays.
func (m *maker) twins() {
	desired := map[types.UID]bool{}
	for _, it := range m.undesired {
		if it.state != stateGone && it.seen.Presence == Present {
			desired[it.seen.UID] = false
		}
	}
	if len(desired) == 0 {
		return
	}
	missing := map[alias]bool{}
	for i := range m.items {
		it := &m.items[i]
		switch {
		case it.desired == nil:
		case it.record.Phase == apis.PhaseCompleted || purging(it.record.Phase):
		case it.seen.Presence != Present:
			missing[byGroup(it.key)] = true
			missing[byScope(it.key, it.key.Namespace != "")] = true
		default:
			if _, shared := desired[it.seen.UID]; shared {
				desired[it.seen.UID] = true
			}
		}
	}
	for _, it := range m.undesired {
		if it.seen.Presence == Present && desired[it.seen.UID] {
			it.state = stateGone
		}
		it.twin = missing[byGroup(it.key)] || missing[byScope(it.key, it.key.Namespace == "")]
	}
}
