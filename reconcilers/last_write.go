package reconcilers

import (
	"context"
	"maps"

	"github.com/espalier-dev/espalier/internal/digest"
	"github.com/espalier-dev/espalier/internal/resourcestate"
	"github.com/espalier-dev/espalier/internal/statusfield"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// lastWrite is what an object manager knows of an object from its last write, or its last comparison.
type lastWrite struct {
	// desired is the hash of what was desired.
	desired desiredHash
	// version is the resource version at which the object agreed with what was desired.
	version string
	// additions are what the server adds to what is desired. They are nil if it adds nothing, or if that is not known.
	additions *Patch
	// accepted are the differences that an apply leaves.
	accepted differences
}

// agreed reports whether actual is still the very version that agreed with what is desired.
func (l lastWrite) agreed(actual client.Object) bool {
	return l.version != "" && l.version == actual.GetResourceVersion()
}

// sameVersion reports whether a and b are one version of an object, and not just two without a version.
func sameVersion(a, b client.Object) bool {
	version := a.GetResourceVersion()
	return version != "" && version == b.GetResourceVersion()
}

// desiredHash identifies what is desired of an object: two equal hashes desire the same.
type desiredHash struct {
	digest uint64
	known  bool
}

// hashOfDesired returns the hash of desired. A value without a digest desires something new each time.
func hashOfDesired(desired any) desiredHash {
	sum, ok := digest.Of(desired)
	return desiredHash{digest: sum, known: ok}
}

// hashOfDesiredFor is hashOfDesired for an object that may be made from a copy of actual, as an aggregate is by default. Such an
// object repeats what the server and others say about it. Without what it repeats, its hash does not change whenever they say
// something else.
func hashOfDesiredFor(desired, actual client.Object) desiredHash {
	if desired.GetResourceVersion() == "" || desired.GetUID() != actual.GetUID() {
		return hashOfDesired(desired)
	}
	own := desired.DeepCopyObject().(client.Object)
	own.SetUID("")
	own.SetResourceVersion("")
	own.SetGeneration(0)
	own.SetCreationTimestamp(metav1.Time{})
	own.SetManagedFields(nil)
	// To repeat something is not the same as to want it gone.
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
	return hashOfDesired([]any{own, repeats})
}

// newAdditions returns the difference between what was desired (merged into base) and what the server made of it. It applies to
// desired, whose generation is not the one of an object in the cluster.
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

// lastWriteStore has the last writes of one object manager. Below a root they are kept with the reconciled resource and go
// with it. In a manager that a hand-written reconciler calls, the store keeps them itself.
type lastWriteStore struct {
	standalone lastWrites
}

// maxStandaloneWrites bounds what a manager keeps where there is no root to keep it.
const maxStandaloneWrites = 4096

func (l *lastWriteStore) init() {
	l.standalone = newLastWrites(maxStandaloneWrites)
}

func (l *lastWriteStore) of(ctx context.Context) lastWrites {
	if kept := stateOf(ctx); kept != nil {
		return resourcestate.LoadOrStore(kept, l, func() lastWrites { return newLastWrites(0) })
	}
	return l.standalone
}

// lastWrites are the last writes of objects, by the UID of the object.
type lastWrites = *resourcestate.Map[types.UID, lastWrite]

func newLastWrites(limit int) lastWrites {
	return resourcestate.NewMap[types.UID, lastWrite](limit)
}
