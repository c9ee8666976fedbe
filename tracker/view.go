package tracker

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/reference"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	_ Tracker       = view{}
	_ Rounds        = view{}
	_ KindObservers = view{}
	_ Views         = view{}
	_ Sizer         = view{}
)

// view is the Tracker of one cluster and one controller. It turns objects into the keys of the store that all views
// share.
type view struct {
	store      *store
	scheme     *runtime.Scheme
	cluster    any
	controller string
}

func (v view) TrackReference(ref Reference, obj client.Object) error {
	if obj == nil {
		return errors.New("unable to track: there is no watcher")
	}
	return v.store.track(v.watcher(obj), v.cluster, ref)
}

func (v view) TrackObject(ref client.Object, obj client.Object) error {
	r, err := v.reference(ref)
	if err != nil {
		return err
	}
	return v.TrackReference(r, obj)
}

func (v view) GetObservers(obj client.Object) ([]types.NamespacedName, error) {
	return v.observers(obj, func(watcherKey) bool { return true })
}

func (v view) ObserversOfKind(obj client.Object, watcher schema.GroupKind) ([]types.NamespacedName, error) {
	return v.observers(obj, func(key watcherKey) bool {
		return key.kind == watcher || key.kind.Empty()
	})
}

func (v view) observers(obj client.Object, wanted func(watcherKey) bool) ([]types.NamespacedName, error) {
	ref, err := v.reference(obj)
	if err != nil {
		return nil, err
	}
	names := []types.NamespacedName{}
	v.store.observers(v.cluster, ref, obj.GetLabels(), func(key watcherKey) {
		mine := v.controller == "" || key.controller == "" || key.controller == v.controller
		if mine && wanted(key) {
			names = append(names, key.name)
		}
	})
	slices.SortFunc(names, func(a, b types.NamespacedName) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return slices.Compact(names), nil
}

func (v view) BeginRound(obj client.Object) {
	if obj != nil {
		v.store.beginRound(v.watcher(obj))
	}
}

func (v view) EndRound(obj client.Object, complete bool) {
	if obj != nil {
		v.store.endRound(v.watcher(obj), complete)
	}
}

func (v view) Forget(obj client.Object) {
	if obj != nil {
		v.store.forget(v.watcher(obj))
	}
}

func (v view) InCluster(cluster any) Tracker {
	if cluster != nil && !reflect.ValueOf(cluster).Comparable() {
		panic(fmt.Errorf("tracker.InCluster: a %T cannot identify a cluster, it is not comparable", cluster))
	}
	v.cluster = cluster
	return v
}

func (v view) ForController(name string) Tracker {
	v.controller = name
	return v
}

func (v view) Size() Size {
	return v.store.size()
}

// reference returns the Reference to obj itself.
func (v view) reference(obj client.Object) (Reference, error) {
	ref, err := reference.GetReference(v.scheme, obj)
	if err != nil {
		return Reference{}, err
	}
	return Reference{
		APIGroup:  ref.GroupVersionKind().Group,
		Kind:      ref.Kind,
		Namespace: ref.Namespace,
		Name:      ref.Name,
	}, nil
}

// watcher identifies obj as a watcher. Where its kind is unknown, it is left empty rather than refused: a watcher of an
// unregistered type still hears of what it tracks, it only cannot be told from one of another kind with the same name.
func (v view) watcher(obj client.Object) watcherKey {
	key := watcherKey{controller: v.controller, name: client.ObjectKeyFromObject(obj)}
	if gvk := obj.GetObjectKind().GroupVersionKind(); gvk.Kind != "" {
		key.kind = gvk.GroupKind()
	} else if v.scheme != nil {
		if gvks, _, err := v.scheme.ObjectKinds(obj); err == nil && len(gvks) > 0 {
			key.kind = gvks[0].GroupKind()
		}
	}
	return key
}
