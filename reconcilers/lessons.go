package reconcilers

import (
	"context"
	"maps"
	"sync"

	"github.com/espalier-dev/espalier/internal/digest"
	"github.com/espalier-dev/espalier/internal/managedfields"
	"github.com/espalier-dev/espalier/internal/statusfield"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// intent identifies what is desired of an object: two equal intents desire the same.
type intent struct {
	digest uint64
	known  bool
}

// intentOf returns the intent of desired. A value that has no digest desires something new each time.
func intentOf(desired any) intent {
	sum, ok := digest.Of(desired)
	return intent{digest: sum, known: ok}
}

// intentFor is intentOf for an object that may have been made from actual, as an aggregate makes it unless told otherwise. It then
// repeats what the server and others say about the object, and would be another intent whenever they say something else.
func intentFor(desired, actual client.Object) intent {
	if desired.GetResourceVersion() == "" || desired.GetUID() != actual.GetUID() {
		return intentOf(desired)
	}
	own := desired.DeepCopyObject().(client.Object)
	own.SetUID("")
	own.SetResourceVersion("")
	own.SetGeneration(0)
	own.SetCreationTimestamp(metav1.Time{})
	own.SetManagedFields(nil)
	// To repeat something is another intent than to want it gone.
	var repeats struct{ labels, annotations, status bool }
	if labels := own.GetLabels(); len(labels) > 0 && maps.Equal(labels, actual.GetLabels()) {
		own.SetLabels(nil)
		repeats.labels = true
	}
	if annotations := own.GetAnnotations(); len(annotations) > 0 && maps.Equal(annotations, actual.GetAnnotations()) {
		own.SetAnnotations(nil)
		repeats.annotations = true
	}
	if status := statusfield.Of(own); status.Exists() && !status.Differs(statusfield.Of(actual)) {
		status.Clear()
		repeats.status = true
	}
	return intentOf([]any{own, repeats})
}

// lesson is what a manager knows of an object from its last write, or its last comparison.
type lesson struct {
	intent intent
	// version is the resource version at which object and intent agreed.
	version string
	// round is when the lesson was last used.
	round uint64
	// additions are what the server adds to what is desired; nil if nothing, or not known.
	additions *Patch
	// accepted are the differences that an apply leaves.
	accepted managedfields.Differences
}

// agreed tells whether actual is still the very version that agreed with the intent.
func (l lesson) agreed(actual client.Object) bool {
	return l.version != "" && l.version == actual.GetResourceVersion()
}

// sameVersion tells whether a and b are one version of an object, and not just two without one.
func sameVersion(a, b client.Object) bool {
	version := a.GetResourceVersion()
	return version != "" && version == b.GetResourceVersion()
}

// newAdditions is the difference between what was desired (merged into base) and what the server made of it. It applies to
// desired, whose generation is not that of an object in the cluster.
func newAdditions(base, written, desired client.Object) (*Patch, error) {
	patch, err := NewPatch(base, written)
	if err != nil {
		return nil, err
	}
	if string(patch.bytes) == "[]" {
		return nil, nil
	}
	patch.generation = desired.GetGeneration()
	return patch, nil
}

// lessonLimit bounds what a manager remembers where there is no root to remember for it.
const lessonLimit = 4096

// lessons are those of one manager. Below a root they are kept in the memory of the reconciled resource and go with it;
// elsewhere (a manager called by a hand-written reconciler) the manager keeps the latest ones itself.
type lessons struct {
	own latestLessons
}

func (l *lessons) init() {
	l.own = latestLessons{lru.New(lessonLimit)}
}

func (l *lessons) of(ctx context.Context) notebook {
	if p := scopeOf(ctx).pass; p != nil && p.memory != nil {
		return notebook{recall(p.memory, l, func() *resourceLessons { return &resourceLessons{byUID: map[types.UID]lesson{}} })}
	}
	return notebook{l.own}
}

// notebook is where to look lessons up, by the UID of the object.
type notebook struct {
	shelf
}

// recall returns the lesson about the object, empty if there is none for the intent.
func (n notebook) recall(uid types.UID, intent intent) lesson {
	known := n.get(uid)
	if !intent.known || known.intent != intent {
		return lesson{}
	}
	return known
}

// agree notes that actual agrees with the intent, given what the server adds to it. An object without a UID, as tests have, is
// not remembered.
func (n notebook) agree(actual client.Object, intent intent, known lesson) {
	uid := actual.GetUID()
	if uid == "" || !intent.known {
		return
	}
	known.intent = intent
	known.version = actual.GetResourceVersion()
	n.put(uid, known)
}

// shelf keeps lessons. It is safe for concurrent use.
type shelf interface {
	get(types.UID) lesson
	put(types.UID, lesson)
	forget(types.UID)
}

// latestLessons keep those that were used last.
type latestLessons struct {
	cache *lru.Cache
}

func (l latestLessons) get(uid types.UID) lesson {
	known, _ := l.cache.Get(uid)
	found, _ := known.(lesson)
	return found
}

func (l latestLessons) put(uid types.UID, known lesson) { l.cache.Add(uid, known) }

func (l latestLessons) forget(uid types.UID) { l.cache.Remove(uid) }

// resourceLessons are those about the children of one resource.
type resourceLessons struct {
	mu    sync.Mutex
	byUID map[types.UID]lesson
	// round counts the requests.
	round uint64
}

var _ sweeper = (*resourceLessons)(nil)

// sweep drops the lessons that have not been used for a while: their objects are gone, or not this tree's any more.
func (l *resourceLessons) sweep() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for uid, known := range l.byUID {
		if l.round-known.round > patience {
			delete(l.byUID, uid)
		}
	}
	l.round++
	return len(l.byUID) > 0
}

func (l *resourceLessons) get(uid types.UID) lesson {
	l.mu.Lock()
	defer l.mu.Unlock()
	known, ok := l.byUID[uid]
	if ok && known.round != l.round {
		known.round = l.round
		l.byUID[uid] = known
	}
	return known
}

func (l *resourceLessons) put(uid types.UID, known lesson) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known.round = l.round
	l.byUID[uid] = known
}

func (l *resourceLessons) forget(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byUID, uid)
}
