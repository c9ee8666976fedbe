package controllers

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/garbage"
)

// owner is what an owner reference names.
type owner struct {
	key
	uid types.UID
}

// garbageCollector deletes objects whose owners are gone, and ends deletions in the foreground and such that orphan.
// See "Garbage Collection" in the Kubernetes documentation.
func garbageCollector() *controller {
	return &controller{name: "kube-controller-manager", decide: collectGarbage, concerns: concernsGarbage}
}

// concernsGarbage returns the owners and the dependents of an object.
func concernsGarbage(v *view, k key, obj client.Object) []key {
	all := v.dependents(obj.GetUID())
	for _, reference := range obj.GetOwnerReferences() {
		if o, ok := v.owner(k, reference); ok {
			all = append(all, o.key)
		}
	}
	return all
}

// owner returns the key of an owner of an object; ok is false if it cannot be looked up.
func (v *view) owner(k key, reference metav1.OwnerReference) (o owner, ok bool) {
	kind := schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind).GroupKind()
	t := v.tables[kind]
	if t == nil || !t.synced || t.namespaced && k.namespace == "" {
		return owner{}, false
	}
	o = owner{key{GroupKind: kind, name: reference.Name}, reference.UID}
	if t.namespaced {
		o.namespace = k.namespace
	}
	return o, true
}

// collectGarbage decides about one object.
func collectGarbage(v *view, k key, obj client.Object, _ time.Time) decision {
	var gone []owner
	state := func(reference metav1.OwnerReference) garbage.State {
		o, ok := v.owner(k, reference)
		if !ok {
			return garbage.Unknown
		}
		found := v.find(o.key)
		switch {
		case found == nil || found.GetUID() != reference.UID:
			gone = append(gone, o)
			return garbage.Gone
		case garbage.DeletesDependents(found):
			return garbage.Waiting
		}
		return garbage.Solid
	}
	todo := garbage.Decide(obj, state, func() []metav1.Object { return v.dependentsIn(k.namespace, obj.GetUID()) })
	return garbageWrites(v, k, obj, todo, gone)
}

// dependentsIn returns the dependents of an owner that is in a namespace, which are in the same one.
func (v *view) dependentsIn(namespace string, owner types.UID) []metav1.Object {
	var all []metav1.Object
	for _, k := range v.dependents(owner) {
		if namespace == "" || namespace == k.namespace {
			all = append(all, v.find(k))
		}
	}
	return all
}

func garbageWrites(v *view, k key, obj client.Object, todo garbage.Action, gone []owner) decision {
	var d decision
	patch := func(k key, obj client.Object, change func(metav1.Object)) {
		next := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: k.namespace, Name: k.name, UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion(),
			OwnerReferences: obj.GetOwnerReferences(), Finalizers: obj.GetFinalizers(),
		}}
		change(next)
		d.add(write{verb: patchMetadata, object: next, kind: k.GroupKind, absent: gone})
	}
	if todo.Orphan {
		for _, dependent := range v.dependents(obj.GetUID()) {
			if k.namespace == "" || k.namespace == dependent.namespace {
				patch(dependent, v.find(dependent), func(o metav1.Object) { garbage.DropOwners(o, obj.GetUID()) })
			}
		}
	}
	switch {
	case todo.RemoveFinalizer != "":
		patch(k, obj, func(o metav1.Object) { garbage.RemoveFinalizer(o, todo.RemoveFinalizer) })
	case len(todo.DropOwners) > 0:
		patch(k, obj, func(o metav1.Object) { garbage.DropOwners(o, todo.DropOwners...) })
	case todo.Unblock:
		patch(k, obj, garbage.Unblock)
	}
	if todo.Delete != "" {
		d.add(write{
			verb: remove, object: obj, kind: k.GroupKind, policy: &todo.Delete, unchanged: true, absent: gone,
		})
	}
	return d
}
