package reconcilers

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"sync"

	"github.com/espalier-dev/espalier/internal/digest"
	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/jsonmerge"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CastResource runs a node that is written for CastType on resources of Type. CastType may be a duck type with the
// fields that several types have in common.
//
//   - Runs: the nested node, with the resource converted to CastType. Its changes are then applied to the resource.
//   - Stops: if the resource cannot be converted. The nested node then does not run.
//   - On error: applies the changes of the nested node, then returns its error and result. If the changes cannot be
//     applied, that error is joined.
//   - On deletion: the same.
//
// A resource that is already a CastType is passed on unchanged. This is always so if CastType is an interface that Type
// implements. Any other resource is converted through JSON, so the nested node sees the fields that both types have,
// matched by their JSON names. Only what the nested node changed is applied to the resource. Fields that CastType lacks
// and unexported fields keep their values. A change of a field that the resource lacks is dropped. A changed list is
// replaced as a whole, but items that are still in it keep the fields that CastType lacks. If a change does not fit the
// type of the resource, the resource stays as it was.
//
// Below the cast, finalizers, owner references, events and watches are still those of the resource that the root
// loaded. The kind that CastType is registered as does not matter. Pass the object that the nested node got to the
// functions of this package, not a copy of it.
//
// A conversion marshals and unmarshals the resource once in each request. Applying changes costs more, but only if
// there are any.
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
		r.Name = cmp.Or(r.Name, r.castName+"CastResource")
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

// Validate checks that the required fields are set, that Type can be converted to CastType and, if recursive, the
// nested node.
func (r *CastResource[Type, CastType]) Validate(ctx context.Context) error {
	r.init()
	if err := r.check(); err != nil {
		return err
	}
	return validateField(r.withCastType(ctx), "CastResource", r.Name, "Reconciler", r.Reconciler)
}

func (r *CastResource[Type, CastType]) check() error {
	if gotype.IsNil(r.Reconciler) {
		return fmt.Errorf("CastResource %q must define Reconciler", r.Name)
	}
	return r.invalid
}

// checkTypes returns an error if no Type can be converted to a CastType. The compiler cannot check this.
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
	if !gotype.IsNil(resourceType) {
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
		return ReconcileNested(ctx, r.Reconciler, same)
	}

	data, err := json.Marshal(resource)
	if err != nil {
		return Result{}, r.conversionError(ctx, resource, err)
	}
	cast, err := r.decode(ctx, resource, data)
	if err != nil {
		return Result{}, r.conversionError(ctx, resource, err)
	}
	before, hasDigest := digest.Of(cast)
	if log := logr.FromContextOrDiscard(ctx); log.GetSink() != nil {
		ctx = logr.NewContext(ctx, log.WithValues("castResourceType", r.castName))
	}
	result, err := ReconcileNested(withCast(ctx, cast, resource), r.Reconciler, cast)
	if after, ok := digest.Of(cast); ok && hasDigest && after == before {
		return result, err
	}
	return result, r.join(ctx, resource, err, r.applyChange(ctx, resource, data, cast))
}

// decode returns a cast object with the content of data, the JSON form of resource.
func (r *CastResource[Type, CastType]) decode(ctx context.Context, resource Type, data []byte) (CastType, error) {
	cast, err := emptyOf[CastType]()
	if err != nil {
		return cast, err
	}
	if u, ok := any(cast).(runtime.Unstructured); ok {
		// Its own decoder requires a kind, and objects of Go types may have none.
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

// applyChange applies the changes of the nested node to resource. cast was decoded from data before the node changed
// it.
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
		// The kind of the cast object may differ from the kind of the resource.
		delete(before, identity)
		delete(after, identity)
	}
	return jsonmerge.ApplyChange(resource, before, after)
}

func (r *CastResource[Type, CastType]) conversionError(ctx context.Context, resource Type, err error) error {
	name := describeObject(resource)
	err = fmt.Errorf("CastResource %q is unable to make a %s of %s: %w", r.Name, r.castName, name, err)
	recordFailure(ctx, name, err)
	return err
}

// join joins the error of the nested node with applyErr, the error of applying its changes. Either may be nil.
func (r *CastResource[Type, CastType]) join(ctx context.Context, resource Type, err, applyErr error) error {
	if applyErr == nil {
		return err
	}
	applyErr = fmt.Errorf("CastResource %q is unable to carry over to %s what changed of the %s: %w",
		r.Name, describeObject(resource), r.castName, applyErr)
	recordFailure(ctx, describeObject(resource), applyErr)
	// A quiet error of the nested node must not silence the other error.
	return joinAll(err, applyErr)
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
