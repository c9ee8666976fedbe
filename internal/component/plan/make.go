package plan

import (
	"fmt"
	"math"
	"slices"

	"github.com/espalier-dev/espalier/apis"
)

// Make decides what is to be done next.
func Make(in Input) Plan {
	m := &maker{in: &in, plan: Plan{Deleting: in.Deleting}}
	if in.Deleting {
		m.remove()
	} else {
		m.apply()
	}
	return m.plan
}

// maker makes one plan.
type maker struct {
	in   *Input
	plan Plan

	// records and items are parallel: first what the inventory has, in its order, then what is new, in the order in which it is
	// desired.
	records []apis.InventoryRecord
	items   []item
	// desired are the items desired, in canonical order for applying, and undesired the others, in that of the inventory.
	desired, undesired []*item

	kinds *kinds
	// spaces are the namespaces that are records, by name.
	spaces map[string]*namespace
	// committed: the deletion of the component passed all its checks, and nothing stops it any more.
	committed bool

	// waves are those of what is desired, and orders their orders.
	waves  []wave
	orders []int16
	// next is the rank of what is in plan.Next.
	next rank
}

// gather matches what is desired with what is recorded and with what was seen. It returns the positions of the items of what is
// desired.
func (m *maker) gather(desired []Desired) []int32 {
	positions := make(map[Key]int32, max(len(m.in.Inventory), len(desired)))
	sources := make([]int32, 0, max(len(m.in.Inventory), len(desired)))
	for i := range m.in.Inventory {
		key := KeyOf(m.in.Inventory[i])
		if _, twice := positions[key]; !twice {
			positions[key] = int32(len(sources))
			sources = append(sources, int32(i))
		}
	}
	known := len(sources)
	matches := make([]int32, len(desired))
	for i := range desired {
		position, present := positions[desired[i].Key]
		if !present {
			position = int32(len(sources))
			positions[desired[i].Key] = position
			sources = append(sources, int32(i))
		}
		matches[i] = position
	}

	m.records = make([]apis.InventoryRecord, len(sources))
	m.items = make([]item, len(sources))
	for i, source := range sources {
		it := &m.items[i]
		it.position = int32(i)
		it.record = &m.records[i]
		if i < known {
			*it.record = m.in.Inventory[source]
			it.key = KeyOf(*it.record)
		} else {
			it.key = desired[source].Key
		}
		it.seen = m.in.Observed[it.key]
		if it.seen.Presence == Present && it.seen.UID == "" {
			// What has no UID cannot be named safely.
			it.seen = Observed{}
		}
		if len(m.in.Failed) > 0 {
			it.failure, it.failed = m.in.Failed[it.key]
		}
	}
	for i, position := range matches {
		if it := &m.items[position]; it.desired == nil {
			it.desired = &desired[i]
		}
	}
	return matches
}

// classify finds out the types of all records, and which are in namespaces of the component. The records must be up to date, and
// those that are gone must be known: what they brought does not count.
func (m *maker) classify() {
	m.kinds = newKinds()
	for i := range m.in.Patterns {
		m.kinds.matcher.add(apis.ManagedType{Group: m.in.Patterns[i].Group, Version: "*", Kind: m.in.Patterns[i].Kind}, byPattern)
	}
	for i := range m.records {
		if m.items[i].state == stateGone {
			continue
		}
		for _, t := range m.records[i].ManagedTypes {
			m.kinds.matcher.add(t, int32(i))
		}
	}
	for i := range m.items {
		it := &m.items[i]
		it.kind = m.kinds.of(it.record)
		if it.kind.namespace && it.state != stateGone {
			if m.spaces == nil {
				m.spaces = map[string]*namespace{}
			}
			m.spaces[it.key.Name] = &namespace{item: it, order: math.MinInt16}
		}
	}
	if len(m.spaces) == 0 {
		return
	}
	var last *namespace
	name := ""
	for i := range m.items {
		it := &m.items[i]
		if it.key.Namespace == "" {
			continue
		}
		if it.key.Namespace != name {
			name, last = it.key.Namespace, m.spaces[it.key.Namespace]
		}
		it.space = last
	}
}

// rank tells which operations may be carried out together, and which of them first.
type rank struct {
	section, wave, stage, priority int
}

// The sections of a plan. Whatever may be done may be done in any order; but an object that is in the way goes first.
const (
	sectionRemove = iota
	sectionPurge
	sectionWrite
	sectionNone
)

func (r rank) before(other rank) bool {
	switch {
	case r.section != other.section:
		return r.section < other.section
	case r.wave != other.wave:
		return r.wave < other.wave
	case r.stage != other.stage:
		return r.stage < other.stage
	default:
		return r.priority < other.priority
	}
}

// offer puts an operation into the next stage, if none that is there comes before it.
func (m *maker) offer(it *item, r rank) {
	if it.state != stateAct {
		return
	}
	next := &m.plan.Next
	switch {
	case len(next.Operations) == 0 || r.before(m.next):
		m.next = r
		next.Operations = append(next.Operations[:0], it.operation())
	case r == m.next:
		next.Operations = append(next.Operations, it.operation())
	}
}

// title says what the next stage is about.
func (m *maker) title() string {
	switch m.next.section {
	case sectionRemove:
		if m.in.Deleting {
			return fmt.Sprintf("deletion, wave %d of %d", m.next.wave+1, m.plan.Progress.Waves)
		}
		return "objects that are not desired any more"
	case sectionPurge:
		return fmt.Sprintf("purge after wave %d of %d", m.next.wave+1, len(m.waves))
	default:
		names := [stages]string{"", ", aggregated APIs", ", instances of managed types"}
		return fmt.Sprintf("wave %d of %d%s", m.next.wave+1, len(m.waves), names[m.next.stage])
	}
}

// finish completes the plan.
func (m *maker) finish() {
	if len(m.plan.Next.Operations) > 0 && m.plan.Next.Title == "" {
		m.plan.Next.Title = m.title()
	}
	m.plan.Inventory = m.inventory()
}

// inventory returns the records that stay, in canonical order for deletion.
func (m *maker) inventory() []apis.InventoryRecord {
	places := make([]place, 0, len(m.items))
	for i := range m.items {
		if m.items[i].state != stateGone {
			places = append(places, placeOf(m.records[i].DeleteOrder, m.items[i].kind.deletePriority, i))
		}
	}
	if len(places) == len(m.records) && slices.IsSorted(places) {
		return m.records
	}
	records := make([]apis.InventoryRecord, len(places))
	for i, p := range ordered(places) {
		records[i] = m.records[p.position()]
	}
	return records
}
