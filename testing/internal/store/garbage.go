package store

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/garbage"
	"github.com/espalier-dev/espalier/testing/internal/registry"
)

// controlPlane is the field manager of the control plane itself.
const controlPlane = "kube-controller-manager"

// CollectGarbage does what the controllers of the control plane do in the end: it deletes dependents whose owners are
// gone, ends foreground and orphan deletions, and empties and removes terminating namespaces. It reports whether
// something changed. An object with a finalizer stays.
//
// It follows "Garbage Collection" in the Kubernetes documentation. An object stays if an owner reference has no UID, or
// a kind that is not served.
func (s *Store) CollectGarbage() (changed bool) {
	start := s.Revision()
	for s.collects() {
		c := collector{s, s.kinds()}
		for _, obj := range s.Objects() {
			// What was done for others may have changed or removed it.
			if live := s.find(c.served, keyOf(obj)); live != nil {
				c.collect(live)
			}
		}
		c.collectNamespaces()
	}
	return s.Revision() != start
}

// collects reports whether there may be garbage, and notes that there is none now.
func (s *Store) collects() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	revision := s.kept.Revision()
	may := s.collected != revision
	s.collected = revision
	return may
}

// collector collects garbage once.
type collector struct {
	store  *Store
	served *kinds
}

// collect does what is due for one object.
func (c collector) collect(obj client.Object) {
	todo := garbage.Decide(obj,
		func(reference metav1.OwnerReference) garbage.State { return c.ownerState(obj, reference) },
		func() []metav1.Object {
			var objects []metav1.Object
			for _, dependent := range c.dependents(obj) {
				objects = append(objects, dependent)
			}
			return objects
		})
	if todo.Orphan {
		for _, dependent := range c.dependents(obj) {
			c.change(dependent, func(d client.Object) { garbage.DropOwners(d, obj.GetUID()) })
		}
	}
	if todo.RemoveFinalizer != "" {
		c.change(obj, func(obj client.Object) { garbage.RemoveFinalizer(obj, todo.RemoveFinalizer) })
	}
	if len(todo.DropOwners) > 0 {
		c.change(obj, func(obj client.Object) { garbage.DropOwners(obj, todo.DropOwners...) })
	}
	if todo.Unblock {
		c.change(obj, func(obj client.Object) { garbage.Unblock(obj) })
	}
	if todo.Delete != "" {
		c.delete(obj, todo.Delete)
	}
}

// ownerState looks up an owner of an object, in its own namespace if the owner is in one.
func (c collector) ownerState(obj client.Object, reference metav1.OwnerReference) garbage.State {
	gvk := schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind)
	k := c.served.find(gvk.GroupKind())
	if k.Version(gvk.Version) == nil || k.IsNamespaced() && obj.GetNamespace() == "" {
		return garbage.Unknown
	}
	owner := c.store.find(c.served, newKey(k.GroupKind, k.NamespaceOf(obj.GetNamespace()), reference.Name))
	if owner == nil && k.Scope == registry.AnyScope {
		owner = c.store.find(c.served, newKey(k.GroupKind, "", reference.Name))
	}
	switch {
	case owner == nil || owner.GetUID() != reference.UID:
		return garbage.Gone
	case garbage.DeletesDependents(owner):
		return garbage.Waiting
	}
	return garbage.Solid
}

// dependents returns the objects with an owner reference to an object.
func (c collector) dependents(owner client.Object) []client.Object {
	return slices.DeleteFunc(c.store.Objects(), func(obj client.Object) bool {
		return owner.GetNamespace() != "" && obj.GetNamespace() != owner.GetNamespace() || !refers(obj, owner)
	})
}

// refers reports whether an object has a reference to an owner.
func refers(obj, owner client.Object) bool {
	return slices.ContainsFunc(obj.GetOwnerReferences(), func(reference metav1.OwnerReference) bool {
		return reference.UID == owner.GetUID()
	})
}

// change changes an object as the control plane does. An object that a change would make invalid stays as it is.
func (c collector) change(obj client.Object, change func(client.Object)) {
	live := c.store.find(c.served, keyOf(obj))
	if live == nil {
		return
	}
	next := unstructuredOf(live)
	change(next)
	c.call(next, func(ctx context.Context, remote client.Client) error {
		return remote.Update(ctx, next, client.FieldOwner(controlPlane))
	})
}

// delete deletes an object as the control plane does.
func (c collector) delete(obj client.Object, policy metav1.DeletionPropagation) {
	c.call(obj, func(ctx context.Context, remote client.Client) error {
		return remote.Delete(ctx, unstructuredOf(obj), client.PropagationPolicy(policy),
			client.Preconditions{UID: new(obj.GetUID())})
	})
}

// call makes a call of the control plane about an object. What an API server refuses it leaves as it is.
func (c collector) call(about client.Object, make func(ctx context.Context, remote client.Client) error) {
	gvk := about.GetObjectKind().GroupVersionKind()
	remote, err := c.served.remote(c.store.options.Scheme, gvk, about.GetNamespace() == "")
	if err != nil {
		return
	}
	_ = make(c.store.world().In(context.Background()), remote)
}

// unstructuredOf returns a copy of an object.
func unstructuredOf(obj client.Object) *unstructured.Unstructured {
	content, err := contentOf(obj)
	if err != nil {
		return &unstructured.Unstructured{}
	}
	u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(content)}
	u.SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	return u
}

// collectNamespaces deletes what is in terminating namespaces, and removes those that are empty.
func (c collector) collectNamespaces() {
	for _, e := range c.store.kept.Entries("/namespaces/") {
		ns := c.served.object(e)
		if ns.GetDeletionTimestamp() != nil && c.emptyNamespace(ns.GetName()) {
			c.finalizeNamespace(ns)
		}
	}
}

// emptyNamespace deletes what is in a namespace. It reports whether nothing is left.
func (c collector) emptyNamespace(namespace string) bool {
	in := func(obj client.Object) bool { return obj.GetNamespace() == namespace }
	for _, obj := range c.store.Objects() {
		if in(obj) {
			c.delete(obj, metav1.DeletePropagationBackground)
		}
	}
	return !slices.ContainsFunc(c.store.Objects(), in)
}

// finalizeNamespace removes a terminating namespace that is empty, unless it has other finalizers than that of the
// control plane.
func (c collector) finalizeNamespace(obj client.Object) {
	ns, ok := obj.DeepCopyObject().(*corev1.Namespace)
	if !ok || len(ns.Spec.Finalizers) == 0 && len(ns.Finalizers) > 0 {
		return
	}
	ns.Spec.Finalizers = slices.DeleteFunc(ns.Spec.Finalizers, isKubernetes)
	u := unstructuredOf(ns)
	c.call(ns, func(ctx context.Context, remote client.Client) error {
		return remote.SubResource("finalize").Update(ctx, u, client.FieldOwner(controlPlane))
	})
}

func isKubernetes(f corev1.FinalizerName) bool { return f == corev1.FinalizerKubernetes }
