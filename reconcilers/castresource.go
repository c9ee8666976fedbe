package reconcilers

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"sync"

	"github.com/espalier-dev/espalier/internal/digest"
	"github.com/espalier-dev/espalier/internal/jsonmerge"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CastResource lets a node that is written for CastType work on resources of Type: a duck type, say, that has what
// several types have in common.
//
//   - Runs: the nested node, always, with the resource as a CastType. What that changes is then carried over to the
//     resource.
//   - Stops: if the resource cannot be converted; the nested node then does not run.
//   - On error: returns the nested node's error and result, after its changes were carried over; an error of that is
//     joined.
//   - On deletion: the same.
//
// A resource that is a CastType already, as it is whenever CastType is an interface that it implements, is handed on as
// it is. Any other is converted by its JSON form, so that members match by their JSON names: the nested node sees what
// CastType has a field for. Of that only what the nested node changed is carried over. All else about the resource is
// not touched: neither members that CastType lacks, nor unexported fields. A changed member that the resource has no
// field for is dropped. A list that changed is decoded anew as a whole, with what CastType lacks of the items that are
// still in it. If what changed does not fit the resource, the resource stays as it was before.
//
// The resource keeps its identity under the cast. Its finalizers are patched, its children owned, its events recorded
// and its watches made as those of the resource that the root loaded, whatever kind CastType is registered as. What is
// handed to functions of this package must be the object that the nested node was given, not a copy.
//
// A conversion marshals and unmarshals the resource once in each request; one that changes nothing costs nothing more.
type CastResource[Type, CastType client.Object] struct {
	// Name identifies the node in paths and logs. Default: the name of CastType followed by CastResource.
	Name string

	// Reconciler is the nested node. Required.
	Reconciler SubReconciler[CastType]

	initOnce sync.Once
	castName string
	invalid  error
}

var _ SubReconciler[client.Object] = (*CastResource[client.Object, client.Object])(nil)

func (r *CastResource[Type, CastType]) init() {
	r.initOnce.Do(func() {
		cast := reflect.TypeFor[CastType]()
		r.castName = cast.Name()
		if cast.Kind() == reflect.Pointer {
			r.castName = cast.Elem().Name()
		}
		if r.Name == "" {
			r.Name = r.castName + "CastResource"
		}
		r.invalid = r.checkTypes()
	})
}

// SetupWithManager validates, and sets up the nested node for CastType, of the kind of the resource.
func (r *CastResource[Type, CastType]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	r.init()
	ctx = Enter(ctx, r.Name)
	if err := r.Validate(ctx); err != nil {
		return err
	}
	return r.Reconciler.SetupWithManager(r.withCastType(ctx), mgr, bldr)
}

// Validate checks that the required fields are set and the types possible and, if recursive, the nested node.
func (r *CastResource[Type, CastType]) Validate(ctx context.Context) error {
	r.init()
	if err := r.check(); err != nil {
		return err
	}
	if err := validateNested(r.withCastType(ctx), r.Reconciler); err != nil {
		return fmt.Errorf("CastResource %q must have a valid Reconciler: %w", r.Name, err)
	}
	return nil
}

func (r *CastResource[Type, CastType]) check() error {
	if isNilNode(r.Reconciler) {
		return fmt.Errorf("CastResource %q must define Reconciler", r.Name)
	}
	return r.invalid
}

// checkTypes finds types that nothing can be cast to, which the compiler cannot.
func (r *CastResource[Type, CastType]) checkTypes() error {
	given, cast := reflect.TypeFor[Type](), reflect.TypeFor[CastType]()
	switch {
	case given == cast, cast.Kind() == reflect.Pointer:
		return nil
	case cast.Kind() != reflect.Interface:
		return fmt.Errorf("CastResource %q must have a CastType that is a pointer or an interface, not %s",
			r.Name, cast)
	case given.Kind() != reflect.Interface && !given.Implements(cast):
		return fmt.Errorf("CastResource %q must have a CastType that %s implements, not %s", r.Name, given, cast)
	}
	return nil
}

// withCastType returns the context for the nested node outside a request.
func (r *CastResource[Type, CastType]) withCastType(ctx context.Context) context.Context {
	resourceType := RetrieveResourceType(ctx)
	if _, ok := resourceType.(CastType); ok {
		return ctx
	}
	cast, err := emptyOf[CastType]()
	if err != nil {
		return ctx
	}
	if !isNil(resourceType) {
		cast.GetObjectKind().SetGroupVersionKind(kindOfOriginal(ctx, resourceType))
	}
	return StashResourceType(ctx, cast)
}

// Reconcile runs the nested node, see [CastResource].
func (r *CastResource[Type, CastType]) Reconcile(ctx context.Context, resource Type) (Result, error) {
	r.init()
	if err := r.check(); err != nil {
		return Result{}, err
	}
	ctx = Enter(ctx, r.Name)
	if same, ok := any(resource).(CastType); ok {
		result, err := r.Reconciler.Reconcile(ctx, same)
		recordUnlocated(ctx, err)
		return result, err
	}

	data, err := json.Marshal(resource)
	if err != nil {
		return Result{}, r.unable(ctx, resource, err)
	}
	cast, err := r.decode(ctx, resource, data)
	if err != nil {
		return Result{}, r.unable(ctx, resource, err)
	}
	before, hasDigest := digest.Of(cast)
	if log := logr.FromContextOrDiscard(ctx); log.GetSink() != nil {
		ctx = logr.NewContext(ctx, log.WithValues("castResourceType", r.castName))
	}
	result, err := r.Reconciler.Reconcile(withCast(ctx, cast, resource), cast)
	recordUnlocated(ctx, err)
	if after, ok := digest.Of(cast); ok && hasDigest && after == before {
		return result, err
	}
	return result, r.join(ctx, resource, err, r.applyChange(ctx, resource, data, cast))
}

// decode makes a cast object of the JSON form of resource.
func (r *CastResource[Type, CastType]) decode(ctx context.Context, resource Type, data []byte) (CastType, error) {
	cast, err := emptyOf[CastType]()
	if err != nil {
		return cast, err
	}
	if u, ok := any(cast).(runtime.Unstructured); ok {
		// Its own decoding insists on a kind, which objects of Go types do without.
		var content map[string]any
		if err := utiljson.Unmarshal(data, &content); err != nil {
			return cast, err
		}
		u.SetUnstructuredContent(content)
	} else if err := json.Unmarshal(data, cast); err != nil {
		return cast, err
	}
	if kind := cast.GetObjectKind(); kind.GroupVersionKind().Empty() {
		kind.SetGroupVersionKind(kindOfOriginal(ctx, resource))
	}
	return cast, nil
}

// applyChange changes resource as the nested node changed cast, which was made of data.
func (r *CastResource[Type, CastType]) applyChange(
	ctx context.Context, resource Type, data []byte, cast CastType,
) error {
	original, err := r.decode(ctx, resource, data)
	if err != nil {
		return err
	}
	before, err := jsonmerge.Tree(original)
	if err != nil {
		return err
	}
	after, err := jsonmerge.Tree(cast)
	if err != nil {
		return err
	}
	for _, identity := range []string{"apiVersion", "kind"} {
		// What the nested node calls its object is no matter of the resource.
		delete(before, identity)
		delete(after, identity)
	}
	return jsonmerge.ApplyChange(resource, before, after)
}

func (r *CastResource[Type, CastType]) unable(ctx context.Context, resource Type, err error) error {
	name := describeObject(resource)
	err = fmt.Errorf("CastResource %q is unable to make a %s of %s: %w", r.Name, r.castName, name, err)
	recordFailure(ctx, name, err)
	return err
}

// join joins the error of the nested node and that of carrying over its changes. Either may be nil.
func (r *CastResource[Type, CastType]) join(ctx context.Context, resource Type, err, carryErr error) error {
	if carryErr == nil {
		return err
	}
	carryErr = fmt.Errorf("CastResource %q is unable to carry over to %s what changed of the %s: %w",
		r.Name, describeObject(resource), r.castName, carryErr)
	recordFailure(ctx, describeObject(resource), carryErr)
	if err == nil {
		return carryErr
	}
	// Joined with a quiet error it would be silent.
	return joinAll([]error{err, carryErr})
}

// Describe shows the nested node.
func (r *CastResource[Type, CastType]) Describe() Description {
	r.init()
	return Description{
		Kind:   "CastResource",
		Name:   r.Name,
		Detail: r.castName,
		Nodes:  []Description{Describe(r.Reconciler)},
	}
}
