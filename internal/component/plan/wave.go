package plan

import (
	"slices"

	"github.com/espalier-dev/espalier/apis"
)

// wave is what has the same apply order.
type wave struct {
	order int16
	// items are those desired, in canonical order.
	items []*item
	// purged are those that are purged after the wave, of this or an earlier one.
	purged []*item
	// before, with and after are objects that the component drops, by prune policy.
	before, with, after []*item
	// ready: all of it is ready, or holds nobody up.
	ready bool
}

// roll goes through the waves: it holds what has to wait for its turn, and releases what is to be pruned or purged by now.
func (m *maker) roll() {
	strays := m.formWaves()
	under := -1
	open, ready := true, true
	for i := range m.waves {
		w := &m.waves[i]
		m.turn(w, open)
		ready = ready && w.ready
		open = open && w.ready && w.purge()
		if under < 0 && !open {
			under = i
		}
	}
	if ready {
		m.release(strays)
	}
	m.plan.Progress.Waves = len(m.waves)
	if under >= 0 {
		w := &m.waves[under]
		m.plan.Progress.Wave, m.plan.Progress.Total = under+1, len(w.items)
		for _, it := range w.items {
			if it.state == stateDone {
				m.plan.Progress.Ready++
			}
		}
	}
}

// formWaves finds the waves of what is desired, and for each what is to be pruned before, with and after, and purged after it.
// What was applied in a wave that there is no more goes with the next one, but for what has to serve until its successor does: that
// is returned, and waits for all waves, since any may hold the successor.
func (m *maker) formWaves() (strays []*item) {
	for start := 0; start < len(m.desired); {
		order := m.desired[start].desired.ApplyOrder
		end := start
		for ; end < len(m.desired) && m.desired[end].desired.ApplyOrder == order; end++ {
			m.desired[end].wave = len(m.waves)
		}
		m.waves = append(m.waves, wave{order: order, items: m.desired[start:end]})
		m.orders = append(m.orders, order)
		start = end
	}
	for _, it := range m.desired {
		if i := m.purgeWave(it); i >= 0 {
			m.waves[i].purged = append(m.waves[i].purged, it)
		}
	}
	if len(m.waves) == 0 {
		return m.undesired
	}
	for _, it := range m.undesired {
		order, policy := it.record.ApplyOrder, it.record.PrunePolicy
		i := max(waveNumber(m.orders, order), 0)
		if m.orders[i] < order && policy != apis.PruneAfter {
			i = min(i+1, len(m.waves)-1)
		}
		switch w := &m.waves[i]; {
		case policy == apis.PruneAfter && w.order != order:
			strays = append(strays, it)
		case policy == apis.PruneAfter:
			w.after = append(w.after, it)
		case policy == apis.PruneBefore:
			w.before = append(w.before, it)
		default:
			w.with = append(w.with, it)
		}
	}
	return strays
}

// turn decides about a wave. open: all before it are ready.
func (m *maker) turn(w *wave, open bool) {
	if open || !w.pending() {
		m.release(w.before)
	}
	obstructed := m.obstructed(w.before)

	var unready [stages]int
	for _, it := range w.items {
		if !it.passed() {
			unready[it.stage()]++
		}
	}
	idle := true
	w.ready = true
	for _, it := range w.items {
		stage := it.stage()
		eligible := open && !obstructed
		for earlier := range stage {
			eligible = eligible && unready[earlier] == 0
		}
		if it.rollout && !eligible {
			it.postpone()
		}
		if (it.state == stateAct || it.unseen) && !purging(it.record.Phase) {
			idle = false
		}
		w.ready = w.ready && (it.state == stateDone || it.volatile || purging(it.record.Phase))
	}

	// What cannot be written now must not keep what may be in its way.
	if idle && !obstructed && (open || !w.pending()) {
		m.release(w.with)
	}
	if w.ready {
		m.release(w.after)
	}
}

// pending tells whether something new is still to be written in the wave.
func (w *wave) pending() bool {
	return slices.ContainsFunc(w.items, func(it *item) bool {
		return it.rollout && (it.state == stateAct || it.state == stateHeld || it.state == stateWaiting)
	})
}

// passed tells whether the object lets the next stage of its wave begin: it was ready once since it was written.
func (it *item) passed() bool {
	phase := it.record.Phase
	return phase == apis.PhaseReady || phase == apis.PhaseCompleted || purging(phase) || it.volatile
}

// postpone holds an object whose turn has not come. Why it could not be written if it had is not known before then: its type may come
// with what is before it.
func (it *item) postpone() {
	switch {
	case it.state == stateAct:
		it.hold()
	case it.seen.Presence == Absent && !it.failed && (it.state == stateWaiting || it.state == stateFailed):
		it.state, it.message = stateHeld, ""
		it.record.Status, it.record.Message = apis.ObjectInProgress, ""
	default:
	}
}
