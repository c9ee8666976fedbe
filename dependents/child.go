package dependents

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"reflect"
	"strings"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/reconcilers"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// OwnerLabel is the key of the label of unowned objects. Its value is a digest of the API group, the kind, the
// namespace, the name and the UID of the resource.
const OwnerLabel = "espalier.dev/dependent-of"

// ownerDigest identifies a resource in a label.
func ownerDigest(kind schema.GroupKind, resource client.Object) string {
	text := strings.Join([]string{
		kind.Group, kind.Kind, resource.GetNamespace(), resource.GetName(), string(resource.GetUID()),
	}, "\n")
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// pass is what one run of the child gets and finds out.
type pass[CT client.Object] struct {
	// desired is nil if there is to be no object.
	desired CT
	// keep leaves the object as it is.
	keep bool
	// owner is the value of [OwnerLabel].
	owner string
	// live is the object as it is in the cluster, or nil.
	live CT
	// err is an error that the child reflects.
	err error
}

type passKey struct{}

// passOf returns the pass of ctx. Outside of a run it returns an empty one.
func passOf[CT client.Object](ctx context.Context) *pass[CT] {
	if known, ok := ctx.Value(passKey{}).(*pass[CT]); ok {
		return known
	}
	return &pass[CT]{keep: true}
}

// init makes the child. What it does in a request is in the pass of the context, because requests run concurrently.
func (d *Dependent[T, CT]) init() {
	d.initOnce.Do(func() {
		c := &d.child
		c.Name, c.ChildType, c.LabelChildren = d.name, d.object, true
		if u, ok := any(d.object).(*unstructured.Unstructured); ok && u != nil {
			list := &unstructured.UnstructuredList{}
			list.SetAPIVersion(u.GetAPIVersion())
			list.SetKind(u.GetKind() + "List")
			c.ChildListType = list
		}
		manager := &reconcilers.ApplyingObjectManager[CT]{
			Name: d.name, Type: d.object, TrackDesired: d.has(unowned),
			FieldManager: strings.ToLower(gotype.Name(reflect.TypeFor[T]())) + "-controller",
		}
		c.ChildObjectManager = manager
		if d.has(createOnly) {
			c.ChildObjectManager = &creator[CT]{manager}
		}
		c.DesiredChild = func(ctx context.Context, _ T) (CT, error) {
			p := passOf[CT](ctx)
			if p.keep {
				var none CT
				return none, reconcilers.OnlyReconcileChildStatus
			}
			return p.desired, nil
		}
		c.ReflectChildStatusOnParent = func(ctx context.Context, _ T, child CT, err error) {
			p := passOf[CT](ctx)
			p.live, p.err = child, err
		}
		if d.has(unowned) {
			c.SkipOwnerReference = true
			c.ListOptions = func(ctx context.Context, _ T) []client.ListOption {
				return []client.ListOption{client.MatchingLabels{OwnerLabel: passOf[CT](ctx).owner}}
			}
			c.OurChild = func(resource T, child CT) bool {
				kind := d.owner.Load()
				return kind != nil && child.GetLabels()[OwnerLabel] == ownerDigest(*kind, resource)
			}
		}
	})
}

// reconcileChild runs the child, and returns what it found out.
func (d *Dependent[T, CT]) reconcileChild(
	ctx context.Context, resource T, p *pass[CT],
) (reconcilers.Result, error) {
	d.init()
	if d.has(unowned) {
		config, err := reconcilers.RetrieveConfig(ctx)
		if err != nil {
			return reconcilers.Result{}, err
		}
		gvk, err := config.GroupVersionKindFor(resource)
		if err != nil {
			return reconcilers.Result{}, err
		}
		kind := gvk.GroupKind()
		d.owner.Store(&kind)
		p.owner = ownerDigest(kind, resource)
		if !gotype.IsNil(p.desired) {
			labels := maps.Clone(p.desired.GetLabels())
			if labels == nil {
				labels = map[string]string{}
			}
			labels[OwnerLabel] = p.owner
			p.desired.SetLabels(labels)
		}
	}
	result, err := d.child.Reconcile(context.WithValue(ctx, passKey{}, p), resource)
	if err == nil {
		err = p.err
	}
	return result, err
}

// SuspendedAnnotation marks an object that is only created, and that a supervisor has suspended. It is written once
// more when it is resumed.
const SuspendedAnnotation = "espalier.dev/suspended"

// creator is an object manager that updates only to suspend and to resume.
type creator[CT client.Object] struct {
	*reconcilers.ApplyingObjectManager[CT]
}

// Manage creates and deletes, see [reconcilers.ObjectManager].
func (c *creator[CT]) Manage(ctx context.Context, resource client.Object, actual, desired CT) (CT, error) {
	if gotype.IsNil(desired) {
		return c.ApplyingObjectManager.Manage(ctx, resource, actual, desired)
	}
	exists := !gotype.IsNil(actual) && !actual.GetCreationTimestamp().Time.IsZero()
	marked := exists && actual.GetAnnotations()[SuspendedAnnotation] != ""
	suspends := reconcilers.SupervisionOf(ctx, resource) == reconcilers.Suspend
	switch {
	case exists && suspends && !marked:
		runs, err := runs(ctx, actual)
		if err != nil || !runs {
			return actual, err
		}
	case exists && !suspends && !marked:
		return actual, nil
	}
	if suspends {
		annotations := maps.Clone(desired.GetAnnotations())
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[SuspendedAnnotation] = "true"
		desired.SetAnnotations(annotations)
	}
	return c.ApplyingObjectManager.Manage(ctx, resource, actual, desired)
}

// runs reports whether the supervisor would change an object to suspend it.
func runs(ctx context.Context, live client.Object) (bool, error) {
	suspended := live.DeepCopyObject().(client.Object)
	remove, err := reconcilers.SupervisorOf(ctx).Suspend(suspended)
	return remove || !equality.Semantic.DeepEqual(suspended, live), err
}
