package inventory

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/plan"
)

// root is the number of the chunk that lists all chunks.
const root = 0

// layout tells which record is in which chunk.
type layout struct {
	// records are compact, in the order of the last save.
	records []apis.InventoryRecord
	// homes are the numbers of their chunks.
	homes []int
}

// found is a chunk that was read.
type found struct {
	header
	records []apis.InventoryRecord
}

// merge puts chunks together. A record that is in several is taken from the one with the highest generation, or else number; the
// others are stale. A save was then interrupted while it moved records.
func merge(chunks []found) (l layout, stale map[int]bool) {
	newestFirst := slices.SortedFunc(slices.Values(chunks), func(a, b found) int {
		return cmp.Or(cmp.Compare(b.Generation, a.Generation), cmp.Compare(b.Chunk, a.Chunk))
	})
	stale = map[int]bool{}
	seen := map[plan.Key]struct{}{}
	type entry struct {
		record *apis.InventoryRecord
		home   int
	}
	var entries []entry
	for _, chunk := range newestFirst {
		for i := range chunk.records {
			key := plan.KeyOf(chunk.records[i])
			if _, ok := seen[key]; ok {
				stale[chunk.Chunk] = true
				continue
			}
			seen[key] = struct{}{}
			entries = append(entries, entry{&chunk.records[i], chunk.Chunk})
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return byKey(a.record, b.record) })
	for _, e := range entries {
		l.records = append(l.records, *e.record)
		l.homes = append(l.homes, e.home)
	}
	return l, stale
}

// changeTo returns the layout of other records, and the chunks that are not what they were. A record stays in its chunk. New ones go
// to chunks that change anyway, then to others with room, then to chunks with new numbers. A chunk has room as long as its
// records make no more bytes of JSON than room; they may well grow later, since they are stored in a third of that.
func (l layout) changeTo(records []apis.InventoryRecord, chunks []int, room int) (next layout, changed map[int]bool) {
	stored := make(map[plan.Key]int, len(l.records))
	for i := range l.records {
		stored[plan.KeyOf(l.records[i])] = i
	}
	next = layout{records: records, homes: make([]int, len(records))}
	changed = map[int]bool{}
	kept := make([]bool, len(l.records))
	filled := map[int]int{}
	var added []int
	for i := range records {
		at, ok := stored[plan.KeyOf(records[i])]
		if !ok {
			added = append(added, i)
			continue
		}
		home := l.homes[at]
		next.homes[i], kept[at] = home, true
		filled[home] += size(&records[i])
		if !same(&l.records[at], &records[i]) {
			changed[home] = true
		}
	}
	for at, kept := range kept {
		if !kept {
			changed[l.homes[at]] = true
		}
	}
	next.place(added, chunks, filled, changed, room)
	return next, changed
}

// place finds homes for the records added.
func (l layout) place(added, chunks []int, filled map[int]int, changed map[int]bool, room int) {
	candidates := slices.Clone(chunks)
	slices.SortStableFunc(candidates, func(a, b int) int { return cmp.Compare(rank(changed[a]), rank(changed[b])) })
	fresh := after(chunks)
	at := 0
	for _, i := range added {
		n := size(&l.records[i])
		for at < len(candidates) && filled[candidates[at]] > 0 && filled[candidates[at]]+n > room {
			at++
		}
		if at == len(candidates) {
			candidates = append(candidates, fresh)
			fresh++
		}
		home := candidates[at]
		l.homes[i] = home
		filled[home] += n
		changed[home] = true
	}
}

func rank(first bool) int {
	if first {
		return 0
	}
	return 1
}

// after is a number that no chunk has.
func after(chunks []int) int {
	if len(chunks) == 0 {
		return root
	}
	return slices.Max(chunks) + 1
}

// draft is what a save has to write.
type draft struct {
	layout
	// chunks are the numbers of all there will be, in order.
	chunks []int
	// payloads are the chunks to be written, by number.
	payloads map[int][]byte
	// leaving are the stored chunks, but for the root, that lose records to new ones.
	leaving map[int]bool
}

// drafter makes drafts.
type drafter struct {
	// stored are the chunks that there are, listed those that the root lists. Both are in order.
	stored, listed []int
	// limit is how many bytes a chunk may have.
	limit int
	// encode makes a chunk.
	encode func(chunk int, chunks []int, records []*apis.InventoryRecord) ([]byte, error)
}

// draft encodes the chunks of a layout that changed. A chunk that got too large loses half of its records to a new one. The root
// is written as well when there is a chunk that it does not list.
func (d drafter) draft(next layout, changed map[int]bool) (draft, error) {
	members := next.members()
	chunks := slices.Clone(d.stored)
	var queue []int
	for chunk := range changed {
		if !slices.Contains(chunks, chunk) {
			chunks = append(chunks, chunk)
		}
		if chunk != root {
			queue = append(queue, chunk)
		}
	}
	slices.Sort(chunks)
	slices.Sort(queue)
	out := draft{layout: next, payloads: map[int][]byte{}, leaving: map[int]bool{}}
	for rootDone := false; ; {
		if len(queue) == 0 {
			if rootDone || !changed[root] && slices.Equal(chunks, d.listed) {
				out.chunks = chunks
				return out, nil
			}
			// The root comes last, since it lists the others.
			queue = append(queue, root)
		}
		chunk := queue[0]
		queue = queue[1:]
		payload, err := d.encode(chunk, chunks, next.pick(members[chunk]))
		if err != nil {
			return draft{}, err
		}
		if len(payload) <= d.limit {
			out.payloads[chunk] = payload
			rootDone = chunk == root
			continue
		}
		half := len(members[chunk]) / 2
		if half == 0 {
			return draft{}, fmt.Errorf("a chunk of the inventory takes %d bytes, and at most %d fit", len(payload), d.limit)
		}
		fresh := after(chunks)
		chunks = append(chunks, fresh)
		members[fresh], members[chunk] = members[chunk][half:], members[chunk][:half]
		for _, i := range members[fresh] {
			next.homes[i] = fresh
		}
		if chunk != root {
			out.leaving[chunk] = slices.Contains(d.stored, chunk)
			queue = append(queue, chunk)
		}
		queue = append(queue, fresh)
		changed[root] = true
	}
}

// members are the indices of the records of each chunk, in the order of their keys.
func (l layout) members() map[int][]int {
	members := map[int][]int{}
	for i, home := range l.homes {
		members[home] = append(members[home], i)
	}
	for _, indices := range members {
		slices.SortFunc(indices, func(a, b int) int { return byKey(&l.records[a], &l.records[b]) })
	}
	return members
}

func (l layout) pick(indices []int) []*apis.InventoryRecord {
	records := make([]*apis.InventoryRecord, len(indices))
	for i, index := range indices {
		records[i] = &l.records[index]
	}
	return records
}

// waves are the numbers of the chunks to be written, in the order that loses no record wherever it is broken off: what gets
// records from others, then the root, which lists it if it is new, then what those records leave.
func (d draft) waves() [][]int {
	var first, list, last []int
	for _, chunk := range d.chunks {
		switch {
		case d.payloads[chunk] == nil:
		case chunk == root:
			list = append(list, chunk)
		case d.leaving[chunk]:
			last = append(last, chunk)
		default:
			first = append(first, chunk)
		}
	}
	return [][]int{first, list, last}
}
