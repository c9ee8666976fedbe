package reconcilers

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/gotype"
)

// childSlot is the desired child and the known children of one identity.
type childSlot[CT client.Object] struct {
	id      string
	desired CT
	known   []CT
	// err is why the child cannot be suspended.
	err error
}

var errNoIdentity = errors.New("desired child id may not be empty")

// slotsOf brings desired and known children of one identity together, sorted by identity.
func slotsOf[CT client.Object](identify func(CT) string, desired, known []CT) ([]childSlot[CT], error) {
	slots := make([]childSlot[CT], 0, max(len(desired), len(known)))
	at := make(map[string]int, cap(slots))
	slot := func(id string) (_ *childSlot[CT], fresh bool) {
		i, ok := at[id]
		if !ok {
			i = len(slots)
			at[id] = i
			slots = append(slots, childSlot[CT]{id: id})
		}
		return &slots[i], !ok
	}
	for i, child := range desired {
		if gotype.IsNil(child) {
			return nil, fmt.Errorf("desired child %d is nil", i)
		}
		id := identify(child)
		if id == "" {
			return nil, errNoIdentity
		}
		s, fresh := slot(id)
		if !fresh {
			return nil, fmt.Errorf("duplicate child id found: %s", id)
		}
		s.desired = child
	}
	for i, child := range known {
		s, _ := slot(identify(child))
		if s.known == nil {
			// Most identities have one child, which needs no list of its own.
			s.known = known[i : i+1 : i+1]
			continue
		}
		s.known = append(s.known, child)
	}
	slices.SortFunc(slots, func(a, b childSlot[CT]) int { return strings.Compare(a.id, b.id) })
	return slots, nil
}
