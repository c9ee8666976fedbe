package memserver

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/espalier-dev/espalier/testing/internal/fieldmanager"
)

// maxHistory limits the history that a record keeps. At the limit the history is replayed, so that a test that updates
// one object in a loop neither keeps all its versions nor pays for each of them.
const maxHistory = 256

// revision is one write that has not been replayed yet.
type revision struct {
	object  client.Object
	manager string
}

// fieldManagers compute managed fields. There is one field manager per kind.
//
// Most tests do not use server-side apply, and to keep managed fields current would cost more than the rest of a write.
// So a record starts with a history of revisions, which costs one element of a slice for each write. The first write
// that needs the managed fields replays the history.
type fieldManagers struct {
	scheme   *runtime.Scheme
	managers map[schema.GroupVersionKind]*fieldmanager.Manager
}

func (f *fieldManagers) manager(kind schema.GroupVersionKind) (*fieldmanager.Manager, error) {
	if m, ok := f.managers[kind]; ok {
		return m, nil
	}
	empty, err := f.empty(kind)
	if err != nil {
		return nil, fmt.Errorf("cannot track the fields of %s: %w", kind, err)
	}
	m := fieldmanager.New(kind, fieldmanager.BuiltInOrDeduced, func() client.Object { return copyOf(empty) },
		func(string) map[fieldpath.APIVersion]*fieldpath.Set { return nil })
	f.managers[kind] = m
	return m, nil
}

// replay returns the managed fields after the writes of a history.
func (f *fieldManagers) replay(kind schema.GroupVersionKind, history []revision) (*fieldmanager.Fields, error) {
	var live client.Object
	var fields *fieldmanager.Fields
	for _, r := range history {
		var err error
		if fields, err = f.update(kind, live, fields, r); err != nil {
			return nil, err
		}
		live = r.object
	}
	return fields, nil
}

// update returns the managed fields that a write leaves behind. Live is the object before, with its managed fields, or
// nil.
func (f *fieldManagers) update(
	kind schema.GroupVersionKind, live client.Object, fields *fieldmanager.Fields, r revision,
) (*fieldmanager.Fields, error) {
	m, err := f.manager(kind)
	if err != nil {
		return nil, err
	}
	w := fieldmanager.Write{Manager: r.manager, Time: time.Now(), Sent: r.object.GetManagedFields()}
	return m.Updated(live, r.object, fields, w), nil
}

// apply merges what is applied into live and returns the result, and its managed fields. Live is nil if the object
// does not exist.
func (f *fieldManagers) apply(
	kind schema.GroupVersionKind, live *record, request applyRequest,
) (client.Object, *fieldmanager.Fields, error) {
	m, err := f.manager(kind)
	if err != nil {
		return nil, nil, err
	}
	w := fieldmanager.Write{Manager: request.manager, Subresource: request.subresource, Time: time.Now()}
	if live == nil {
		return m.Applied(nil, nil, request.object, request.force, w)
	}
	return m.Applied(live.object, live.fields, request.object, request.force, w)
}

func (f *fieldManagers) empty(kind schema.GroupVersionKind) (client.Object, error) {
	obj, err := f.scheme.New(kind)
	if err != nil {
		return nil, err
	}
	obj.GetObjectKind().SetGroupVersionKind(kind)
	return asObject(obj)
}
