package simulation

import (
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/internal/fault"
)

// writes are what the operator wrote.
type writes struct {
	all []written
	// told is how many of them were asked for, and golden how many are in golden files.
	told, golden int
}

// written is a write of the operator.
type written struct {
	key               fault.Key
	verb, subresource string
}

func (w *writes) add(made Write) {
	w.all = append(w.all, newWritten(made))
}

func newWritten(made Write) written {
	key := fault.Key{Kind: made.Kind, Namespace: made.Namespace, Name: made.Name}
	return written{key, made.Verb(), made.Subresource}
}

// String returns the write in a line, as [Write.String] does.
func (w written) String() string {
	key := w.key
	if w.subresource != "" {
		key.Kind.Kind += "/" + w.subresource
	}
	return w.verb + " " + key.String()
}

// Writes returns what the operator has written since Writes or Wrote was called last, in order, in lines such as
// "create ConfigMap shop/web" and "update App/status shop/one". The verbs are those of [Write.Verb]: what happened to
// the object, not how it was asked for. Writes without an effect, Leases and Events are left out.
func (w *World) Writes() []string {
	var lines []string
	for _, made := range w.takeWrites(func(all *writes) *int { return &all.told }) {
		lines = append(lines, made.String())
	}
	return lines
}

// takeWrites returns the writes after those that a mark says, and sets the mark to the end.
func (w *World) takeWrites(mark func(all *writes) *int) []written {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := mark(&w.writes)
	taken := slices.Clone(w.writes.all[*last:])
	*last = len(w.writes.all)
	return taken
}

// Wrote fails the story unless the operator has written what is wanted, and nothing else, since Writes or Wrote was
// called last. Wanted are lines as those of Writes; none if nothing is to be written.
//
// The writes of one object are compared in their order. A write that follows the same one counts once: how often a
// status is written depends on time. Between objects there is no order.
func (w *World) Wrote(wanted ...string) {
	w.Helper()
	w.goOn()
	if w.isEarly() {
		return
	}
	if diff := difference(normalLines(wanted), normalLines(w.Writes())); diff != "" {
		w.Errorf("the operator wrote something else (-wanted +written):\n%s", diff)
	}
}

// normalLines returns lines of writes in the order of their objects, without repetition.
func normalLines(lines []string) []string {
	object := func(line string) string {
		words := strings.Fields(line)
		if len(words) < 2 {
			return line
		}
		kind, _, _ := strings.Cut(words[len(words)-2], "/")
		return kind + " " + words[len(words)-1]
	}
	sorted := slices.Clone(lines)
	slices.SortStableFunc(sorted, func(a, b string) int { return strings.Compare(object(a), object(b)) })
	return slices.Compact(sorted)
}
