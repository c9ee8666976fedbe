package memserver

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// seeded is the manager of what an object held before anyone was seen to write it. It is the name that a real server
// gives to what it has no record of.
const seeded = "before-first-apply"

// maxUnsettled bounds the history that an object carries. Beyond it the ownership is worked out, so that a test that
// updates one object in a loop neither keeps all its versions nor pays for each of them.
const maxUnsettled = 256

// revision is one write whose field ownership has not been worked out yet.
type revision struct {
	object  client.Object
	manager string
}

// ownership works out who owns which fields. It keeps a field manager per kind and subresource.
//
// Most objects of most tests never meet server-side apply, and keeping their managed fields current would cost more than
// all the rest of a write. So a record starts with a history of revisions, which costs a slice element a write, and is
// settled, by replaying that history, at the first write for which it matters.
type ownership struct {
	scheme    *runtime.Scheme
	converter func() managedfields.TypeConverter
	managers  map[managerKey]*managedfields.FieldManager
}

type managerKey struct {
	kind        schema.GroupVersionKind
	subresource string
}

func (o *ownership) manager(kind schema.GroupVersionKind, subresource string) (*managedfields.FieldManager, error) {
	key := managerKey{kind, subresource}
	if m, ok := o.managers[key]; ok {
		return m, nil
	}
	m, err := managedfields.NewDefaultFieldManager(
		o.converter(), o.scheme, noDefaults{}, o.scheme, kind, kind.GroupVersion(), subresource, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot track the fields of %s: %w", kind, err)
	}
	o.managers[key] = m
	return m, nil
}

// settle replays a history, oldest write first, and returns the last object of it with its managed fields.
func (o *ownership) settle(kind schema.GroupVersionKind, history []revision) (client.Object, error) {
	manager, err := o.manager(kind, "")
	if err != nil {
		return nil, err
	}
	live, err := o.empty(kind)
	if err != nil {
		return nil, err
	}
	for _, r := range history {
		next := copyOf(r.object)
		next.GetObjectKind().SetGroupVersionKind(kind)
		if live, err = asObject(manager.UpdateNoErrors(live, next, r.manager)); err != nil {
			return nil, err
		}
	}
	return live, nil
}

// update returns next with the managed fields that an update of live to it by manager leaves behind.
func (o *ownership) update(kind schema.GroupVersionKind, live, next client.Object, manager string) (client.Object, error) {
	m, err := o.manager(kind, "")
	if err != nil {
		return nil, err
	}
	next.GetObjectKind().SetGroupVersionKind(kind)
	return asObject(m.UpdateNoErrors(live, next, manager))
}

// apply merges what is applied into live and returns the result. An empty live object, as made by empty, stands for one
// that does not exist yet.
func (o *ownership) apply(kind schema.GroupVersionKind, live client.Object, in intent) (client.Object, error) {
	m, err := o.manager(kind, in.subresource)
	if err != nil {
		return nil, err
	}
	merged, err := m.Apply(live, in.object, in.manager, in.force)
	if err != nil {
		return nil, err
	}
	return asObject(merged)
}

func (o *ownership) empty(kind schema.GroupVersionKind) (client.Object, error) {
	obj, err := o.scheme.New(kind)
	if err != nil {
		return nil, err
	}
	obj.GetObjectKind().SetGroupVersionKind(kind)
	return asObject(obj)
}

// noDefaults is the defaulter of a server that sets no defaults.
type noDefaults struct{}

// Default implements [runtime.ObjectDefaulter].
func (noDefaults) Default(runtime.Object) {}
