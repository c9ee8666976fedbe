package reconcilers

import (
	"context"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/resourcestate"
	rtime "github.com/espalier-dev/espalier/time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// refusals are the writes of one object manager that the API server refused as invalid. The same write of the same
// object gets the same answer, so it is not sent again: a resource with a refused child may get many requests because
// of its other children. A root keeps them with the resource. There are none outside of a root.
type refusals struct {
	mu      sync.Mutex
	byWrite map[refusedWrite]refusal
}

// refusedWrite identifies a write by what decides on the answer.
type refusedWrite struct {
	// client is the cluster and the identity.
	client client.Client
	// name is the name of the object, or the prefix of a generated one.
	name types.NamespacedName
	// uid and version are those of the object as it was read. They are empty for a create.
	uid     types.UID
	version string
	// desired is what is desired.
	desired desiredHash
}

type refusal struct {
	err error
	at  time.Time
}

const (
	// refusalLasts is how long a refusal counts. The answer may also depend on an admission policy or a webhook, whose
	// changes are not seen.
	refusalLasts = 10 * time.Minute
	// maxRefusals bounds the refusals where something else is desired in each request.
	maxRefusals = 1024
)

var _ resourcestate.Evictor = (*refusals)(nil)

// answer returns the error with which the write was refused, or nil if it has to be sent.
func (r *refusals) answer(write refusedWrite, now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.byWrite[write]
	if known.err == nil || now.Sub(known.at) >= refusalLasts {
		return nil
	}
	return known.err
}

func (r *refusals) add(write refusedWrite, err error, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byWrite == nil || len(r.byWrite) >= maxRefusals {
		r.byWrite = map[refusedWrite]refusal{}
	}
	r.byWrite[write] = refusal{err: err, at: now}
}

// Evict implements [resourcestate.Evictor].
func (r *refusals) Evict(now time.Time) (empty bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for write, known := range r.byWrite {
		if now.Sub(known.at) >= refusalLasts {
			delete(r.byWrite, write)
		}
	}
	return len(r.byWrite) == 0
}

// refusalsKey is the key of the refusals of an object manager in the state of a resource.
type refusalsKey struct{ manager *lastWrites }

// writeOf identifies the write of obj: the object as it was read, or what is to be created.
func (w *objectWriter[Type]) writeOf(obj client.Object, desired desiredHash) refusedWrite {
	write := refusedWrite{
		client:  w.sender,
		name:    client.ObjectKeyFromObject(obj),
		uid:     obj.GetUID(),
		version: obj.GetResourceVersion(),
		desired: desired,
	}
	if write.name.Name == "" {
		write.name.Name = obj.GetGenerateName()
	}
	return write
}

// refused returns the answer to an earlier write that was the same, if it was refused as invalid.
func (w *objectWriter[Type]) refused(ctx context.Context, write refusedWrite) error {
	if w.kept == nil || !write.desired.known {
		return nil
	}
	known, ok := resourcestate.Load[*refusals](w.kept, refusalsKey{w.manager})
	if !ok {
		return nil
	}
	return known.answer(write, rtime.RetrieveNow(ctx))
}

// noteRefusal remembers that a write was refused with err, if it was refused as invalid.
func (w *objectWriter[Type]) noteRefusal(ctx context.Context, write refusedWrite, err error) {
	if w.kept == nil || !write.desired.known || !apierrs.IsInvalid(err) {
		return
	}
	known := resourcestate.LoadOrStore(w.kept, refusalsKey{w.manager}, func() *refusals { return &refusals{} })
	known.add(write, err, rtime.RetrieveNow(ctx))
}
