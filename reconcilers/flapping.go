package reconcilers

import (
	"context"
	"fmt"
	"time"

	"github.com/espalier-dev/espalier/internal/digest"
	"github.com/espalier-dev/espalier/internal/statusfield"
	rtime "github.com/espalier-dev/espalier/time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// flapping is what is known of the changes of what is desired of one object. A change has a reason if the resource
// changed, or an object that it tracks, or the status of another child. A desired object that depends on the time, on
// random values or on the order of a map changes without a reason. Each such change is a write, whose event brings the
// resource back, which writes the next one.
//
// The first changes are written at once. If there are too many without a reason, what is desired is flapping. It is
// then written after a delay, which doubles with each write. It is flapping until it stays the same for as long as the
// delay, and for a quiet time at least.
type flapping struct {
	// change is the change that was written last.
	change desiredChange
	// count is how many changes in a row had no reason, since is the time of the first of them, and last the time of
	// the last.
	count       int
	since, last time.Time
	// previous is the content of what was desired last. It is kept only while changes without a reason are counted.
	previous map[string]any
	// flaps reports whether what is desired is flapping. Field is then the path of the first field that changed.
	flaps bool
	field string
}

// desiredChange is what is desired, and what it is made of.
type desiredChange struct {
	desired desiredHash
	// resource is the digest of the generation, the labels and the annotations of the resource.
	resource uint64
	// inputs is the digest of what else was read, as far as it is known.
	inputs uint64
}

const (
	// immediateChanges is how many changes without a reason there are within changeWindow before it is flapping.
	immediateChanges = 4
	changeWindow     = time.Minute
	// firstFlapDelay is the time to the next write once it is flapping. It doubles up to longestFlapDelay.
	firstFlapDelay   = 20 * time.Second
	longestFlapDelay = 8 * firstFlapDelay
	// flapQuietTime is how long it has to stay the same at least to be no longer flapping.
	flapQuietTime = time.Minute
)

// nextWrite is the time until which no change is written.
func (f *flapping) nextWrite() time.Time {
	if !f.flaps {
		return f.last
	}
	return f.last.Add(min(firstFlapDelay<<min(f.count-immediateChanges, 8), longestFlapDelay))
}

// quietUntil is until when it has to stay the same to be no longer flapping.
func (f *flapping) quietUntil() time.Time {
	quiet, next := f.last.Add(flapQuietTime), f.nextWrite()
	if next.After(quiet) {
		return next
	}
	return quiet
}

// holds reports whether the change has to wait until nextWrite.
func (f *flapping) holds(change desiredChange, now time.Time) bool {
	return f != nil && f.flaps && change.desired != f.change.desired && change.resource == f.change.resource &&
		now.Before(f.nextWrite())
}

// after returns what is known when a change is written. Content returns the content of what is desired, or nil; f may
// be nil.
func (f *flapping) after(change desiredChange, content func() map[string]any, now time.Time) *flapping {
	switch {
	case f == nil, change.resource != f.change.resource:
		return &flapping{change: change}
	case change.desired == f.change.desired:
		return f
	}
	next := *f
	next.change = change
	if !f.flaps && change.inputs != f.change.inputs {
		if f.previous != nil {
			next.previous = content()
		}
		return &next
	}
	if !f.flaps && now.Sub(f.since) >= changeWindow {
		next.count, next.since = 0, now
	}
	next.count++
	next.last = now
	if f.flaps {
		return &next
	}
	next.previous = content()
	if next.flaps = next.count >= immediateChanges; next.flaps {
		next.field, _ = firstDifference("", f.previous, next.previous)
		next.previous = nil
	}
	return &next
}

// dropPrevious returns f without the content that was desired, which is of no use once its changes are not counted any
// more.
func (f *flapping) dropPrevious(now time.Time) *flapping {
	if f.previous == nil || now.Sub(f.since) < changeWindow {
		return f
	}
	next := *f
	next.previous = nil
	return &next
}

// flappingError is the error of a child that is written with delays. Its text is the same until that ends.
type flappingError struct {
	object, field string
}

func (e *flappingError) Error() string {
	differs := ""
	if e.field != "" {
		differs = ": it differs in " + e.field
	}
	return fmt.Sprintf("what is desired of %s keeps changing although the resource stays the same%s; it is written "+
		"with delays, and must not depend on time, chance or the order of a map", e.object, differs)
}

// hold returns an error if what is desired of obj is flapping and must not be written yet. Else it notes that it is
// written now.
func (w *objectWriter[Type]) hold(
	ctx context.Context, obj Type, desired desiredHash, content func() map[string]any,
) error {
	uid := obj.GetUID()
	if w.kept == nil || !desired.known || uid == "" || uid == w.resource.GetUID() {
		// The object of an aggregate is its own resource.
		return nil
	}
	now := rtime.RetrieveNow(ctx)
	change := desiredChange{
		desired:  desired,
		resource: resourceDigest(w.resource),
		inputs:   contextOf(ctx).state.inputsBeside(uid),
	}
	known := w.lastWrites.flapping(uid)
	if known.holds(change, now) {
		contextOf(ctx).state.wakeAfter(known.nextWrite().Sub(now))
		return &flappingError{object: describeObject(obj), field: known.field}
	}
	next := known.after(change, content, now)
	w.lastWrites.setFlapping(uid, next)
	if next.flaps && !known.flaps {
		err := &flappingError{object: describeObject(obj), field: next.field}
		logr.FromContextOrDiscard(ctx).Info("writing with delays", "reason", err.Error())
		w.original.record(w.regarding, corev1.EventTypeWarning, "NondeterministicChild", "%v", err)
	}
	return nil
}

// flappingUntilQuiet returns an error while what is desired of obj, which is as desired now, counts as flapping.
func (w *objectWriter[Type]) flappingUntilQuiet(ctx context.Context, obj Type, known *flapping) error {
	now := rtime.RetrieveNow(ctx)
	quiet := known.quietUntil()
	if !now.Before(quiet) {
		w.lastWrites.setFlapping(obj.GetUID(), nil)
		return nil
	}
	contextOf(ctx).state.wakeAfter(quiet.Sub(now))
	return &flappingError{object: describeObject(obj), field: known.field}
}

// resourceDigest is the digest of what users change of a resource.
func resourceDigest(resource client.Object) uint64 {
	sum, _ := digest.Of([]any{resource.GetGeneration(), resource.GetLabels(), resource.GetAnnotations()})
	return sum
}

// inputsBeside returns the digest of what an object with that UID may be made of beside the resource: the versions of
// the objects that were read and are tracked, and the status of the other children that have one. What others write
// changes the status. What the controller writes does not, so two objects that are flapping are no reason for each
// other.
func (s *requestState) inputsBeside(uid types.UID) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := s.reads
	for _, objects := range s.children {
		for _, obj := range objects {
			if status := statusfield.Of(obj); obj.GetUID() != uid && status.Exists() {
				one, _ := digest.Of([]any{obj.GetUID(), status.Get()})
				// The order of lists does not count.
				sum += one
			}
		}
	}
	return sum
}

// contentCopy returns a copy of the content of obj, or nil if it has none.
func contentCopy(obj client.Object) map[string]any {
	content, err := contentOf(obj)
	if err != nil {
		return nil
	}
	return runtime.DeepCopyJSON(content)
}
