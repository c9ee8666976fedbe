package replay

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/testing/internal/jsondiff"
	"github.com/espalier-dev/espalier/testing/internal/normalize"
)

// report collects how an end differs from that of a run without a fault.
type report struct {
	ignore func(object, path string) bool
	// unmatched are objects that are missing or left over. What was done to them is not told.
	unmatched map[objectKey]bool
	lines     []string
}

// compare returns how an end differs from that of a run without a fault, in lines that are the same each time.
func compare(got, want *end, ignore func(object, path string) bool) []string {
	if got.notAtRest != "" {
		return []string{"never comes to rest: " + got.notAtRest}
	}
	r := &report{ignore: ignore, unmatched: map[objectKey]bool{}}
	for _, key := range allKeys(got.objects, want.objects) {
		r.object(key, got, want)
	}
	for _, key := range allKeys(got.effects, want.effects) {
		if !r.unmatched[key] {
			r.effects(key.String(), cmp.Or(got.effects[key], &effects{}), cmp.Or(want.effects[key], &effects{}))
		}
	}
	r.externals(got, want)
	return r.lines
}

// compareRest returns what is demanded at rest beyond what a run without a fault demands then, in lines.
func compareRest(got, want []string, ignore func(object, path string) bool) []string {
	r := &report{ignore: ignore}
	for _, call := range beyond(got, want) {
		r.add(call, "rest", "at rest still: "+call)
	}
	return r.lines
}

// allKeys returns the keys of two maps, in their order.
func allKeys[T any](a, b map[objectKey]T) []objectKey {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.SortFunc(keys, compareKeys)
	return slices.Compact(keys)
}

// add adds a line, unless it is ignored.
func (r *report) add(object, path, line string) {
	if r.ignore == nil || !r.ignore(object, path) {
		r.lines = append(r.lines, line)
	}
}

// object compares an object that changed in one of the runs.
func (r *report) object(key objectKey, gotEnd, wantEnd *end) {
	name := key.String()
	got, want := gotEnd.objects[key], wantEnd.objects[key]
	if got == nil {
		got = want.unchanged()
	}
	if want == nil {
		want = got.unchanged()
	}
	switch {
	case got.last == nil && want.last != nil:
		r.add(name, "", "missing: "+name)
	case got.last != nil && want.last == nil:
		r.add(name, "", "left over: "+name)
	case !equality.Semantic.DeepEqual(got.last, want.last):
		r.fields(key, got.masked(gotEnd.mask), want.masked(wantEnd.mask))
		return
	default:
		return
	}
	r.unmatched[got.group] = true
}

// effects compares what was done to an object.
func (r *report) effects(name string, got, want *effects) {
	r.count(name, "created", got.created, want.created)
	r.count(name, "deleted", got.deleted, want.deleted)
	if got.wrote && !want.wrote && !want.rewrote {
		r.add(name, "written", "touched although foreign: "+name)
	}
	if got.overwrote {
		r.add(name, "overwritten", "overwrites what somebody else wrote: "+name)
	}
}

func (r *report) fields(key objectKey, got, want map[string]any) {
	name := key.String()
	for _, d := range jsondiff.Diff(got, want) {
		line := d.String()
		if key.Kind == (schema.GroupKind{Kind: "Secret"}) {
			line = d.Path + " differs"
		}
		r.add(name, d.Path, name+": "+line)
	}
}

// count compares how often something was done.
func (r *report) count(name, what string, got, want int) {
	switch {
	case got == want:
	case want == 1 && got > 1:
		r.add(name, what, fmt.Sprintf("%s %s: %s", what, often(got), name))
	default:
		r.add(name, what, fmt.Sprintf("%s %s, not %s: %s", what, often(got), often(want), name))
	}
}

func often(n int) string {
	switch n {
	case 0:
		return "never"
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

// externals compares what is outside of the clusters.
func (r *report) externals(gotEnd, wantEnd *end) {
	if gotEnd.externalStates == wantEnd.externalStates {
		return
	}
	got, want := gotEnd.decodedExternalStates(), wantEnd.decodedExternalStates()
	names := externalNames(want)
	for i := range min(len(got), len(want)) {
		for _, d := range jsondiff.Diff(got[i], want[i]) {
			d.Path = cmp.Or(d.Path, "the end")
			r.add(names[i], d.Path, names[i]+": "+d.String())
		}
	}
}

// externalNames numbers what is outside of the clusters, if several have a state.
func externalNames(states []any) []string {
	names, n := make([]string, len(states)), 0
	for i, state := range states {
		if state != nil {
			n++
		}
		names[i] = fmt.Sprint("external ", n)
	}
	if n > 1 {
		return names
	}
	return slices.Repeat([]string{"external"}, len(states))
}

func (e *end) decodedExternalStates() []any {
	var decoded []any
	if json.Unmarshal([]byte(normalize.Times(e.mask.text(e.externalStates, ""))), &decoded) != nil {
		return []any{e.externalStates}
	}
	return decoded
}

// unchanged is an object that is as the given one was.
func (o *object) unchanged() *object { return &object{given: o.given, last: o.given, group: o.group} }

// masked returns the content at the end.
func (o *object) masked(m *mask) map[string]any {
	if o.content == nil {
		o.content = content(o.last, m, o.group.cluster)
	}
	return o.content
}

// beyond returns what one sorted list has more than another.
func beyond(got, want []string) []string {
	var more []string
	for _, name := range got {
		if i, found := slices.BinarySearch(want, name); found {
			want = slices.Delete(slices.Clone(want), i, i+1)
			continue
		}
		more = append(more, name)
	}
	return more
}
