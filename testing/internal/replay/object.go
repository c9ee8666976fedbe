package replay

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/internal/store"
)

// object is an object of a cluster at a moment of a run.
type object struct {
	client.Object
	names   *fault.Names
	cluster string
	// normal is what Normal returns, once it is known.
	normal map[string]any
}

// Same implements [fault.Object].
func (o *object) Same(other fault.Object) bool {
	return equality.Semantic.DeepEqual(o.Object, clientObject(other))
}

// Normal implements [fault.Object].
func (o *object) Normal() map[string]any {
	if o.normal == nil {
		o.normal = o.names.Normalize(fieldsOf(o.Object), o.cluster)
	}
	return o.normal
}

// clientObject is the object that stands behind one; nil if there is none.
func clientObject(o fault.Object) client.Object {
	if of, ok := o.(*object); ok {
		return of.Object
	}
	return nil
}

// object returns an object of the cluster for the comparison; nil if there is none.
func (c *cluster) object(obj client.Object, names *fault.Names) fault.Object {
	if obj == nil {
		return nil
	}
	return &object{Object: obj, names: names, cluster: c.name}
}

// key names an object of the cluster.
func (c *cluster) key(key store.Key) fault.Key {
	return fault.Key{Kind: key.Kind, Namespace: key.Namespace, Name: key.Name, Cluster: c.name}
}

// namesOf returns the names of a run with the changes of each of its clusters.
func namesOf(journal map[*cluster][]store.Change) *fault.Names {
	all := map[fault.Key]*fault.Made{}
	for c, changes := range journal {
		for _, change := range changes {
			key, after := c.key(change.Key), change.After
			made := all[key]
			if change.Before == nil {
				if made == nil {
					made = &fault.Made{}
					all[key] = made
				}
				made.UIDs = append(made.UIDs, after.GetUID())
				made.GenerateName = cmp.Or(after.GetGenerateName(), made.GenerateName)
			}
			if made == nil || made.GenerateName == "" {
				continue
			}
			if made.Fields = nil; after != nil {
				made.Fields = func() map[string]any { return fieldsOf(after) }
			}
		}
	}
	return fault.NewNames(all)
}

// fieldsOf returns an object as JSON, without what the fault Conflicts wrote.
func fieldsOf(obj client.Object) map[string]any {
	if _, ok := obj.(runtime.Unstructured); ok {
		// The converter does not copy it.
		obj = obj.DeepCopyObject().(client.Object)
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return map[string]any{"cannot be encoded": err.Error()}
	}
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		if annotations, ok := metadata["annotations"].(map[string]any); ok {
			if delete(annotations, somebodyElseAnnotation); len(annotations) == 0 {
				delete(metadata, "annotations")
			}
		}
	}
	return fields
}

const observedGeneration = "observedGeneration"

// observes reports whether nothing but the observed generation of an object changed.
func observes(change store.Change) bool {
	if change.Before == nil || change.After == nil || change.Before.GetGeneration() != change.After.GetGeneration() {
		return false
	}
	before, _ := unobserved(change.Before)
	after, observed := unobserved(change.After)
	return observed && equality.Semantic.DeepEqual(before, after)
}

// unobserved returns an object without its observed generation, and whether it had one, and without what each write
// changes.
func unobserved(obj client.Object) (fields map[string]any, had bool) {
	// The converter does not copy unstructured content.
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj.DeepCopyObject())
	if err != nil {
		return nil, false
	}
	status, _ := fields["status"].(map[string]any)
	_, had = status[observedGeneration]
	if delete(status, observedGeneration); len(status) == 0 {
		delete(fields, "status")
	}
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		delete(metadata, "resourceVersion")
		delete(metadata, "managedFields")
	}
	return fields, had
}
