package sharder

import (
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Assignment says which shard of a ring an object belongs to, at a time.
type Assignment struct {
	ring   Ring
	states map[string]State
	hashes hashes
}

// NewAssignment returns the assignment by the Leases of a ring's shards.
func NewAssignment(ring Ring, leases []coordinationv1.Lease, now time.Time) Assignment {
	a := Assignment{ring: ring, states: map[string]State{}}
	var available []string
	for i := range leases {
		name := leases[i].Name
		a.states[name] = StateOf(&leases[i], now)
		if a.states[name].available() {
			available = append(available, name)
		}
	}
	a.hashes = newHashes(available...)
	return a
}

// Admit returns the shard that an object is labelled with at its admission, "" if it is left as it is: it is assigned
// already, it has no controller, or there is no shard. An error refuses the object.
func (a Assignment) Admit(resource metav1.GroupResource, obj *metav1.PartialObjectMetadata) (string, error) {
	if obj.Labels[ShardLabel(a.ring.Name)] != "" {
		return "", nil
	}
	as := a.ring.roleOf(resource)
	if as == noRole {
		return "", fmt.Errorf("ControllerRing %s has no resource %s", a.ring.Name, resource.String())
	}
	key, err := keyOf(obj, as)
	if err != nil || key == "" {
		return "", err
	}
	return a.hashes.shard(key), nil
}

// move is what a sync does to an object.
type move string

const (
	// stay leaves the object alone.
	stay move = ""
	// drain asks the shard to give the object back, by a label.
	drain move = "drain"
	// reassign takes the labels off. The webhook sees the patch, and assigns the object.
	reassign move = "reassign"
)

// sync returns what a sync does to an object. The object of a main resource is drained if its shard is available. That
// of a controlled resource is reassigned at once.
func (a Assignment) sync(obj *metav1.PartialObjectMetadata, as role) (move, error) {
	key, err := keyOf(obj, as)
	if err != nil || key == "" {
		return stay, err
	}
	wanted, current := a.hashes.shard(key), obj.Labels[ShardLabel(a.ring.Name)]
	switch {
	case wanted == "" || wanted == current:
		return stay, nil
	case as == mainRole && a.states[current].available():
		return drain, nil
	}
	return reassign, nil
}
