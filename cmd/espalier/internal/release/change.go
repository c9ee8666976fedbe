package release

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/ownership"
)

// The annotations that tell the engine what to do about an object that stays as it is.
const (
	adoptionPolicy = generator.SharedPrefix + "/adoption-policy"
	presence       = generator.SharedPrefix + "/presence"
)

// Open reads a release that is to be changed, or makes a new one if it may. It refuses one that is being deleted.
func (c *Cluster) Open(ctx context.Context, namespace, name string, mayBeNew bool) (*Release, error) {
	r := &Release{}
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, r)
	switch {
	case apierrs.IsNotFound(err) && mayBeNew:
		r = New(namespace, name)
		r.Spec = Spec{Revision: 1, Digest: "objects of the cluster", FieldManager: FieldManager}
		r.complete()
		return r, nil
	case err != nil:
		return nil, err
	case r.DeletionTimestamp != nil:
		return nil, fmt.Errorf("the component %q is being deleted", name)
	}
	return r, nil
}

// Adopting returns the objects without content that a release is to take over: from anybody, or only if nobody owns
// them. done are those that belong to it already.
func (c *Cluster) Adopting(
	ctx context.Context, r *Release, refs []*unstructured.Unstructured, fromAnybody bool,
) (desired, done []*unstructured.Unstructured, err error) {
	policy := "if-unowned"
	if fromAnybody {
		policy = "always"
	}
	for _, ref := range refs {
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(ref), ref); err != nil {
			return nil, nil, err
		}
		belongs, err := r.belongs(ref)
		if err != nil {
			return nil, nil, err
		}
		if belongs {
			begun, err := r.isBeingAdopted(ref)
			if err != nil {
				return nil, nil, err
			}
			if !begun {
				done = append(done, ref)
				continue
			}
		}
		if marks := ownership.MarksOf(ref, ""); !belongs && !fromAnybody && marks != (ownership.Marks{}) {
			const why = "the %s %s %s: --force takes it over"
			return nil, nil, &OwnedError{fmt.Errorf(why, ref.GetKind(), ref.GetName(), ownership.ClaimOf(ref))}
		}
		desired = append(desired, bare(ref, adoptionPolicy, policy))
	}
	return desired, done, nil
}

// belongs reports whether an object has the marks of a release. It is an error if the inventory does not have it too:
// whatever was desired of it is not known.
func (r *Release) belongs(live *unstructured.Unstructured) (bool, error) {
	if text, _ := r.Owner(); live.GetAnnotations()[ownerKey] != text {
		return false, nil
	}
	if r.record(live) == nil {
		const why = "the %s %s has the marks of the component %q, and is not in its inventory: recover makes that again"
		return false, fmt.Errorf(why, live.GetKind(), live.GetName(), r.Name)
	}
	return true, nil
}

// record returns the record of an object, nil if there is none.
func (r *Release) record(object *unstructured.Unstructured) *apis.InventoryRecord {
	key := keyOf(object)
	for i := range r.Status.Inventory {
		if recordKey(&r.Status.Inventory[i]) == key {
			return &r.Status.Inventory[i]
		}
	}
	return nil
}

// isBeingAdopted reports whether an object that belongs to a release has nothing but marks of it, and was not ready
// yet.
func (r *Release) isBeingAdopted(live *unstructured.Unstructured) (bool, error) {
	if r.record(live).Phase == apis.PhaseReady {
		return false, nil
	}
	applied, err := appliedBy(live, r.Spec.FieldManager)
	if errors.Is(err, errNotWritten) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for field := range applied.Object {
		if !slices.Contains([]string{"apiVersion", "kind", "metadata"}, field) {
			return false, nil
		}
	}
	return true, nil
}

// OwnedError says that an object belongs to somebody else.
type OwnedError struct{ error }

// Orphaning returns the objects without content that a release is to let go. done are those that it does not have.
func (c *Cluster) Orphaning(
	ctx context.Context, r *Release, refs []*unstructured.Unstructured,
) (desired, done []*unstructured.Unstructured, err error) {
	for _, ref := range refs {
		if r.record(ref) != nil {
			desired = append(desired, bare(ref, presence, "orphaned"))
			continue
		}
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(ref), ref); err != nil {
			return nil, nil, err
		}
		if _, err := r.belongs(ref); err != nil {
			return nil, nil, err
		}
		done = append(done, ref)
	}
	return desired, done, nil
}

// Recovering returns the objects that have the marks of a release and are not in its inventory, as they were applied. A
// new release gets the field manager that has written them. unseen says where it could not look.
func (c *Cluster) Recovering(
	ctx context.Context, r *Release,
) (lost []*unstructured.Unstructured, unseen []error, err error) {
	text, id := r.Owner()
	marked, unseen, err := c.Everything(ctx, client.MatchingLabels{Prefix + "/" + generator.LabelOwnerID: id})
	if err != nil {
		return nil, nil, err
	}
	var found []*unstructured.Unstructured
	for i := range marked {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(marked[i].GroupVersionKind())
		live.SetNamespace(marked[i].Namespace)
		live.SetName(marked[i].Name)
		// Controllers copy the label to what they make of objects.
		isCopy := marked[i].Annotations[ownerKey] != text
		isKnown := r.record(live) != nil || slices.ContainsFunc(found, func(o *unstructured.Unstructured) bool {
			// A kind may be served in several groups.
			return keyOf(o) == keyOf(live)
		})
		if isCopy || isKnown || marked[i].DeletionTimestamp != nil {
			continue
		}
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(live), live); err != nil {
			return nil, nil, err
		}
		found = append(found, live)
	}
	if r.ResourceVersion == "" && len(found) > 0 {
		if r.Spec.FieldManager, err = onlyWriter(found); err != nil {
			return nil, nil, err
		}
	}
	for _, live := range found {
		applied, err := recovered(live, r.Spec.FieldManager)
		if err != nil {
			return nil, nil, err
		}
		lost = append(lost, applied)
	}
	return lost, unseen, nil
}

// recovered returns an object as it was applied, by the field manager or else by the one that has written the marks.
func recovered(live *unstructured.Unstructured, manager string) (*unstructured.Unstructured, error) {
	applied, err := appliedBy(live, manager)
	if errors.Is(err, errNotWritten) {
		applied, err = appliedBy(live, writerOf(live))
	}
	if err != nil {
		return nil, err
	}
	settings, err := generator.ReadSettings(Prefix, applied.GetAnnotations())
	if err != nil {
		return nil, fmt.Errorf("the %s %s: %w", live.GetKind(), live.GetName(), inOneLine(err))
	}
	if settings.UpdatePolicy == apis.UpdateRecreate {
		// What was applied is not known wholly, so the object would be deleted.
		annotations := applied.GetAnnotations()
		annotations[Prefix+"/"+generator.AnnotationUpdatePolicy] = "apply"
		applied.SetAnnotations(annotations)
	}
	return applied, nil
}

// onlyWriter returns the manager of fields that has written the marks on all objects.
func onlyWriter(objects []*unstructured.Unstructured) (string, error) {
	first := writerOf(objects[0])
	for _, object := range objects {
		writer := writerOf(object)
		if writer == "" {
			const why = "the %s %s: the field manager that has written its marks is not known"
			return "", fmt.Errorf(why, object.GetKind(), object.GetName())
		}
		if writer != first {
			const why = "the objects were written as several field managers: the %s %s as %q, the %s %s as %q"
			return "", fmt.Errorf(why, objects[0].GetKind(), objects[0].GetName(), first,
				object.GetKind(), object.GetName(), writer)
		}
	}
	return first, nil
}

const ownerKey = Prefix + "/" + generator.AnnotationOwnerID

// writerOf returns the manager of the fields of an object who has written the mark of the owner.
func writerOf(live *unstructured.Unstructured) string {
	for _, entry := range live.GetManagedFields() {
		applied, err := appliedBy(live, entry.Manager)
		if err == nil && applied.GetAnnotations()[ownerKey] != "" {
			return entry.Manager
		}
	}
	return ""
}

// bare returns an object without content, but for an annotation.
func bare(of *unstructured.Unstructured, annotation, value string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(of.GroupVersionKind())
	object.SetNamespace(of.GetNamespace())
	object.SetName(of.GetName())
	object.SetAnnotations(map[string]string{annotation: value})
	return object
}
