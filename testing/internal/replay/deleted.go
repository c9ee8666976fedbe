package replay

import (
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/internal/store"
)

var errNotDeleted = errors.New("the resource cannot be deleted, or it does not come to rest then")

// noteResource notes what the requests are about when it is read for the first time. The caller holds the lock.
func (r *run) noteResource(call *call) {
	if r.resource == nil && call.Verb == store.Get && call.cluster == r.clusters[""] &&
		r.program.Request.Name != "" && call.Name == r.program.Request.Name &&
		call.Namespace == r.program.Request.Namespace {
		r.resource = &metav1.PartialObjectMetadata{}
		r.resource.SetGroupVersionKind(call.Kind)
		r.resource.Namespace, r.resource.Name = call.Namespace, call.Name
	}
}

// userDeletes has the user delete the resource, and reports whether there is one that was not deleted before.
func (r *run) userDeletes(ctx context.Context) bool {
	c := r.clusters[""]
	before := c.store.Revision()
	return r.resource != nil && c.store.Client(store.ClientOptions{}).Delete(ctx, r.resource.DeepCopy()) == nil &&
		slices.ContainsFunc(c.store.Changes(before), beginsDeletion)
}

// hasResource reports whether there is a resource that was not deleted.
func (r *run) hasResource() bool {
	if r.resource == nil {
		return false
	}
	key := store.Key{
		Kind: r.resource.GroupVersionKind().GroupKind(), Namespace: r.resource.Namespace, Name: r.resource.Name,
	}
	live := r.clusters[""].store.Object(key)
	return live != nil && live.GetDeletionTimestamp() == nil
}

// isDeletion reports whether the user deletes the resource in a run with faults.
func isDeletion(faults []fault.Fault) bool {
	return slices.ContainsFunc(faults, func(f fault.Fault) bool { return f.Kind == fault.UserDeletes })
}

// runDeleted makes a run without a fault, in which the user deletes the resource at rest. With the error there is none.
func (e *explorer) runDeleted(ctx context.Context) error {
	r, err := newRun(ctx, e.program, nil)
	if err != nil {
		return err
	}
	defer r.stop(ctx)
	if _, err := r.toRest(ctx, e.requests()); err != nil {
		return err
	}
	if !r.userDeletes(ctx) {
		return errNotDeleted
	}
	rested, err := r.toRest(ctx, e.requests())
	if err != nil {
		return err
	}
	if !rested {
		return errNotDeleted
	}
	e.deleted, e.began = r.end(true), r.began
	return nil
}
