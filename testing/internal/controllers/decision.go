package controllers

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// controller decides for the objects of some kinds.
type controller struct {
	// name is that of the component of a cluster, and the field manager of its writes.
	name string
	// kinds are those of the objects it decides for. None stands for all kinds.
	kinds []schema.GroupKind
	// decide says what is to be done for an object. It is called again after all writes.
	decide func(v *view, k key, obj client.Object, now time.Time) decision
	// concerns returns the objects to look at because another one changed. The object itself and its owners, and the
	// owners of these, are looked at anyway. It may be nil.
	concerns func(v *view, k key, obj client.Object) []key
}

// handles reports whether a controller decides for a kind.
func (c *controller) handles(kind schema.GroupKind) bool {
	for _, handled := range c.kinds {
		if handled == kind {
			return true
		}
	}
	return len(c.kinds) == 0
}

// decision is what is to be done for an object.
type decision struct {
	// writes are done in their order, until one fails.
	writes []write
	// next is when to look again if nothing changes until then. Zero stands for never.
	next time.Time
}

// by has a look no later than at a time.
func (d *decision) by(t time.Time) {
	if d.next.IsZero() || t.Before(d.next) {
		d.next = t
	}
}

func (d *decision) add(writes ...write) { d.writes = append(d.writes, writes...) }

// verb is what a write does.
type verb string

const (
	create verb = "create"
	// update replaces an object, updateStatus its status; both need the revision that was seen.
	update       verb = "update"
	updateStatus verb = "update status of"
	// patchMetadata changes owner references and finalizers of an object of any kind. It needs the revision seen.
	patchMetadata verb = "patch metadata of"
	// remove deletes an object. It needs the UID seen.
	remove verb = "delete"
	// bind puts a Pod on the node in its specification.
	bind verb = "bind"
	// scale sets the replicas of an object by its subresource.
	scale verb = "scale"
	// finalize updates a namespace without a finalizer in its specification.
	finalize verb = "finalize"
)

// write is a change of an object.
type write struct {
	verb   verb
	object client.Object
	// kind is that of the object. The zero value stands for that of its type.
	kind schema.GroupKind
	// policy and grace are those of a deletion; nil are those of the kind.
	policy *metav1.DeletionPropagation
	grace  *int64
	// replicas is what is set by scale.
	replicas int32
	// unchanged says that a deletion needs also the revision seen.
	unchanged bool
	// absent are owners whose absence is looked up before the write. One that is there prevents it.
	absent []owner
}

func (w write) String() string {
	name := w.object.GetName()
	if name == "" {
		name = w.object.GetGenerateName() + "*"
	}
	s := fmt.Sprintf("%s %s %s", w.verb, w.groupKind().Kind, name)
	if w.policy != nil {
		s += " " + string(*w.policy)
	}
	if w.verb == scale {
		s += fmt.Sprintf(" to %d", w.replicas)
	}
	return s
}

func (w write) groupKind() schema.GroupKind {
	if w.kind.Kind != "" {
		return w.kind
	}
	return kindOf(w.object)
}

// changed returns the write if an object differs from what it was, else none.
func changed(v verb, obj, was client.Object) []write {
	if equality.Semantic.DeepEqual(obj, was) {
		return nil
	}
	return []write{{verb: v, object: obj}}
}

// deletion deletes an object with its dependents after it.
func deletion(obj client.Object) write {
	policy := metav1.DeletePropagationBackground
	return write{verb: remove, object: obj, policy: &policy}
}
