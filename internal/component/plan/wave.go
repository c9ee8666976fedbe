package plan

import (
	"fmt"
	"slices"
	"sort"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/kinds"
	"github.com/espalier-dev/espalier/internal/message"
)

// wave has the objects of one apply order.
type wave struct {
	order int16
	// items are the desired objects, in canonical order.
	items []*item
	// purged are the objects to purge after the wave. They were applied in this wave, or in an earlier one.
	purged []*item
	// before, with and after are objects to prune, by prune policy.
	before, with, after []*item
	// ready reports whether all of its objects are ready, or are not waited for.
	ready bool
}

// The stages of a wave. The others wait until the regular objects were ready once since they were written. An instance
// also waits for the APIService that defines its type, and for no other: one whose server does not run would hold back
// all of them.
const (
	stageRegular = iota
	stageAPIServices
	stageManaged
)

func (it *item) stage() int {
	switch {
	case it.kind.managed:
		return stageManaged
	case it.kind.isAPIService:
		return stageAPIServices
	default:
		return stageRegular
	}
}

// openWaves goes through the waves in order. It holds the objects of waves that are not open yet. It allows to prune
// and to purge what is due.
func (b *builder) openWaves() {
	afterAll, data := b.formWaves()
	current := -1
	open, ready := true, true
	for i := range b.waves {
		w := &b.waves[i]
		b.openWave(w, open)
		ready = ready && w.ready
		open = open && w.ready && w.purge()
		if current < 0 && !open {
			current = i
		}
	}
	if ready {
		allowDeletion(afterAll)
	}
	isUnready := func(it *item) bool { return it.state != stateDone && !it.desired.Auxiliary }
	if unready := keysOf(b.desired, isUnready); len(unready) == 0 {
		allowDeletion(data)
	} else {
		keep(data, "ready", unready)
	}
	progress := &b.plan.Progress
	progress.Waves = len(b.waves)
	if current >= 0 {
		progress.Wave, progress.Total = current+1, len(b.waves[current].items)
		for _, it := range b.waves[current].items {
			if it.state == stateDone {
				progress.Ready++
			}
		}
	}
}

// formWaves forms the waves, and assigns to each the objects to prune and to purge. If the wave of an object does not
// exist any more, the object is pruned with the next one. With the policy After, it serves until its successor does,
// which may be in any wave: it is in afterAll, and waits for all waves. Objects with data and no policy are in data,
// and wait until all required objects are ready.
func (b *builder) formWaves() (afterAll, data []*item) {
	for start := 0; start < len(b.desired); {
		order := b.desired[start].desired.ApplyOrder
		end := start
		for ; end < len(b.desired) && b.desired[end].desired.ApplyOrder == order; end++ {
			b.desired[end].wave = len(b.waves)
		}
		b.waves = append(b.waves, wave{order: order, items: b.desired[start:end]})
		start = end
	}
	for _, it := range b.desired {
		if isPurgeable(it.record) {
			w := &b.waves[b.purgeWave(it)]
			w.purged = append(w.purged, it)
		}
	}
	if len(b.waves) == 0 {
		return b.undesired, nil
	}
	for _, it := range b.undesired {
		order, policy := it.record.ApplyOrder, it.record.PrunePolicy
		i := max(b.lastWave(order), 0)
		if b.waves[i].order < order && policy != apis.PruneAfter {
			i = min(i+1, len(b.waves)-1)
		}
		switch w := &b.waves[i]; {
		case policy == "" && holdsData(it.record):
			data = append(data, it)
		case policy == apis.PruneAfter && w.order != order:
			afterAll = append(afterAll, it)
		case policy == apis.PruneAfter:
			w.after = append(w.after, it)
		case policy == apis.PruneBefore:
			w.before = append(w.before, it)
		default:
			w.with = append(w.with, it)
		}
	}
	return afterAll, data
}

// holdsData reports whether data would be lost with the object. A Secret that is written once has a value that was
// generated.
func holdsData(r *apis.InventoryRecord) bool {
	kind := KeyOf(*r).GroupKind()
	return kinds.HoldsData(kind) || kind == kinds.Secret && r.ReconcilePolicy == apis.ReconcileOnce
}

// lastWave returns the index of the last wave whose order is not above order, -1 if there is none.
func (b *builder) lastWave(order int16) int {
	return sort.Search(len(b.waves), func(i int) bool { return b.waves[i].order > order }) - 1
}

// purgeWave returns the index of the wave after which the object is purged: the last one that is not above its purge
// order.
func (b *builder) purgeWave(it *item) int {
	return max(it.wave, b.lastWave(*it.record.PurgeOrder))
}

// openWave decides which objects of the wave have to wait. The wave is open if all waves before it are ready.
func (b *builder) openWave(w *wave, open bool) {
	if open || !w.hasUnwritten() {
		allowDeletion(w.before)
	}
	order := waveOrder{
		closed: !open,
		prunes: b.waitsForPruning(w.before),
		regular: slices.ContainsFunc(w.items, func(it *item) bool {
			return it.stage() == stageRegular && !it.wasReady()
		}),
	}
	idle := true
	w.ready = true
	for _, it := range w.items {
		if it.unwritten && b.isHeld(it, order) {
			it.postpone()
		}
		if isPurging(it.record.Phase) {
			continue
		}
		if it.state == stateAct || it.state == stateWaiting && it.observed.Presence == PresenceUnknown {
			idle = false
		}
		w.ready = w.ready && (it.state == stateDone || it.isNotWaitedFor())
	}

	// What is pruned may be what a required object replaces.
	if idle && !order.prunes && (open || !w.hasUnwritten()) && !slices.ContainsFunc(w.items, (*item).isMissing) {
		allowDeletion(w.with)
	} else {
		isRefused := func(it *item) bool { return it.isMissing() && obstacleKinds[it.state] != "" }
		keep(w.with, "written", keysOf(w.items, isRefused))
	}
	if w.ready {
		allowDeletion(w.after)
	}
}

// waveOrder is what the objects of a wave wait for together.
type waveOrder struct {
	// closed is true if a wave before is not ready, prunes if objects have to be pruned first, regular if a regular
	// object of the wave was not ready yet.
	closed, prunes, regular bool
}

// isHeld reports whether an object that is to be written has to wait.
func (b *builder) isHeld(it *item, order waveOrder) bool {
	switch {
	case b.in.Suspended && it.observed.Presence == Present:
		return false // nothing has to run for an object to be suspended
	case order.closed, order.prunes:
		return true
	case it.stage() == stageRegular:
		return false
	case order.regular:
		return true
	}
	return b.waitsForServer(it)
}

// wasReady reports whether the object was ready once since it was written, or is not waited for.
func (it *item) wasReady() bool {
	phase := it.record.Phase
	return phase == apis.PhaseReady || phase == apis.PhaseCompleted || isPurging(phase) || it.isNotWaitedFor()
}

// waitsForServer reports whether the type of an instance is served by a server that is not available yet.
func (b *builder) waitsForServer(it *item) bool {
	return it.stage() == stageManaged && slices.ContainsFunc(it.kind.definers, func(position int32) bool {
		if position == byPattern {
			return false
		}
		definer := &b.items[position]
		return definer.desired != nil && definer.stage() == stageAPIServices && !definer.wasReady()
	})
}

// isNotWaitedFor reports whether no wave waits for the object although it is not ready.
func (it *item) isNotWaitedFor() bool {
	return it.volatile || it.state == stateContested || it.isDispensable()
}

// isMissing reports whether the component needs the object, and its desired state is not written. An object of the
// component that is being deleted does not count: what is pruned may be what it waits for.
func (it *item) isMissing() bool {
	if it.desired.Auxiliary || it.desired.ReadOnly || it.observed.Terminating && it.observed.Ownership == Ours {
		return false
	}
	switch it.state {
	case stateNotOurs:
		return true
	case stateFailed:
		return it.unwritten || it.failed || it.observed.TypeMissing
	case stateWaiting, stateHeld:
		return it.unwritten || it.observed.Presence == Absent
	}
	return false
}

// keysOf names the objects that match.
func keysOf(items []*item, match func(*item) bool) (names []string) {
	for _, it := range items {
		if match(it) {
			names = append(names, it.key.String())
		}
	}
	return names
}

// keep makes objects that could be pruned now wait until other ones are written or ready. Records do not say that, as
// it changes with each object.
func keep(items []*item, what string, others []string) {
	for _, it := range items {
		if it.state == stateAct && !it.released && len(others) > 0 {
			text := fmt.Sprintf("it is kept until these are %s: %s", what, message.List(others, namedObstacles))
			it.state, it.message, it.kept = stateWaiting, text, true
		}
	}
}

// hasUnwritten reports whether a new desired state is still to be written in the wave.
func (w *wave) hasUnwritten() bool {
	return slices.ContainsFunc(w.items, func(it *item) bool {
		return it.unwritten && (it.state == stateAct || it.state == stateHeld || it.state == stateWaiting)
	})
}

// waitsForPruning reports whether a wave has to wait for objects that are pruned before it. It does not wait for
// objects that others use, nor for objects that may not be deleted before the wave is written.
func (b *builder) waitsForPruning(before []*item) bool {
	return slices.ContainsFunc(before, func(it *item) bool {
		return it.deletable && it.state != stateGone && it.state != stateBlocked && !b.hasRetainedContents(it)
	})
}

// postpone holds an object whose wave or stage is not open. A missing type or namespace is no obstacle yet: an
// earlier wave may create it.
func (it *item) postpone() {
	it.hold()
	if it.observed.Presence == Absent && !it.failed && (it.state == stateWaiting || it.state == stateFailed) {
		it.state, it.message = stateHeld, ""
		it.record.Status, it.record.Message = apis.ObjectInProgress, ""
	}
}

// allowDeletion allows to delete objects, as far as the waves of the desired objects are concerned.
func allowDeletion(items []*item) {
	for _, it := range items {
		if it.deletable || it.aliased || it.state == stateGone {
			continue
		}
		it.deletable = true
		for _, c := range it.countedIn() {
			c.retained--
		}
	}
}

// purge begins to purge what is due after the wave, which is ready as all waves before it. It reports whether all of it
// is gone.
func (w *wave) purge() (done bool) {
	done = true
	for _, it := range w.purged {
		if phase := it.record.Phase; phase != apis.PhaseCompleted && !isPurging(phase) {
			it.record.Phase = apis.PhaseScheduledForCompletion
			it.assessPurge()
		}
		done = done && (it.state == stateDone || it.isDispensable())
	}
	return done
}
