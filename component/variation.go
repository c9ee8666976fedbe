package component

import (
	"fmt"
	"time"

	"github.com/espalier-dev/espalier/internal/component/manifest"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/digest"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// variation is what is known of a generator that returns other objects although its input is the same, because it
// depends on time, on chance, or on the order of a map. Each output would be written, and the write would bring the
// resource back. If that happens again and again, an output is held for a while: it is rolled out, and the generator is
// not called.
//
// It is no variation if other objects come after another input, or if the same objects come in another order.
type variation struct {
	// input is what the objects were generated for last.
	input variationInput
	// repetition counts the outputs that differed. It is persistent if outputs are held.
	repetition plan.Repetition
	// last has copies of the objects that were generated last; nil while none have differed.
	last []client.Object
	// message says what differs, once that is persistent. It is the same until another input comes.
	message string
}

// immediateOutputs is how many outputs in which any objects differ are rolled out at once.
const immediateOutputs = 5

// variationInput is what a generator may depend on, as far as that is known: what a task is made from, and the labels
// and annotations of the resource, as a digest.
type variationInput struct {
	taskInput
	metadata uint64
}

func (r *request[T]) variationInput(input taskInput) variationInput {
	metadata, _ := digest.Of(&struct{ labels, annotations map[string]string }{
		r.resource.GetLabels(), r.resource.GetAnnotations(),
	})
	return variationInput{input, metadata}
}

// held returns the objects to roll out in place of what the generator would return; nil if it is to be called.
func (r *request[T]) held(input taskInput) []client.Object {
	v := &r.state.variation
	if !v.repetition.Persistent || v.input != r.variationInput(input) || !r.now.Before(v.repetition.Due()) {
		return nil
	}
	return v.last
}

// observeVariation compares what was generated with what the cache had before.
func (r *request[T]) observeVariation(
	input taskInput, before manifest.Snapshot, generated []client.Object, objects []manifest.Object,
) {
	v, now := &r.state.variation, r.variationInput(input)
	if v.input != now {
		*v = variation{input: now}
		return
	}
	changed := r.state.engine.Manifests.ChangedSince(before)
	if len(changed) == 0 {
		v.expire(r.now)
		return
	}
	v.repetition = v.repetition.Again(changed[0].String(), r.now, immediateOutputs)
	// An output may be many writes, so those that were rolled out at once count as well.
	v.repetition.Delayed = max(v.repetition.Count-3, 0)
	if v.repetition.Persistent && v.message == "" {
		was, _ := manifest.Prepare(v.last, r.manifestOptions(input.namespace), nil)
		v.message = variationMessage(manifest.FirstDifference(was, objects, changed))
	}
	v.last = make([]client.Object, len(generated))
	for i, object := range generated {
		v.last[i] = object.DeepCopyObject().(client.Object)
	}
}

// expire forgets the outputs that differed if none has for long enough.
func (v *variation) expire(now time.Time) {
	if v.repetition.Forgotten(now) {
		*v = variation{input: v.input}
	}
}

func variationMessage(key plan.Key, path string) string {
	what := fmt.Sprintf("%s differs in %s", key, path)
	if path == "" {
		what = fmt.Sprintf("%s is not generated each time", key)
	}
	return "The generator returns other objects although its input is the same: " + what +
		"; it must not depend on time, chance or the order of a map, and References must name what else it reads"
}

// nextOutput is when the generator may return other objects, or is steady again.
func (v *variation) nextOutput(now time.Time) time.Time {
	if due := v.repetition.Due(); now.Before(due) {
		return due
	}
	return v.repetition.QuietAt()
}
