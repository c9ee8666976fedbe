package testing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/kinds"
	"github.com/espalier-dev/espalier/internal/resourcestate"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"
	"github.com/espalier-dev/espalier/testing/internal/objects"
	"github.com/espalier-dev/espalier/testing/internal/run"
	rtime "github.com/espalier-dev/espalier/time"
)

// maxRequests is how many requests a roll-out may take: more than any that comes to an end.
const maxRequests = 100

// RolledOutAt is the time of a [Rollout] without a Now.
var RolledOutAt = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)

// Rollout rolls a resource out in memory, so that the rows of a table can start from the result. It has the marks,
// digests, managed fields and inventory that the reconciler makes, which no test has to spell out. A preview of package
// testing/preview has the objects of a whole tree in a golden file.
//
//	deployed := rtesting.Rollout[*v1.House]{Scheme: scheme, Resource: house, Reconciler: HouseReconciler()}.Run(t)
//	...
//	"prunes the roof": {
//		Resource:      deployed.With(func(h *v1.House) { h.Spec.Roof = false }).Object(),
//		GivenObjects:  deployed.Objects(),
//		ExpectDeletes: []rtesting.DeleteRef{deployed.DeleteRef(roof)},
//	}
//
// All times and UIDs are the same in each run. The API server is that of [NodeTests]: what is rolled out has to be
// valid, and is completed. Set the Now of a row to the same time or to a later one. A component makes requests at the
// same time, in any order: with Parallel of 1 a row sees them in the order of the plan.
type Rollout[Type client.Object] struct {
	// Scheme has the types of the test. Required.
	Scheme *runtime.Scheme
	// Resource is rolled out. A resource without a UID gets one. Required.
	Resource Type
	// Reconciler rolls it out. It remembers what it did, so rows need other instances. Required.
	Reconciler reconcilers.SubReconciler[Type]
	// GivenObjects exist before, beside the namespace of the resource. Optional.
	GivenObjects []client.Object
	// GivenAPIResources are known to discovery and the REST mapper, beside the types that are defined. Optional.
	GivenAPIResources []*metav1.APIResourceList
	// Complete does to an object what the controllers of a cluster would, such as to set its status: MakeReady, or a
	// function of the test. It is called for each object after each request. Its changes count as far as the server
	// stores them. CustomResourceDefinitions are established without it. Optional.
	Complete func(obj *unstructured.Unstructured)
	// Requests is how many requests are made. Default: as many as it takes until nothing changes; the components of the
	// resource must then be ready, unless it is terminating. Set it for a state in between.
	Requests int
	// Now is the time of all requests. Default: RolledOutAt.
	Now time.Time
}

// Run makes the requests. After each it writes the status, as a root does. It fails the test if a request fails, if
// changes do not end, or if they end before the components of the resource are ready. Without a test, as in an example,
// it panics instead.
func (r Rollout[Type]) Run(t testing.TB) *RolledOut[Type] {
	if t != nil {
		t.Helper()
	}
	d, err := r.Try()
	if err != nil {
		fatal(t, err)
	}
	return d
}

// Try is [Rollout.Run] without a test: it returns an error where Run fails the test.
func (r Rollout[Type]) Try() (*RolledOut[Type], error) {
	if gotype.IsNil(r.Resource) || gotype.IsNil(r.Reconciler) || r.Scheme == nil {
		return nil, errors.New("a Rollout needs a Scheme, a Resource and a Reconciler")
	}
	if r.Now.IsZero() {
		r.Now = RolledOutAt
	}
	given := run.Given{
		Scheme: r.Scheme, GivenObjects: append(slices.Clone(r.GivenObjects), r.Resource), How: run.How{APIServer: true},
	}
	if err := given.Check(r.Resource); err != nil {
		return nil, err
	}
	c, err := r.newCluster(objects.Copy(r.Resource), r.withNamespace())
	if err != nil {
		return nil, err
	}
	resource, err := c.resource()
	for n := 1; err == nil; n++ {
		var changed bool
		if changed, err = r.request(c, resource); err != nil {
			err = fmt.Errorf("request %d of the roll-out failed: %w", n, err)
		}
		if err != nil || n == r.Requests {
			break
		}
		if r.Requests == 0 && !changed {
			err = r.unfinished(resource)
			break
		}
		if n == maxRequests {
			err = r.endless(c, resource)
		}
	}
	if err != nil {
		return nil, err
	}
	return c.rolledOut()
}

// withNamespace returns the given objects, with the namespace of the resource among them.
func (r Rollout[Type]) withNamespace() []client.Object {
	name := r.Resource.GetNamespace()
	isIt := func(obj client.Object) bool {
		kind, err := objects.KindOf(objects.Copy(obj), r.Scheme)
		return err == nil && kind.GroupKind() == kinds.Namespace && obj.GetName() == name
	}
	if name == "" || slices.ContainsFunc(r.GivenObjects, isIt) {
		return r.GivenObjects
	}
	namespace := &unstructured.Unstructured{}
	namespace.SetGroupVersionKind(kinds.Namespace.WithVersion("v1"))
	namespace.SetName(name)
	return append([]client.Object{namespace}, r.GivenObjects...)
}

// request makes one request and reports whether anything changed.
func (r Rollout[Type]) request(c *cluster[Type], resource Type) (bool, error) {
	before, writes := objects.Copy(resource), len(c.writes())
	ctx := stash.WithContext(rtime.StashNow(context.Background(), r.Now))
	ctx = withRequest(resourcestate.NewContext(ctx, &c.known), c.Config, resource)
	if _, err := r.Reconciler.Reconcile(ctx, resource); err != nil {
		return false, err
	}
	c.lastWrites = c.writes()[writes:]
	changed := len(c.lastWrites) > 0 || !equality.Semantic.DeepEqual(before, resource)
	// The resource in memory is what the next request gets.
	if err := client.IgnoreNotFound(c.unrecorded.Status().Update(ctx, resource)); err != nil {
		return false, err
	}
	completed, err := c.complete(ctx)
	c.completing = completed
	collected := c.Store.CollectGarbage()
	return changed || completed || collected, err
}

// RolledOut is the state of a cluster when a resource is rolled out. It never changes: [RolledOut.After] returns a
// changed one. As an object it is the resource.
type RolledOut[Type client.Object] struct {
	Fixture[Type]
	rollout Rollout[Type]
	// made are those of the objects that were not given.
	objects, made []client.Object
}

// Objects returns copies of all objects but the resource: first the given ones, then the others by group, kind,
// namespace and name. The others are the objects that the resource consists of, with marks, UIDs and managed fields,
// and the objects that keep its inventory unless that is in the status. Objects of types that are not in the scheme are
// unstructured.
func (d *RolledOut[Type]) Objects() []client.Object {
	return objects.CopyAll(d.objects)
}

// Made returns copies of those of [RolledOut.Objects] that were not given.
func (d *RolledOut[Type]) Made() []client.Object {
	return objects.CopyAll(d.made)
}

// Find returns a copy of the object of the kind and name of obj, nil if there is none. It is of the type of the scheme.
func (d *RolledOut[Type]) Find(obj client.Object) client.Object {
	kind, err := objects.KindOf(objects.Copy(obj), d.rollout.Scheme)
	if err != nil {
		return nil
	}
	for _, found := range d.objects {
		foundKind, err := objects.KindOf(found, d.rollout.Scheme)
		if err == nil && foundKind.GroupKind() == kind.GroupKind() &&
			found.GetNamespace() == obj.GetNamespace() && found.GetName() == obj.GetName() {
			return objects.Copy(found)
		}
	}
	return nil
}

// Created returns the object of the kind and name of obj as a create sends it: with its marks, and without the fields
// that only the API server sets. It panics if there is none.
func (d *RolledOut[Type]) Created(obj client.Object) client.Object {
	created := d.mustFind(obj)
	created.SetUID("")
	created.SetResourceVersion("")
	created.SetGeneration(0)
	created.SetCreationTimestamp(metav1.Time{})
	created.SetManagedFields(nil)
	return created
}

// ApplyRef returns the expectation that the object of the kind and name of obj is applied as it is here: with its
// marks, its UID and its content, without its status. It panics if there is none.
func (d *RolledOut[Type]) ApplyRef(obj client.Object) ApplyRef {
	return NewApplyRefFromObject(d.mustFind(obj), d.rollout.Scheme)
}

// DeleteRef returns the expectation that the object of the kind and name of obj is deleted, with the UID that it has
// here as a precondition. It panics if there is none.
func (d *RolledOut[Type]) DeleteRef(obj client.Object) DeleteRef {
	found := d.mustFind(obj)
	ref := NewDeleteRefFromObject(found, d.rollout.Scheme)
	uid := found.GetUID()
	ref.Preconditions = &metav1.Preconditions{UID: &uid}
	return ref
}

// DeleteWithResourceRef is DeleteRef for an object that is deleted because the resource is: the resource version that
// it has here is a precondition, too.
func (d *RolledOut[Type]) DeleteWithResourceRef(obj client.Object) DeleteRef {
	ref, version := d.DeleteRef(obj), d.mustFind(obj).GetResourceVersion()
	ref.Preconditions.ResourceVersion = &version
	return ref
}

func (d *RolledOut[Type]) mustFind(obj client.Object) client.Object {
	found := d.Find(obj)
	if found == nil {
		panic(fmt.Errorf("%T %s was not rolled out", obj, client.ObjectKeyFromObject(obj)))
	}
	return found
}

// otherManager is the field manager of changes by hand.
const otherManager = "others"

// After returns the state after changes by hand: work gets a client with another field manager than the reconciler's.
// It fails the test if work returns an error.
func (d *RolledOut[Type]) After(t testing.TB, work func(ctx context.Context, c client.Client) error) *RolledOut[Type] {
	c, err := d.rollout.newCluster(d.Object(), d.objects)
	if err != nil {
		fatal(t, err)
	}
	if err := work(context.Background(), client.WithFieldOwner(c.Config.Client, otherManager)); err != nil {
		fatal(t, fmt.Errorf("what is rolled out cannot be changed: %w", err))
	}
	after, err := c.rolledOut()
	if err != nil {
		fatal(t, err)
	}
	return after
}
