package controllers

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// key names an object.
type key struct {
	schema.GroupKind
	namespace, name string
}

func compareKeys(a, b key) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
}

// view is what is known of a cluster. Objects in it are not changed: each change puts another one in its place. Kinds
// that no controller but the garbage collector looks at have metadata only.
type view struct {
	tables map[schema.GroupKind]*table
	// owned are the objects with an owner reference to a UID.
	owned map[types.UID]map[key]bool
	// marked are the objects with a mark.
	marked map[mark]map[key]bool
}

// table has the objects of a kind by namespace and name.
type table struct {
	resource schema.GroupResource
	// namespaced says that objects are in namespaces.
	namespaced bool
	// synced says that all objects are there that the kind had at some time.
	synced  bool
	objects map[string]map[string]client.Object
}

func newView() *view {
	return &view{
		tables: map[schema.GroupKind]*table{}, owned: map[types.UID]map[key]bool{}, marked: map[mark]map[key]bool{},
	}
}

// forget forgets a kind.
func (v *view) forget(kind schema.GroupKind) {
	for _, k := range v.keys(kind, "") {
		v.unindex(k, v.find(k))
	}
	delete(v.tables, kind)
}

func (v *view) find(k key) client.Object {
	t := v.tables[k.GroupKind]
	if t == nil {
		return nil
	}
	return t.objects[k.namespace][k.name]
}

// put takes an object over, unless a newer state of it is known. It returns the state before.
func (v *view) put(k key, obj client.Object) (old client.Object, changed bool) {
	t := v.tables[k.GroupKind]
	if t == nil {
		return nil, false
	}
	old = t.objects[k.namespace][k.name]
	if old != nil {
		if !newer(obj, old) {
			return old, false
		}
		v.unindex(k, old)
	}
	if t.objects[k.namespace] == nil {
		t.objects[k.namespace] = map[string]client.Object{}
	}
	t.objects[k.namespace][k.name] = obj
	for _, reference := range obj.GetOwnerReferences() {
		include(v.owned, reference.UID, k)
	}
	for _, m := range marksOf(k, obj) {
		include(v.marked, m, k)
	}
	return old, true
}

// remove forgets an object, unless it is another one of the same name.
func (v *view) remove(k key, uid types.UID) (old client.Object, changed bool) {
	old = v.find(k)
	if old == nil || old.GetUID() != uid {
		return nil, false
	}
	v.unindex(k, old)
	delete(v.tables[k.GroupKind].objects[k.namespace], k.name)
	return old, true
}

// markDeleted marks an object as one that is being deleted, until a watch says what became of it.
func (v *view) markDeleted(k key, uid types.UID) {
	old := v.find(k)
	if old == nil || old.GetUID() != uid || old.GetDeletionTimestamp() != nil {
		return
	}
	obj := old.DeepCopyObject().(client.Object)
	obj.SetDeletionTimestamp(new(metav1.Now()))
	v.tables[k.GroupKind].objects[k.namespace][k.name] = obj
}

// unindex has an object not be found by its owners and marks any more.
func (v *view) unindex(k key, obj client.Object) {
	for _, reference := range obj.GetOwnerReferences() {
		exclude(v.owned, reference.UID, k)
	}
	for _, m := range marksOf(k, obj) {
		exclude(v.marked, m, k)
	}
}

func include[T comparable](index map[T]map[key]bool, by T, k key) {
	if index[by] == nil {
		index[by] = map[key]bool{}
	}
	index[by][k] = true
}

func exclude[T comparable](index map[T]map[key]bool, by T, k key) {
	delete(index[by], k)
	if len(index[by]) == 0 {
		delete(index, by)
	}
}

// newer reports whether an object is of a higher revision than another one. All revisions of a cluster have one order.
func newer(a, b client.Object) bool {
	return compareRevisions(a.GetResourceVersion(), b.GetResourceVersion()) > 0
}

// compareRevisions compares resource versions by their age. One that is not a number is the oldest.
func compareRevisions(a, b string) int {
	first, _ := strconv.ParseUint(a, 10, 64)
	second, _ := strconv.ParseUint(b, 10, 64)
	return cmp.Compare(first, second)
}

// keys returns the objects of a kind in their order, all namespaces if namespace is empty.
func (v *view) keys(kind schema.GroupKind, namespace string) []key {
	t := v.tables[kind]
	if t == nil {
		return nil
	}
	var all []key
	add := func(namespace string) {
		for name := range t.objects[namespace] {
			all = append(all, key{kind, namespace, name})
		}
	}
	if namespace != "" {
		add(namespace)
	} else {
		for each := range t.objects {
			add(each)
		}
	}
	slices.SortFunc(all, compareKeys)
	return all
}

// kinds returns the kinds that are watched, in their order.
func (v *view) kinds() []schema.GroupKind {
	return slices.SortedFunc(maps.Keys(v.tables), func(a, b schema.GroupKind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
	})
}

// dependents returns the objects with an owner reference to an object.
func (v *view) dependents(owner types.UID) []key {
	return slices.SortedFunc(maps.Keys(v.owned[owner]), compareKeys)
}

// list returns the objects of a kind in their order, all namespaces if namespace is empty.
func list[T client.Object](v *view, kind schema.GroupKind, namespace string) []T {
	var all []T
	for _, k := range v.keys(kind, namespace) {
		if obj, ok := v.find(k).(T); ok {
			all = append(all, obj)
		}
	}
	return all
}

// get returns an object; ok is false if it is not there.
func get[T client.Object](v *view, kind schema.GroupKind, namespace, name string) (obj T, ok bool) {
	obj, ok = v.find(key{kind, namespace, name}).(T)
	return obj, ok
}

// controlled returns the objects of a type whose controller an object is.
func controlled[T client.Object](v *view, owner client.Object) []T {
	var all []T
	for _, k := range v.dependents(owner.GetUID()) {
		obj, ok := v.find(k).(T)
		if ok && metav1.IsControlledBy(obj, owner) {
			all = append(all, obj)
		}
	}
	return all
}
