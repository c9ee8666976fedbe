package release

import (
	"context"
	"fmt"
	"slices"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/apis"
)

// objectKey identifies an object, whatever the version.
type objectKey struct {
	schema.GroupKind
	client.ObjectKey
}

func keyOf(object *unstructured.Unstructured) objectKey {
	return objectKey{object.GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(object)}
}

func recordKey(r *apis.InventoryRecord) objectKey {
	kind, name := schema.GroupKind{Group: r.Group, Kind: r.Kind}, client.ObjectKey{Namespace: r.Namespace, Name: r.Name}
	return objectKey{kind, name}
}

// keysOf returns the keys that the records of objects of a release may have.
func keysOf(objects []*unstructured.Unstructured, namespace string) map[objectKey]bool {
	keys := map[objectKey]bool{}
	for _, object := range objects {
		key := keyOf(object)
		if key.Namespace == "" {
			// Either it is in no namespace, or in that of the release.
			key.Namespace = namespace
		}
		keys[key] = true
		// The engine ignores the namespace of an object that can be in none.
		key.Namespace = ""
		keys[key] = true
	}
	return keys
}

// Kept are objects of the inventory of a release that a run does not deal with. The engine does not see their records,
// so it neither writes nor deletes these objects, nor waits for them. The records stay stored as they are.
type Kept map[objectKey]bool

// Others returns all objects of the inventory but for those that are desired.
func (r *Release) Others(desired []*unstructured.Unstructured) Kept {
	keys, kept := keysOf(desired, r.Namespace), Kept{}
	for i := range r.Status.Inventory {
		if key := recordKey(&r.Status.Inventory[i]); !keys[key] {
			kept[key] = true
		}
	}
	return kept
}

// Unselected returns the objects of the inventory that a selector keeps from being removed. They are not desired, and
// are in the sources, or do not match, or are not there, so that nobody knows their labels.
func (c *Cluster) Unselected(
	ctx context.Context, r *Release, desired, sources []*unstructured.Unstructured, matches func(metav1.Object) bool,
) (Kept, error) {
	kept, named := r.Others(desired), keysOf(sources, r.Namespace)
	for i := range r.Status.Inventory {
		record := &r.Status.Inventory[i]
		key := recordKey(record)
		if !kept[key] || named[key] {
			continue
		}
		live := &metav1.PartialObjectMetadata{}
		live.SetGroupVersionKind(key.WithVersion(record.Version))
		err := c.Client.Get(ctx, key.ObjectKey, live)
		switch {
		case apierrs.IsNotFound(err), meta.IsNoMatchError(err):
			// Without a digest, an earlier run has removed it.
			if record.Digest == "" {
				delete(kept, key)
			}
		case err != nil:
			return nil, fmt.Errorf("unable to read the labels of the %s %s: %w", record.Kind, record.Name, err)
		case matches(live):
			delete(kept, key)
		}
	}
	return kept, r.checkKept(kept, keysOf(desired, r.Namespace))
}

// checkKept returns an error if the removal of an object would delete one that is kept.
func (r *Release) checkKept(kept Kept, desired map[objectKey]bool) error {
	for i := range r.Status.Inventory {
		removed := &r.Status.Inventory[i]
		if key := recordKey(removed); kept[key] || desired[key] {
			continue
		}
		for key := range kept {
			if contains(removed, key) {
				const why = "the %s %s is to be removed, and would take the %s %s along, which is to stay: " +
					"select both or none"
				return fmt.Errorf(why, removed.Kind, removed.Name, key.Kind, key.Name)
			}
		}
	}
	return nil
}

// contains reports whether an object is gone with another one: with its namespace, or with what defines its type.
func contains(container *apis.InventoryRecord, key objectKey) bool {
	if container.Group == "" && container.Kind == "Namespace" && key.Namespace == container.Name {
		return true
	}
	return slices.ContainsFunc(container.ManagedTypes, func(t apis.ManagedType) bool {
		return t.Group == key.Group && (t.Kind == "*" || t.Kind == key.Kind)
	})
}

// split returns the records that a run deals with, and those that it does not. What is being deleted is deleted wholly.
func (k Kept) split(r *Release) (seen, kept []apis.InventoryRecord) {
	if len(k) == 0 || r.DeletionTimestamp != nil {
		return r.Status.Inventory, nil
	}
	for i := range r.Status.Inventory {
		record := &r.Status.Inventory[i]
		if k[recordKey(record)] {
			kept = append(kept, *record)
		} else {
			seen = append(seen, *record)
		}
	}
	return seen, kept
}

// merged returns the records of a run, followed by those that it did not see.
func merged(seen, kept []apis.InventoryRecord) []apis.InventoryRecord {
	known := map[objectKey]bool{}
	for i := range seen {
		known[recordKey(&seen[i])] = true
	}
	kept = slices.DeleteFunc(kept, func(r apis.InventoryRecord) bool { return known[recordKey(&r)] })
	return slices.Concat(seen, kept)
}

// Selected returns the objects that a selector of labels selects.
func Selected(
	objects []*unstructured.Unstructured, matches func(metav1.Object) bool,
) (selected []*unstructured.Unstructured) {
	for _, object := range objects {
		if matches(object) {
			selected = append(selected, object)
		}
	}
	return selected
}
