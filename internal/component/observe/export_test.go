package observe

import (
	"context"

	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/component/secretdata"
	"github.com/espalier-dev/espalier/internal/informer"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// WatchReason and ReadReason say what an error means.
func WatchReason(err error, verb string) string { return classify(err).watchReason(verb) }
func ReadReason(err error) string               { return classify(err).readReason() }

// CompareContent compares what is desired with data, which it wipes.
func CompareContent(desired map[string]string, ignore []string, data map[string][]byte) plan.Content {
	return compareContent(FingerprintsOf(desired), ignore, takeFingerprints(data))
}

// FingerprintsOf returns the fingerprints of data in base64.
func FingerprintsOf(data map[string]string) map[string]secretdata.Fingerprint {
	prints := map[string]secretdata.Fingerprint{}
	for key, text := range data {
		prints[key] = secretdata.OfBase64(key, text)
	}
	return prints
}

// Offline keeps the observer from watching anything by itself. What the watches show comes from the methods below.
func (w *Watching) Offline() {
	w.watchType = func(ctx context.Context, _ *watchedType) { <-ctx.Done() }
	w.watchName = func(ctx context.Context, _ *nameWatch, _ schema.GroupVersionResource, _ types.NamespacedName) {
		<-ctx.Done()
	}
}

// named returns the store of the first watch by name.
func (w *Watching) named() informer.Events {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.states {
		for _, n := range s.names {
			return w.storeOfName(n)
		}
	}
	return informer.Events{}
}

// NameListed is a list that the first watch by name begins with, and NameShown and NameGone are events of it.
func (w *Watching) NameListed(version string, objects ...any) {
	_ = w.named().Replace(objects, version)
}
func (w *Watching) NameShown(object metav1.Object) { _ = w.named().Update(object) }
func (w *Watching) NameGone(object metav1.Object)  { _ = w.named().Delete(object) }

// Names is how many objects are watched by name.
func (w *Watching) Names() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.names
}

// Listed is a list that a watch of a type begins with.
func (w *Watching) Listed(gk schema.GroupKind, version string, objects ...any) {
	w.mu.Lock()
	k := w.types[gk]
	w.mu.Unlock()
	_ = w.storeOf(k).Replace(objects, version)
}

// Opened is that the watch of a type is open.
func (w *Watching) Opened(gk schema.GroupKind) {
	w.locked(func(wake *wakeups) {
		w.types[gk].stream = &stream{}
		w.setLive(w.types[gk], wake)
	})
}

// Interrupted is that the watch of a type ends, and is not open again yet.
func (w *Watching) Interrupted(gk schema.GroupKind) {
	w.mu.Lock()
	open := w.types[gk].stream
	w.mu.Unlock()
	open.Interface, open.watching, open.typ = watch.NewEmptyWatch(), w, w.types[gk]
	open.Stop()
}

// Failed is that a type could not be watched.
func (w *Watching) Failed(gk schema.GroupKind, err error) {
	w.mu.Lock()
	k := w.types[gk]
	w.mu.Unlock()
	w.unwatchable(k, err, "listed")
}

// Lost is that a type is not served any more.
func (w *Watching) Lost(gk schema.GroupKind) {
	w.mu.Lock()
	k := w.types[gk]
	w.mu.Unlock()
	w.lost(k)
}

// Shown and Gone are events of a watch.
func (w *Watching) Shown(gk schema.GroupKind, object metav1.Object) {
	w.mu.Lock()
	k := w.types[gk]
	w.mu.Unlock()
	s := w.storeOf(k)
	_ = s.Update(object)
	s.UpdateResourceVersion(object.GetResourceVersion())
}

func (w *Watching) Gone(gk schema.GroupKind, object metav1.Object) {
	w.mu.Lock()
	k := w.types[gk]
	w.mu.Unlock()
	s := w.storeOf(k)
	_ = s.Delete(object)
	s.UpdateResourceVersion(object.GetResourceVersion())
}

// Progressed is a bookmark.
func (w *Watching) Progressed(gk schema.GroupKind, version string) {
	w.mu.Lock()
	k := w.types[gk]
	w.mu.Unlock()
	w.storeOf(k).UpdateResourceVersion(version)
}

// Types is how many types are watched, Components how many components are known.
func (w *Watching) Types() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.types)
}

func (w *Watching) Components() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.states)
}
