package simulation

import (
	"cmp"
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/internal/transport"
	"github.com/espalier-dev/espalier/testing/simulation/internal/state"
)

// early is the resource that the user has deleted before the story does.
type early struct {
	key fault.Key
	// struck says that there was one. It stays when the story has deleted it, too.
	struck bool
}

// userDeletes has the user delete the resource that a request is about. It does nothing if there is none that the story
// created, or if it has done so before.
func (w *World) userDeletes(e transport.Entry) {
	now := w.journal.State()
	obj := w.resourceOf(now, fault.Key{
		Kind: schema.GroupKind{Group: e.Resource.Group, Kind: e.Kind}, Namespace: e.Namespace, Name: e.Name,
	})
	w.mu.Lock()
	struck := w.early.struck
	if obj != nil && !struck {
		w.early = early{obj.Key, true}
	}
	w.mu.Unlock()
	if obj == nil || struck {
		return
	}
	w.recorder.mute(true)
	w.network.Note("the user deletes " + obj.String())
	deleted := &unstructured.Unstructured{}
	deleted.SetGroupVersionKind(obj.Version.WithKind(obj.Kind.Kind))
	deleted.SetNamespace(obj.Namespace)
	deleted.SetName(obj.Name)
	_ = w.Actor.attempt(func(ctx context.Context) error {
		return client.IgnoreNotFound(w.Actor.Client.Delete(ctx, deleted))
	})
}

// resourceOf returns the object of a key or the first of its owners that the story created, or else the last custom
// resource that it created; nil if there is none.
func (w *World) resourceOf(now state.State, key fault.Key) *state.Object {
	for obj := now.Get(key); obj != nil; obj = now.Get(key) {
		if w.byStory(now, obj) {
			return obj
		}
		owner := metav1.GetControllerOf(&unstructured.Unstructured{Object: obj.Fields()})
		if owner == nil {
			break
		}
		key.Kind, key.Name = schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind(), owner.Name
	}
	var all []*state.Object
	for _, d := range w.options.Definitions {
		all = append(all, now.Of(schema.GroupKind{Group: d.Spec.Group, Kind: d.Spec.Names.Kind})...)
	}
	all = slices.DeleteFunc(all, func(obj *state.Object) bool { return !w.byStory(now, obj) })
	if len(all) == 0 {
		return nil
	}
	return slices.MaxFunc(all, func(a, b *state.Object) int {
		return cmp.Or(now.Created(a.UID).At.Compare(now.Created(b.UID).At), a.Compare(b.Key))
	})
}

// byStory reports whether the story created an object, and nobody has deleted it.
func (w *World) byStory(now state.State, obj *state.Object) bool {
	actor := now.Created(obj.UID).Actor
	return !obj.Deleted && actor != "" && actor != cluster && !w.options.isOperator(actor)
}

// deletes reports whether an object, which the story deletes, is the one that the user has deleted before. From now on
// the story counts then.
func (w *World) deletes(obj client.Object) bool {
	gvk, err := apiutil.GVKForObject(obj, w.options.Scheme)
	w.mu.Lock()
	defer w.mu.Unlock()
	key := fault.Key{Kind: gvk.GroupKind(), Namespace: obj.GetNamespace(), Name: obj.GetName()}
	if err != nil || w.early.key != key {
		return false
	}
	w.early.key = fault.Key{}
	w.recorder.mute(false)
	return true
}

// isEarly reports whether the user has deleted a resource before the story.
func (w *World) isEarly() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.early.struck
}

// calmly is how much later the user deletes a resource to tell whether the story depends on it: less than a story
// rests, and more than an operator takes to come to rest.
const calmly = 10 * time.Minute
