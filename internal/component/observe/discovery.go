package observe

import (
	"context"
	"slices"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/kinds"
	"github.com/espalier-dev/espalier/internal/served"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A type becomes known in one of these ways, of which the first costs no request:
//
//   - A definition that a component has an interest in is read, since the component waits until it is established. It
//     says where its type is served (define).
//   - The mapper knows the type, or asks for all types (resolve).
//   - The API server is asked about the group. Only this shows that a type is not served: an API that does not answer
//     is missing among all types, too (locate).
//   - A type that was not served is followed by [informer.Kinds] (awaitServed).

// maxLag is how often a type may be denied that is established: an API server begins to serve it a moment later.
const maxLag = 4

// set stores what the component says of an object.
func (w *Watching) set(e *entry, in *Interest) {
	e.set(in)
	if in.Key.GroupKind() == kinds.CustomResourceDefinition && !slices.Equal(w.defines[e], in.Defines) {
		w.setDefines(e, in.Defines)
	}
}

// setDefines stores which types an object defines.
func (w *Watching) setDefines(e *entry, defines []apis.ManagedType) {
	for _, defined := range w.defines[e] {
		gk := schema.GroupKind{Group: defined.Group, Kind: defined.Kind}
		w.definers[gk] = slices.DeleteFunc(w.definers[gk], func(other *entry) bool { return other == e })
		if len(w.definers[gk]) == 0 {
			delete(w.definers, gk)
		}
		if t := w.types[gk]; t != nil {
			t.Wake()
		}
	}
	for _, defined := range defines {
		gk := schema.GroupKind{Group: defined.Group, Kind: defined.Kind}
		w.definers[gk] = append(w.definers[gk], e)
	}
	if delete(w.defines, e); len(defines) > 0 {
		w.defines[e] = defines
	}
}

// awaitsDefinition reports whether a definition will say when a type is served. The API server is then not asked.
func (w *Watching) awaitsDefinition(gk schema.GroupKind) bool {
	return slices.ContainsFunc(w.definers[gk], func(e *entry) bool { return !e.established })
}

// learn returns the definition that an object is, and nil for other objects. If it is established, the mapper knows its
// type from then on.
func (w *Watching) learn(object *unstructured.Unstructured) *served.Definition {
	d, ok := served.DefinitionOf(object)
	if !ok {
		return nil
	}
	if mapper, can := w.options.Mapper.(served.Discoverer); can && d.Established {
		mapper.Learn(d)
	}
	return d
}

// define stores what a definition said last. It starts to watch its type if that was missing, and has it watched in
// another version if the one before is not served any more. The lock is held.
func (w *Watching) define(e *entry, d *served.Definition, wake *wakeups) {
	if d == nil {
		return
	}
	e.established = d.Established
	t := w.types[d.GroupKind]
	if t == nil || !d.Established {
		return
	}
	t.appear(d.Resource(), maxLag, wake)
	if !t.resource.Empty() && !slices.Contains(d.Versions, t.resource.Version) {
		t.resource, t.lag, t.doubted = d.Resource(), maxLag, false
		t.Wake()
	}
}

// ask asks the API server about a kind that was missing, for [informer.Kinds].
func (w *Watching) ask(ctx context.Context, gvk schema.GroupVersionKind) (schema.GroupVersionResource, error) {
	at, err := w.locate(ctx, gvk.GroupKind(), true)
	if !at.Empty() {
		// It may be back in another version or scope.
		meta.MaybeResetRESTMapper(w.options.Mapper)
	}
	return at, err
}

// awaitServed waits until a type is not missing any more, or ctx is done. The API server is asked at once if it denied
// a type that it served before.
func (w *Watching) awaitServed(ctx context.Context, t *watchedType, denied bool) {
	kind := w.kinds.Of(t.WithVersion(""))
	kind.Missing()
	defer kind.Forget(t)
	for first := true; ctx.Err() == nil; first = false {
		w.mu.Lock()
		phase, defined := t.phase, w.awaitsDefinition(t.GroupKind)
		w.mu.Unlock()
		at := kind.Resource()
		switch {
		case phase != missing:
			return
		case !at.Empty():
			w.locked(func(wake *wakeups) { t.appear(at, 0, wake) })
			return
		case defined:
			kind.Forget(t)
		case first && denied:
			kind.Doubt(t)
		default:
			kind.Await(t)
		}
		select {
		case <-ctx.Done():
		case <-t.signal:
		}
	}
}

// locate finds where a type is served; the result is empty if it is not served. It asks the mapper first, unless what
// the mapper knows is in doubt. A mapper that does not know the type may have had no answer of an API, so then the API
// server is asked about the group.
func (w *Watching) locate(ctx context.Context, gk schema.GroupKind, doubted bool) (schema.GroupVersionResource, error) {
	if !doubted {
		if mapping, err := w.options.Mapper.RESTMapping(gk); err == nil {
			return mapping.Resource, nil
		}
	}
	limited, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return served.Discover(limited, w.discovery, gk)
}

// resolve finds out whether a type is served, and starts to watch it. It fails only if ctx is done.
func (w *Watching) resolve(ctx context.Context, t *watchedType) (err error) {
	w.mu.Lock()
	awaits := w.awaitsDefinition(t.GroupKind)
	w.mu.Unlock()
	var at schema.GroupVersionResource
	if mapper, can := w.options.Mapper.(served.Discoverer); can && awaits {
		if mapping, known := mapper.Known(t.GroupKind); known {
			at = mapping.Resource
		}
	} else {
		at, err = w.locate(ctx, t.GroupKind, false)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case t.phase != unresolved:
	case err != nil:
		t.phase, t.reason = polled, classify(err).watchReason("listed")
	case at.Empty():
		w.setMissing(t)
	default:
		t.phase, t.resource = starting, at
	}
	w.start(t)
	return nil
}

// relocate finds where a type is served that was not found yet, or not where it was before. It reports whether it could
// find out.
func (w *Watching) relocate(
	ctx context.Context, t *watchedType, before schema.GroupVersionResource, doubted bool,
) bool {
	found, err := w.locate(ctx, t.GroupKind, doubted)
	switch {
	case ctx.Err() != nil:
		return false
	case err != nil:
		w.unwatchable(t, err, "listed")
		return false
	case doubted && found == before:
		// Its API denied what discovery says.
		w.unwatchable(t, apierrors.NewServiceUnavailable(""), "listed")
	case doubted:
		meta.MaybeResetRESTMapper(w.options.Mapper)
	}
	if found.Empty() {
		w.lost(t)
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	t.resource, t.doubted = found, false
	return true
}
