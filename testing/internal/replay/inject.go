package replay

import (
	"context"
	"fmt"
	"runtime"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/internal/store"
)

// The field manager of the writes of Conflicts, and the annotation that they set.
const (
	somebodyElse           = "somebody-else"
	somebodyElseAnnotation = "espalier.dev/somebody-else"
)

// do makes a call to a cluster for an instance, with what goes wrong.
func (r *run) do(ctx context.Context, in *instance, c *cluster, made store.Call, do func() error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	call := &call{Call: made, cluster: c, name: made.String() + fault.In(c.name)}
	if err := r.begin(in, call); err != nil {
		return err
	}
	switch {
	case call.fault == fault.Conflicts && !r.somebodyElseWrites(ctx, call), call.fault == fault.Stale && !r.hold(call):
		r.dropFault(call)
	}
	r.noteResource(call)
	call.deletable = call.Writes() && r.hasResource()
	if call.fault == fault.UserDeletes && !r.userDeletes(ctx) {
		r.dropFault(call)
	}
	call.before, call.revision = r.state(), c.store.Revision()
	call.err = do()
	if c.store.Revision() != call.revision {
		call.changes = c.store.Changes(call.revision)
		r.check(call)
	}
	return r.finish(in, call)
}

// doExternal makes a call to something outside of the clusters. The lock is not held meanwhile: what is called may call
// a cluster.
func (r *run) doExternal(ctx context.Context, in *instance, name string, do func() error) error {
	call := &call{name: name}
	if err := r.beginExternal(ctx, in, call); err != nil {
		return err
	}
	defer in.externalCalls.Done()
	call.err = do()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.externalCalls++
	return r.finish(in, call)
}

// beginExternal is begin for a call that the instance is waited for.
func (r *run) beginExternal(ctx context.Context, in *instance, call *call) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.begin(in, call); err != nil {
		return err
	}
	call.deletable = r.hasResource()
	if call.fault == fault.UserDeletes && !r.userDeletes(ctx) {
		r.dropFault(call)
	}
	call.before = r.state()
	in.externalCalls.Add(1)
	return nil
}

// begin notes a call. With an error it is not made.
func (r *run) begin(in *instance, call *call) error {
	if in.attempts++; in.endless() {
		runtime.Goexit()
	}
	if in.dead {
		return context.Canceled
	}
	last := r.requests[len(r.requests)-1]
	r.occurrences[call.name]++
	call.occurrence = r.occurrences[call.name]
	call.before = r.state()
	call.after = call.before
	last.calls = append(last.calls, call)
	for _, f := range r.faults {
		if f.Call() == call.point() && !r.happened[f] && !r.faultless {
			r.happened[f] = true
			call.fault = f.Kind
			break
		}
	}
	switch call.fault {
	case fault.DiesBefore:
		in.die()
		return context.Canceled
	case fault.Fails:
		return call.failure()
	}
	return nil
}

// finish notes what a call led to, and returns the answer that arrives.
func (r *run) finish(in *instance, call *call) error {
	call.after = r.state()
	switch call.fault {
	case fault.DiesAfter:
		in.die()
	case fault.LosesAnswer:
		return fmt.Errorf("%s: the answer is lost: %w", call.name, context.DeadlineExceeded)
	}
	if in.dead {
		return context.Canceled
	}
	return call.err
}

// failure is an error as an API server answers it, or another if something else is called.
func (c *call) failure() error {
	err := fmt.Errorf("%s %w", c.name, fault.ErrFails)
	if c.external() {
		return err
	}
	return apierrors.NewInternalError(err)
}

// dropFault notes that the fault of a call did not happen after all.
func (r *run) dropFault(call *call) {
	for _, f := range r.faults {
		if f.Call() == call.point() && f.Kind == call.fault {
			delete(r.happened, f)
		}
	}
	call.fault = ""
}

// somebodyElseWrites writes the object of a call, and reports whether there is one.
func (r *run) somebodyElseWrites(ctx context.Context, call *call) bool {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(call.Kind)
	obj.Namespace, obj.Name = call.Namespace, call.Name
	stored := call.cluster.store
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"%d"}}}`, somebodyElseAnnotation, stored.Revision())
	somebody := stored.Client(store.ClientOptions{FieldManager: somebodyElse})
	if somebody.Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(patch))) != nil {
		return false
	}
	key := store.Key{Kind: call.Kind.GroupKind(), Namespace: call.Namespace, Name: call.Name}
	r.conflicts = append(r.conflicts, conflict{call.cluster.key(key), obj.UID})
	return true
}

// conflict is an object that somebody else has written.
type conflict struct {
	key fault.Key
	uid types.UID
}

// lost reports whether the object, as it is now, lacks what somebody else wrote. An object of the same name that was
// created later does not.
func (c conflict) lost(now client.Object) bool {
	if now == nil || now.GetUID() != c.uid {
		return false
	}
	_, kept := now.GetAnnotations()[somebodyElseAnnotation]
	return !kept
}

// hold makes the cache of a call hide the last change of the kind. It reports whether there was one that the cache had
// not shown yet.
func (r *run) hold(call *call) bool {
	if !call.cached() {
		return false
	}
	c := call.cluster
	last := int64(0)
	for _, change := range c.store.Changes(c.base) {
		if change.Key.Kind == call.kind().GroupKind {
			last = change.Revision
		}
	}
	return last > 0 && c.view.HoldAt(call.kind().GroupKind, last-1)
}
