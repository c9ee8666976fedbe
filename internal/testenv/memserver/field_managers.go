package memserver

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// beforeFirstApply is the manager of the fields of a given object. A real server uses this name for fields without a
// recorded manager.
const beforeFirstApply = "before-first-apply"

// maxHistory limits the history that a record keeps. At the limit the history is replayed, so that a test that updates
// one object in a loop neither keeps all its versions nor pays for each of them.
const maxHistory = 256

// revision is one write that has not been replayed yet.
type revision struct {
	object  client.Object
	manager string
}

// fieldManagers compute managed fields. There is one field manager per kind and subresource.
//
// Most tests do not use server-side apply, and to keep managed fields current would cost more than the rest of a write.
// So a record starts with a history of revisions, which costs one element of a slice for each write. The first write
// that needs the managed fields replays the history.
type fieldManagers struct {
	scheme   *runtime.Scheme
	managers map[managerKey]*managedfields.FieldManager
}

type managerKey struct {
	kind        schema.GroupVersionKind
	subresource string
}

func (f *fieldManagers) manager(kind schema.GroupVersionKind, subresource string) (*managedfields.FieldManager, error) {
	key := managerKey{kind, subresource}
	if m, ok := f.managers[key]; ok {
		return m, nil
	}
	m, err := managedfields.NewDefaultFieldManager(
		builtInConverters(), f.scheme, noDefaults{}, f.scheme, kind, kind.GroupVersion(), subresource, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot track the fields of %s: %w", kind, err)
	}
	f.managers[key] = m
	return m, nil
}

// replay applies the writes of a history in their order, and returns the last object with its managed fields.
func (f *fieldManagers) replay(kind schema.GroupVersionKind, history []revision) (client.Object, error) {
	manager, err := f.manager(kind, "")
	if err != nil {
		return nil, err
	}
	live, err := f.empty(kind)
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
func (f *fieldManagers) update(
	kind schema.GroupVersionKind, live, next client.Object, manager string,
) (client.Object, error) {
	m, err := f.manager(kind, "")
	if err != nil {
		return nil, err
	}
	next.GetObjectKind().SetGroupVersionKind(kind)
	return asObject(m.UpdateNoErrors(live, next, manager))
}

// apply merges what is applied into live and returns the result. An empty live object, as made by empty, stands for one
// that does not exist yet.
func (f *fieldManagers) apply(
	kind schema.GroupVersionKind, live client.Object, request applyRequest,
) (client.Object, error) {
	m, err := f.manager(kind, request.subresource)
	if err != nil {
		return nil, err
	}
	merged, err := m.Apply(live, request.object, request.manager, request.force)
	if err != nil {
		return nil, err
	}
	return asObject(merged)
}

func (f *fieldManagers) empty(kind schema.GroupVersionKind) (client.Object, error) {
	obj, err := f.scheme.New(kind)
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
