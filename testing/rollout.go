package testing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"
	rtime "github.com/espalier-dev/espalier/time"
)

// maxPasses is how many requests a roll-out may take: more than any that comes to an end.
const maxPasses = 100

// RolledOutAt is the time of a [Rollout] that has none of its own.
var RolledOutAt = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)

// Rollout rolls a resource out in memory, for the rows of a table to start from there. What comes of it is as the reconciler makes it:
// marks, digests, managed fields and inventory are in it, and no test has to spell them out.
//
//	deployed := rtesting.Rollout[*v1.House]{Scheme: scheme, Resource: house, Reconciler: HouseReconciler()}.Run(t)
//	...
//	"prunes the roof": {
//		Resource:      deployed.With(func(h *v1.House) { h.Spec.Roof = false }).Object(),
//		GivenObjects:  deployed.Objects(),
//		ExpectDeletes: []rtesting.DeleteRef{deployed.DeleteRef(roof)},
//	}
//
// All times are the same each time it runs, and so are the UIDs, see [AssignUIDs]. For a row, it is the same time or a later one: set
// Now of the case. A ComponentReconciler makes requests at the same time, in any order: with Parallel of 1 a row sees them in that of
// the plan.
type Rollout[Type client.Object] struct {
	// Scheme has the types of the test. Required.
	Scheme *runtime.Scheme
	// Resource is what is rolled out. One without a UID gets one. Required.
	Resource Type
	// Reconciler rolls it out. It remembers what it did, so rows need an instance of their own. Required.
	Reconciler reconcilers.SubReconciler[Type]
	// GivenObjects are there before, beside the namespace of the resource. Optional.
	GivenObjects []client.Object
	// GivenAPIResources are those that discovery and the REST mapper know, beside the types that are defined. Optional.
	GivenAPIResources []*metav1.APIResourceList
	// Complete does to an object what the controllers of a cluster would, such as to set its status. It is called for each
	// object after each request. CustomResourceDefinitions are established without it. Optional.
	Complete func(obj *unstructured.Unstructured)
	// Passes is how many requests are made. Default: as many as it takes until nothing changes.
	Passes int
	// Now is the time of all requests. Default: RolledOutAt.
	Now time.Time
}

// Run makes the requests; after each, the status is written as a root does. It fails the test if a request fails, or if things
// do not come to an end; without a test, in an example, it panics.
func (r Rollout[Type]) Run(t testing.TB) *RolledOut[Type] {
	if isNil(r.Resource) || isNil(r.Reconciler) || r.Scheme == nil {
		fatal(t, errors.New("a Rollout needs a Scheme, a Resource and a Reconciler"))
	}
	if r.Now.IsZero() {
		r.Now = RolledOutAt
	}
	site := r.site(copyOf(r.Resource), r.withNamespace())
	defer site.release(t)
	resource, err := site.resource()
	for pass := 1; err == nil; pass++ {
		var changed bool
		if changed, err = r.pass(site, resource); err != nil {
			err = fmt.Errorf("request %d of the roll-out failed: %w", pass, err)
		}
		if pass == r.Passes || r.Passes == 0 && !changed {
			break
		}
		if pass == maxPasses {
			err = fmt.Errorf("the roll-out has not come to an end after %d requests", maxPasses)
		}
	}
	if err != nil {
		fatal(t, err)
	}
	return site.rolledOut(t)
}

// fatal ends the test. Without one, as in an example, it panics.
func fatal(t testing.TB, err error) {
	if t == nil {
		panic(err)
	}
	t.Helper()
	t.Fatal(err)
}

// withNamespace returns the given objects, with the namespace of the resource among them.
func (r Rollout[Type]) withNamespace() []client.Object {
	name := r.Resource.GetNamespace()
	isIt := func(obj client.Object) bool {
		kind, err := kindOf(realObject(obj), r.Scheme)
		return err == nil && kind.Group == "" && kind.Kind == "Namespace" && obj.GetName() == name
	}
	if name == "" || slices.ContainsFunc(r.GivenObjects, isIt) {
		return r.GivenObjects
	}
	namespace := &unstructured.Unstructured{}
	namespace.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	namespace.SetName(name)
	return append([]client.Object{namespace}, r.GivenObjects...)
}

// pass makes one request and tells whether anything changed.
func (r Rollout[Type]) pass(site *site[Type], resource Type) (bool, error) {
	before, writes := copyOf(resource), site.writes()
	ctx := stash.WithContext(rtime.StashNow(context.Background(), r.Now))
	ctx = withRequest(ctx, site.config, resource)
	if _, err := r.Reconciler.Reconcile(ctx, resource); err != nil {
		return false, err
	}
	changed := site.writes() != writes || !equality.Semantic.DeepEqual(before, resource)
	if err := site.storeStatus(ctx, resource); err != nil {
		return false, err
	}
	completed, err := site.complete(ctx, r.Complete)
	return changed || completed, err
}

// RolledOut is what there is once a resource is rolled out. It never changes: [RolledOut.After] returns a changed one. As an object it
// is the resource.
type RolledOut[Type client.Object] struct {
	Fixture[Type]
	rollout Rollout[Type]
	objects []client.Object
}

// Objects returns copies of all objects but the resource, those given first, and the others by group, kind, namespace and name: what the resource consists of,
// with marks, UIDs and managed fields; the objects that keep its inventory, if it is not in the status; and what was given. Those
// that are not in the scheme are unstructured.
func (d *RolledOut[Type]) Objects() []client.Object {
	return realObjects(d.objects)
}

// Find returns a copy of the object of the kind and name of obj, nil if there is none. It is of the type of the scheme.
func (d *RolledOut[Type]) Find(obj client.Object) client.Object {
	kind, err := kindOf(realObject(obj), d.rollout.Scheme)
	if err != nil {
		return nil
	}
	for _, found := range d.objects {
		foundKind, err := kindOf(found, d.rollout.Scheme)
		if err == nil && foundKind.GroupKind() == kind.GroupKind() &&
			found.GetNamespace() == obj.GetNamespace() && found.GetName() == obj.GetName() {
			return realObject(found)
		}
	}
	return nil
}

// Created returns the object of the kind and name of obj as it is sent to be created: with its marks, and without what only the
// API server sets. It panics if there is none.
func (d *RolledOut[Type]) Created(obj client.Object) client.Object {
	created := d.mustFind(obj)
	created.SetUID("")
	created.SetResourceVersion("")
	created.SetGeneration(0)
	created.SetCreationTimestamp(metav1.Time{})
	created.SetManagedFields(nil)
	return created
}

// ApplyRef returns the expectation that the object of the kind and name of obj is applied as it is here: with its marks, its UID, and
// its content but for its status. It panics if there is none.
func (d *RolledOut[Type]) ApplyRef(obj client.Object) ApplyRef {
	return NewApplyRefFromObject(d.mustFind(obj), d.rollout.Scheme)
}

// DeleteRef returns the expectation that the object of the kind and name of obj is deleted, provided that it has the UID that it has
// here. It panics if there is none.
func (d *RolledOut[Type]) DeleteRef(obj client.Object) DeleteRef {
	found := d.mustFind(obj)
	ref := NewDeleteRefFromObject(found, d.rollout.Scheme)
	uid := found.GetUID()
	ref.Preconditions = &metav1.Preconditions{UID: &uid}
	return ref
}

func (d *RolledOut[Type]) mustFind(obj client.Object) client.Object {
	found := d.Find(obj)
	if found == nil {
		panic(fmt.Errorf("%T %s was not rolled out", obj, client.ObjectKeyFromObject(obj)))
	}
	return found
}

// somebody is the field manager of those who work in a cluster.
const somebody = "somebody"

// After returns what there is once somebody has worked in the cluster, with a client whose writes are not the reconciler's: objects
// that were changed by hand, or deleted, or added. It fails the test if work returns an error.
func (d *RolledOut[Type]) After(t testing.TB, work func(ctx context.Context, c client.Client) error) *RolledOut[Type] {
	site := d.rollout.site(d.Object(), d.objects)
	defer site.release(t)
	if err := work(context.Background(), client.WithFieldOwner(site.config.Client, somebody)); err != nil {
		fatal(t, fmt.Errorf("what is rolled out cannot be changed: %w", err))
	}
	return site.rolledOut(t)
}

// AssignUIDs returns a reaction that gives a UID to each object that is created, as an API server does: made of kind, namespace and
// name, and of a number for one that is created anew. Make a new one for each case.
func AssignUIDs() ReactionFunc {
	given := map[types.UID]int{}
	var lock sync.Mutex
	return func(action Action) (bool, runtime.Object, error) {
		create, ok := action.(CreateAction)
		if !ok || action.GetVerb() != "create" || action.GetSubresource() != "" || isDryRun(dryRunOf(action)) {
			return false, nil, nil
		}
		obj, err := meta.Accessor(create.GetObject())
		if err != nil || obj.GetUID() != "" {
			return false, nil, nil
		}
		lock.Lock()
		defer lock.Unlock()
		uid := uidOf(action.GetResource().Resource, obj)
		given[uid]++
		if n := given[uid]; n > 1 {
			uid += types.UID(fmt.Sprintf(".%d", n))
		}
		obj.SetUID(uid)
		return false, nil, nil
	}
}

// uidOf makes a UID that may be the value of a label.
func uidOf(kind string, obj metav1.Object) types.UID {
	parts := []string{kind, obj.GetNamespace(), obj.GetName()}
	return types.UID(strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "."))
}

// site is the cluster in memory of a roll-out.
type site[Type client.Object] struct {
	rollout Rollout[Type]
	expect  *ExpectConfig
	config  reconcilers.Config
	// key is where the resource is, seen where all other objects are or were, the first of them given.
	key   placed
	seen  []placed
	given int
}

// placed says where an object is.
type placed struct {
	schema.GroupVersionKind
	types.NamespacedName
}

func (r Rollout[Type]) site(resource Type, objects []client.Object) *site[Type] {
	s := &site[Type]{rollout: r}
	if resource.GetUID() == "" {
		if kind, err := kindOf(resource, r.Scheme); err == nil {
			resource.SetUID(uidOf(kind.Kind, resource))
		}
	}
	s.expect = &ExpectConfig{
		Scheme:                 r.Scheme,
		GivenObjects:           withLast(objects, resource),
		GivenAPIResources:      r.GivenAPIResources,
		StatusSubResourceTypes: []client.Object{resource},
		WithReactors:           []ReactionFunc{AssignUIDs()},
		WithClientBuilder:      (*fake.ClientBuilder).WithReturnManagedFields,
	}
	s.config = s.expect.Config()
	s.config.APIReader = s.config.Client
	s.key = s.placeOf(resource)
	for _, obj := range objects {
		s.meet(s.placeOf(realObject(obj)))
	}
	s.given = len(s.seen)
	return s
}

func (s *site[Type]) placeOf(obj client.Object) placed {
	kind, err := kindOf(obj, s.rollout.Scheme)
	if err != nil {
		// What is of no kind could not have been given.
		panic(err)
	}
	return placed{kind, client.ObjectKeyFromObject(obj)}
}

func (s *site[Type]) meet(at placed) {
	if at != s.key && !slices.Contains(s.seen, at) {
		s.seen = append(s.seen, at)
	}
}

// recorder is what the client records to.
func (s *site[Type]) recorder() *recorder { return s.expect.made().client }

// writes counts the writes that were made.
func (s *site[Type]) writes() int { return len(s.expect.made().journal.comparable(nil)) }

func (s *site[Type]) release(t testing.TB) {
	if err := s.expect.Release(context.Background()); err != nil {
		fatal(t, fmt.Errorf("error during clean up: %w", err))
	}
}

// resource returns the resource as it is stored.
func (s *site[Type]) resource() (Type, error) {
	resource := copyOf(s.rollout.Resource)
	err := s.recorder().client.Get(context.Background(), s.key.NamespacedName, resource)
	return resource, err
}

// storeStatus does what a root does after a request. The resource in memory stays what the next request gets.
func (s *site[Type]) storeStatus(ctx context.Context, resource Type) error {
	err := s.recorder().client.Status().Update(ctx, resource)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// complete lets controllers complete all objects, and tells whether they did anything.
func (s *site[Type]) complete(ctx context.Context, complete func(*unstructured.Unstructured)) (bool, error) {
	changed := false
	for _, at := range s.places() {
		obj, err := s.read(ctx, at)
		if err != nil || obj == nil {
			return changed, err
		}
		before := obj.DeepCopy()
		establish(obj)
		if complete != nil {
			complete(obj)
		}
		if equality.Semantic.DeepEqual(before.Object, obj.Object) {
			continue
		}
		changed = true
		c := client.WithFieldOwner(s.recorder().client, "cluster")
		// A status of its own is not written by an update, and the rest is not by one of the status.
		withStatus := obj.DeepCopy()
		if err := c.Update(ctx, obj); err != nil {
			return changed, err
		}
		withStatus.SetResourceVersion(obj.GetResourceVersion())
		if err := client.IgnoreNotFound(c.Status().Update(ctx, withStatus)); err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// places are where there may be objects.
func (s *site[Type]) places() []placed {
	meet := func(action Action, name string) {
		r := action.GetResource()
		s.meet(placed{r.GroupVersion().WithKind(r.Resource), types.NamespacedName{Namespace: action.GetNamespace(), Name: name}})
	}
	r := s.recorder()
	for _, action := range r.CreateActions {
		if !isDryRun(dryRunOf(action)) {
			meet(action, nameOf(action))
		}
	}
	for _, action := range r.ApplyActions {
		meet(action, nameOf(action))
	}
	// What is created at the same time is created in any order.
	slices.SortFunc(s.seen[s.given:], func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return s.seen
}

// read returns nil if there is no such object.
func (s *site[Type]) read(ctx context.Context, at placed) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(at.GroupVersionKind)
	if err := s.recorder().client.Get(ctx, at.NamespacedName, obj); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return obj, nil
}

// rolledOut returns what there is.
func (s *site[Type]) rolledOut(t testing.TB) *RolledOut[Type] {
	resource, err := s.resource()
	if err != nil {
		fatal(t, fmt.Errorf("the resource is not there any more: %w", err))
	}
	// The node does not own fields of the resource that a row would have to know.
	resource.SetManagedFields(nil)
	d := &RolledOut[Type]{Fixture: NewFixture(resource), rollout: s.rollout}
	for _, at := range s.places() {
		obj, err := s.read(context.Background(), at)
		if err != nil {
			fatal(t, err)
		}
		if obj != nil {
			d.objects = append(d.objects, s.typed(obj))
		}
	}
	return d
}

// typed returns an object of the type of the scheme, if there is one.
func (s *site[Type]) typed(obj *unstructured.Unstructured) client.Object {
	made, err := s.rollout.Scheme.New(obj.GroupVersionKind())
	if err != nil {
		return obj
	}
	typed, ok := made.(client.Object)
	if !ok || runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, typed) != nil {
		return obj
	}
	return typed
}

// establish does what a cluster does with a definition that is new.
func establish(obj *unstructured.Unstructured) {
	if obj.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: definitionResource.Group, Kind: "CustomResourceDefinition"}) {
		return
	}
	if conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions"); len(conditions) > 0 {
		return
	}
	var conditions []any
	for _, condition := range []string{"NamesAccepted", "Established"} {
		conditions = append(conditions, map[string]any{
			"type": condition, "status": "True", "reason": condition, "message": "",
			"lastTransitionTime": RolledOutAt.Format(time.RFC3339),
		})
	}
	// It is a map, being an object.
	_ = unstructured.SetNestedSlice(obj.Object, conditions, "status", "conditions")
}
