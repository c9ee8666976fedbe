package espalier

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/listing"
	"github.com/espalier-dev/espalier/internal/objectname"
	"github.com/espalier-dev/espalier/internal/served"
	"github.com/espalier-dev/espalier/reconcilers"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// ContributionLabel is the prefix of the keys of labels on objects that others own, see [Switches.Contributes]. A
// digest of the resource, the node and the item follows it. The value is the name of the node.
const ContributionLabel = "contribution.espalier.dev/"

// Contributes has the fields that desired returns set in objects of somebody else. An object is never created or
// deleted, and the resource does not own it. While it is missing, the node waits: the condition is False with the
// reason NotFound. The fields are written by server-side apply, under a field manager of the resource and the node. All
// other fields stay as they are. If another field manager has set one of them to another value, none is written, and
// the condition is False with the reason Conflict, which names the field and its manager. The health of the objects
// counts.
//
// The fields are given back when an object is not desired any more, the gate is off, the resource is deleted, or with
// Absent: those that nobody else has set are removed. The resource has a finalizer while there are such fields. The
// label [ContributionLabel], which is written together with the fields, says where they are.
func (s *Switches[Self, T, CT]) Contributes() Self { return s.with(contributes, false) }

// ForceConflicts has fields taken from other field managers. Their values are lost.
func (s *Switches[Self, T, CT]) ForceConflicts() Self { return s.with(forceConflicts, false) }

// isForeign reports whether the objects are those of somebody else.
func (s *Switches[Self, T, CT]) isForeign() bool { return s.has(readOnly) || s.has(contributes) }

// contributor is the engine that sets fields of objects of others.
type contributor[Self any, T, CT client.Object] struct {
	*Switches[Self, T, CT]

	// contributions is what is kept of each resource.
	contributions reconcilers.ResourceState[*contribution[CT]]
}

// contribution is what a node contributes for one resource.
type contribution[CT client.Object] struct {
	// label is the key of the label of the objects.
	label   string
	manager *reconcilers.ApplyingObjectManager[CT]
}

// SetupWithManager watches the type of the objects.
func (c *contributor[Self, T, CT]) SetupWithManager(
	ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder,
) error {
	return reconcilers.WatchOptional(reconcilers.Enter(ctx, c.name), bldr, c.object)
}

// Validate finds no mistakes: the switches are checked.
func (c *contributor[Self, T, CT]) Validate(context.Context) error { return nil }

// Describe returns what the node does with the type.
func (c *contributor[Self, T, CT]) Describe() reconcilers.Description {
	return reconcilers.Description{
		Name: c.name,
		Uses: []reconcilers.Access{
			{Object: c.object, Verbs: []string{"get", "list", "watch", "patch"}, Optional: true},
			{Verbs: []string{"patch"}},
		},
		Finalizers: []string{c.finalizer()},
	}
}

// Reconcile sets the desired fields, and gives back what is not desired any more.
func (c *contributor[Self, T, CT]) Reconcile(ctx context.Context, resource T) (reconcilers.Result, error) {
	p := passOf[CT](ctx)
	ctx = reconcilers.Enter(ctx, c.name)
	return reconcilers.Result{}, c.contribute(ctx, resource, p)
}

func (c *contributor[Self, T, CT]) contribute(ctx context.Context, resource T, p *pass[CT]) error {
	config, err := reconcilers.RetrieveConfig(ctx)
	if err != nil {
		return err
	}
	to, err := c.contribution(ctx, resource)
	if err != nil {
		return reconcilers.Failed(ctx, nil, err)
	}
	known, lacking := c.known(ctx, config, to)
	if lacking != nil && !c.isMissing(lacking) {
		return reconcilers.Failed(ctx, nil, lacking)
	}
	desired, err := c.desiredOf(ctx, resource)
	if errors.Is(err, reconcilers.OnlyReconcileChildStatus) {
		p.live, p.reflected = known, lacking
		return nil
	}
	if err == nil {
		err = c.sort(desired)
	}
	if err != nil {
		return reconcilers.Failed(ctx, nil, err)
	}
	for _, object := range desired {
		if lacking != nil {
			p.reflected = lacking
			continue
		}
		if err := c.set(ctx, config, resource, to, object, p); err != nil {
			return reconcilers.Failed(ctx, object, err)
		}
	}
	for _, object := range known {
		if slices.ContainsFunc(desired, func(d CT) bool { return keyOf(d) == keyOf(object) }) {
			continue
		}
		if err := c.giveBack(ctx, resource, to, object); err != nil {
			return reconcilers.Failed(ctx, object, err)
		}
	}
	if len(desired) > 0 {
		return nil
	}
	return c.end(ctx, config, resource, to)
}

// contribution returns what identifies the contributions of the node for a resource.
func (c *contributor[Self, T, CT]) contribution(ctx context.Context, resource T) (*contribution[CT], error) {
	owner, err := c.identify(ctx, resource)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(owner + "\n" + reconcilers.ItemName(ctx, c.name)))
	mark := hex.EncodeToString(sum[:16])
	to := c.contributions.Of(ctx, resource, func() *contribution[CT] { return &contribution[CT]{} })
	if label := ContributionLabel + mark; to.label != label {
		conflicts := reconcilers.FailOnConflicts
		if c.has(forceConflicts) {
			conflicts = reconcilers.ForceConflicts
		}
		// The manager remembers what it wrote, so that what agrees is not written again.
		to.label, to.manager = label, &reconcilers.ApplyingObjectManager[CT]{
			Name: c.name, Type: c.object, Conflicts: conflicts,
			FieldManager: "espalier-" + nameInKey(c.name) + "-" + mark,
		}
	}
	return to, nil
}

// known returns the objects that have the label of the contributions. Each of them wakes the resource when the cache
// shows it.
func (c *contributor[Self, T, CT]) known(
	ctx context.Context, config reconcilers.Config, to *contribution[CT],
) ([]CT, error) {
	list, err := c.emptyList(config)
	if err != nil {
		return nil, err
	}
	if err := config.TrackAndList(ctx, list, client.HasLabels{to.label}); err != nil {
		return nil, err
	}
	var known []CT
	err = meta.EachListItem(list, func(item runtime.Object) error {
		if object, ok := item.(CT); ok {
			known = append(known, object)
		}
		return nil
	})
	return known, errors.Join(err, c.sort(known))
}

// emptyList returns an empty list of the objects.
func (c *contributor[Self, T, CT]) emptyList(config reconcilers.Config) (client.ObjectList, error) {
	if list := c.listType(nil); list != nil {
		return list, nil
	}
	kind, err := config.GroupVersionKindFor(c.object)
	if err != nil {
		return nil, err
	}
	kind.Kind += "List"
	made, err := config.Scheme().New(kind)
	if err != nil {
		return nil, err
	}
	list, ok := made.(client.ObjectList)
	if !ok {
		return nil, c.errorf("must be of a kind whose lists are in the scheme: %T is no list of objects", made)
	}
	return list, nil
}

// sort orders objects by their namespaces and names. It returns an error if one is nil, or there twice.
func (c *contributor[Self, T, CT]) sort(objects []CT) error {
	for i, object := range objects {
		if gotype.IsNil(object) {
			return fmt.Errorf("desired object %d is nil", i)
		}
	}
	slices.SortFunc(objects, func(a, b CT) int { return strings.Compare(keyOf(a), keyOf(b)) })
	for i := 1; i < len(objects); i++ {
		if keyOf(objects[i]) == keyOf(objects[i-1]) {
			return fmt.Errorf("%s is desired twice", objectname.WithKind(c.kind, objects[i]))
		}
	}
	return nil
}

func keyOf(object client.Object) string { return client.ObjectKeyFromObject(object).String() }

// set sets the desired fields of one object.
func (c *contributor[Self, T, CT]) set(
	ctx context.Context, config reconcilers.Config, resource T, to *contribution[CT], desired CT, p *pass[CT],
) error {
	live := c.object.DeepCopyObject().(CT)
	switch err := config.TrackAndGet(ctx, client.ObjectKeyFromObject(desired), live); {
	case apierrs.IsNotFound(err):
		if p.waits == nil {
			p.waits, p.named = waitsForObject(c.kind, desired), desired
		}
		return nil
	case c.isMissing(err):
		p.reflected = cmp.Or(p.reflected, err)
		return nil
	case err != nil:
		return err
	}
	if err := reconcilers.AddFinalizer(ctx, resource, c.finalizer()); err != nil {
		return err
	}
	desired.SetLabels(reconcilers.MergeMaps(desired.GetLabels(), map[string]string{to.label: nameInKey(c.name)}))
	written, err := to.manager.Manage(ctx, resource, live, desired)
	var conflict *reconcilers.ApplyConflictError
	switch {
	case errors.As(err, &conflict), apierrs.IsInvalid(err):
		p.reflected = cmp.Or(p.reflected, err)
		written = live
	case err != nil:
		return err
	}
	p.live = append(p.live, written)
	return nil
}

// giveBack gives back the fields of an object. Those of a terminating object go with it.
func (c *contributor[Self, T, CT]) giveBack(
	ctx context.Context, resource T, from *contribution[CT], object CT,
) error {
	if object.GetDeletionTimestamp() != nil {
		return nil
	}
	none := gotype.Empty[CT]()
	if gotype.IsNil(none) {
		none = c.object.DeepCopyObject().(CT)
	}
	none.GetObjectKind().SetGroupVersionKind(c.object.GetObjectKind().GroupVersionKind())
	none.SetNamespace(object.GetNamespace())
	none.SetName(object.GetName())
	_, err := from.manager.Manage(ctx, resource, object, none)
	return err
}

// end gives back what the cache does not show, and takes the finalizer off the resource.
func (c *contributor[Self, T, CT]) end(
	ctx context.Context, config reconcilers.Config, resource T, from *contribution[CT],
) error {
	if !controllerutil.ContainsFinalizer(resource, c.finalizer()) {
		return nil
	}
	var left []client.Object
	if config.APIReader != nil {
		list, err := c.emptyList(config)
		if err == nil {
			left, err = listing.List(ctx, config.APIReader, list, nil, client.HasLabels{from.label})
		}
		if err != nil && !served.IsNotServed(err) {
			return reconcilers.Failed(ctx, nil, err)
		}
	}
	for _, object := range left {
		if err := c.giveBack(ctx, resource, from, object.(CT)); err != nil {
			return reconcilers.Failed(ctx, object, err)
		}
	}
	return reconcilers.ClearFinalizer(ctx, resource, c.finalizer())
}
