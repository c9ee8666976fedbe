package resourcestate

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Refusals are the writes of one object manager that the API server refused as invalid. The same write of the same
// object gets the same answer, so it is not sent again: a resource with a refused child may get many requests because
// of its other children. A root keeps them with the resource.
type Refusals struct {
	mu      sync.Mutex
	byWrite map[RefusedWrite]refusal
}

// RefusedWrite identifies a write by what decides on the answer.
type RefusedWrite struct {
	// Client is the cluster and the identity. It is comparable.
	Client client.Client
	// Name is the name of the object, or the prefix of a generated one.
	Name types.NamespacedName
	// UID and Version are those of the object as it was read. They are empty for a create.
	UID     types.UID
	Version string
	// Desired is what is desired.
	Desired Desired
}

type refusal struct {
	err error
	at  time.Time
}

const (
	// RefusalLasts is how long a refusal counts. The answer may also depend on an admission policy or a webhook, whose
	// changes are not seen.
	RefusalLasts = 10 * time.Minute
	// maxRefusals bounds the refusals where something else is desired in each request.
	maxRefusals = 1024
)

var _ Evictor = (*Refusals)(nil)

// Answer returns the error with which the write was refused, or nil if it has to be sent.
func (r *Refusals) Answer(write RefusedWrite, now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.byWrite[write]
	if known.err == nil || now.Sub(known.at) >= RefusalLasts {
		return nil
	}
	return known.err
}

// Add remembers that the write was refused with err.
func (r *Refusals) Add(write RefusedWrite, err error, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byWrite == nil || len(r.byWrite) >= maxRefusals {
		r.byWrite = map[RefusedWrite]refusal{}
	}
	r.byWrite[write] = refusal{err: err, at: now}
}

// Evict implements [Evictor].
func (r *Refusals) Evict(now time.Time) (empty bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for write, known := range r.byWrite {
		if now.Sub(known.at) >= RefusalLasts {
			delete(r.byWrite, write)
		}
	}
	return len(r.byWrite) == 0
}
