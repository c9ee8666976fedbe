package release

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// Adopting returns the objects of a release, as they are, and others that it is to take over: from anybody, or only if
// nobody owns them.
func (c *Cluster) Adopting(
	ctx context.Context, r *Release, refs []*unstructured.Unstructured, fromAnybody bool,
) ([]*unstructured.Unstructured, error) {
	policy := "if-unowned"
	if fromAnybody {
		policy = "always"
	}
	for i, ref := range refs {
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(ref), ref); err != nil {
			return nil, err
		}
		if text, _ := r.Owner(); ref.GetAnnotations()[ownerKey] == text {
			const why = "the %s %s belongs to the component %q already"
			return nil, fmt.Errorf(why, ref.GetKind(), ref.GetName(), r.Name)
		}
		if marks := ownership.MarksOf(ref, ""); !fromAnybody && marks != (ownership.Marks{}) {
			const why = "the %s %s %s: --force takes it over"
			return nil, &OwnedError{fmt.Errorf(why, ref.GetKind(), ref.GetName(), ownership.ClaimOf(ref))}
		}
		refs[i] = bare(ref, adoptionPolicy, policy)
	}
	return c.withKept(ctx, r, refs)
}

// OwnedError says that an object belongs to somebody else.
type OwnedError struct{ error }

// Orphaning returns the objects of a release, as they are, but for some that it lets go.
func (c *Cluster) Orphaning(
	ctx context.Context, r *Release, refs []*unstructured.Unstructured,
) ([]*unstructured.Unstructured, error) {
	for i, ref := range refs {
		key := keyOf(ref)
		owns := false
		for j := range r.Status.Inventory {
			record := &r.Status.Inventory[j]
			owns = owns || recordKey(record) == key
		}
		if !owns {
			const why = "the %s %s is not in the inventory of the component %q"
			return nil, fmt.Errorf(why, ref.GetKind(), ref.GetName(), r.Name)
		}
		refs[i] = bare(ref, presence, "orphaned")
	}
	return c.withKept(ctx, r, refs)
}

// Recovering returns the objects of a release, as they are, and those that have its marks and are not in its inventory.
// lost are these. unseen says where it could not look.
func (c *Cluster) Recovering(
	ctx context.Context, r *Release,
) (objects, lost []*unstructured.Unstructured, unseen []error, err error) {
	text, id := r.Owner()
	marked, unseen, err := c.Everything(ctx, client.MatchingLabels{Prefix + "/" + generator.LabelOwnerID: id})
	if err != nil {
		return nil, nil, nil, err
	}
	known, err := c.withKept(ctx, r, nil)
	if err != nil {
		return nil, nil, nil, err
	}
	for i := range marked {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(marked[i].GroupVersionKind())
		live.SetNamespace(marked[i].Namespace)
		live.SetName(marked[i].Name)
		// Controllers copy the label to what they make of objects.
		isCopy := marked[i].Annotations[ownerKey] != text
		isKnown := slices.ContainsFunc(slices.Concat(known, lost), func(o *unstructured.Unstructured) bool {
			// A kind may be served in several groups.
			return keyOf(o) == keyOf(live)
		})
		if isCopy || isKnown || marked[i].DeletionTimestamp != nil {
			continue
		}
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(live), live); err != nil {
			return nil, nil, nil, err
		}
		applied, err := appliedBy(live, r.Spec.FieldManager)
		if errors.Is(err, errNotWritten) {
			applied, err = appliedBy(live, writerOf(live))
		}
		if err != nil {
			return nil, nil, nil, err
		}
		lost = append(lost, applied)
	}
	return slices.Concat(known, lost), lost, unseen, nil
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

// withKept adds all objects of the inventory as they were applied.
func (c *Cluster) withKept(
	ctx context.Context, r *Release, others []*unstructured.Unstructured,
) ([]*unstructured.Unstructured, error) {
	kept, err := c.Kept(ctx, r, others, func(*unstructured.Unstructured) bool { return true })
	return slices.Concat(others, kept), err
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
