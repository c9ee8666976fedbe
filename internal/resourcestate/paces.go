package resourcestate

import (
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/pace"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Paces are those of the objects that were written for a resource in the last minutes. The zero value has none.
type Paces struct {
	mu       sync.Mutex
	byObject map[PacedObject]Paced
	// limited is how many of them have a Limit.
	limited int
}

// PacedObject identifies an object also after it was created again.
type PacedObject struct {
	// Client is the cluster and the identity. It is comparable.
	Client client.Client
	Kind   schema.GroupKind
	Name   types.NamespacedName
}

// Paced is what is known of the writes of one object.
type Paced struct {
	pace.Pace
	// Limit is why writes wait; nil if none had to.
	Limit error

	resource uint64
	// isKnown is true if the object was written in the last minutes, and not before users have changed the resource.
	isKnown bool
}

var _ Evictor = (*Paces)(nil)

// Of returns what is known of an object. Resource is the digest of what users change of the resource: with another one,
// all begins anew.
func (p *Paces) Of(object PacedObject, resource uint64) Paced {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known, ok := p.byObject[object]; ok && known.resource == resource {
		return known
	}
	return Paced{resource: resource}
}

// AnyLimited reports whether there is a Limit.
func (p *Paces) AnyLimited() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.limited > 0
}

// After returns what is known after a write that counts as that many: none for a create. The first one, which has the
// reason that users have changed the resource, does not count either.
func (p Paced) After(now time.Time, times int) Paced {
	if !p.isKnown {
		times = 0
	}
	p.Pace, p.isKnown = p.Written(now, times), true
	return p
}

// Put remembers what is known of an object.
func (p *Paces) Put(object PacedObject, known Paced) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byObject == nil {
		p.byObject = map[PacedObject]Paced{}
	}
	p.count(p.byObject[object], -1)
	p.count(known, 1)
	p.byObject[object] = known
}

func (p *Paces) count(known Paced, times int) {
	if known.Limit != nil {
		p.limited += times
	}
}

// Evict implements [Evictor].
func (p *Paces) Evict(now time.Time) (empty bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for object, known := range p.byObject {
		if known.IsOver(now) {
			p.count(known, -1)
			delete(p.byObject, object)
		}
	}
	return len(p.byObject) == 0
}
