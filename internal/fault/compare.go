package fault

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/internal/jsondiff"
)

// Ignore reports differences at the end that do not matter, by object and path, such as "ConfigMap ns/one" and
// "data.attempts". The path is that of a field; "" if the object is missing or left over; "created" or "deleted" if it
// was more or less often; "written" if the object is foreign; and "overwritten" if what somebody else wrote was lost.
// An ignored field that differs and is written again, with another value, has ": rewritten" after its path.
// For a call that is still made at rest, the object is the call and the path "rest". Externals are "external", or
// "external 1", "external 2" if several have a state, with the path of a field.
type Ignore func(object, path string) bool

// report collects how an end differs from that of a run without a fault.
type report struct {
	ignore Ignore
	// unmatched are objects that are missing or left over. What was done to them is not told.
	unmatched map[Key]bool
	lines     []string
}

// Compare returns how an end differs from that of a run without a fault, in lines that are the same each time, such as
// "missing: Deployment shop/web" and "Deployment shop/web: spec.replicas is 2, not 3". Values of Secrets are not told.
// Ignore reports differences that do not matter, by what is different and where, see [Ignore]; nil none.
func Compare(got, want *End, ignore Ignore) []string {
	if got.NotAtRest != "" {
		return []string{"never comes to rest: " + got.NotAtRest}
	}
	r := &report{ignore: ignore, unmatched: map[Key]bool{}}
	for _, key := range allKeys(got.Objects, want.Objects) {
		r.object(key, got, want)
	}
	for _, key := range allKeys(got.Effects, want.Effects) {
		if !r.unmatched[key] {
			r.effects(key.String(), cmp.Or(got.Effects[key], &Effects{}), cmp.Or(want.Effects[key], &Effects{}))
		}
	}
	r.externals(got, want)
	return r.lines
}

// CompareDeleted returns, in lines, what an end leaves behind once the resource was deleted, and the end of a run in which
// it was deleted at rest does not: objects, and what is outside of the clusters if that run leaves it as it began.
func CompareDeleted(got, want *End, began string, ignore Ignore) []string {
	if got.NotAtRest != "" {
		return []string{"never comes to rest: " + got.NotAtRest}
	}
	r := &report{ignore: ignore}
	for _, key := range allKeys(got.Objects, nil) {
		is := want.Objects[key]
		if is == nil {
			is = got.Objects[key].unchanged()
		}
		if got.Objects[key].Last != nil && is.Last == nil {
			r.add(key.String(), "", "left over: "+key.String())
		}
	}
	if want.Externals == began {
		r.externals(got, want)
	}
	return r.lines
}

// CompareRest returns what is demanded at rest beyond what a run without a fault demands then, in lines.
func CompareRest(got, want []string, ignore Ignore) []string {
	r := &report{ignore: ignore}
	for _, call := range Beyond(got, want) {
		r.add(call, "rest", "at rest still: "+call)
	}
	return r.lines
}

// allKeys returns the keys of two maps, in their order.
func allKeys[T any](a, b map[Key]T) []Key {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.SortFunc(keys, Key.Compare)
	return slices.Compact(keys)
}

// add adds a line, unless it is ignored, and reports whether it did.
func (r *report) add(object, path, line string) bool {
	if r.ignore != nil && r.ignore(object, path) {
		return false
	}
	r.lines = append(r.lines, line)
	return true
}

// object compares an object that changed in one of the runs.
func (r *report) object(key Key, gotEnd, wantEnd *End) {
	name := key.String()
	got, want := gotEnd.Objects[key], wantEnd.Objects[key]
	if got == nil {
		got = want.unchanged()
	}
	if want == nil {
		want = got.unchanged()
	}
	switch {
	case got.Last == nil && want.Last == nil:
		return
	case got.Last == nil:
		r.add(name, "", "missing: "+name)
	case want.Last == nil:
		r.add(name, "", "left over: "+name)
	default:
		for _, d := range Differences(key.Kind, got.Last, want.Last) {
			if !r.add(name, d.Path, name+": "+d.Text) && got.rewrites(key.Kind, d.Path) && !want.rewrites(key.Kind, d.Path) {
				// What is another in each run does not change in one.
				r.add(name, d.Path+": rewritten", fmt.Sprintf("%s: %s is written again, and is another then", name, d.Path))
			}
		}
		return
	}
	r.unmatched[got.Group] = true
}

// effects compares what was done to an object.
func (r *report) effects(name string, got, want *Effects) {
	r.count(name, "created", got.Created, want.Created)
	r.count(name, "deleted", got.Deleted, want.Deleted)
	if got.Wrote && !want.Wrote && !want.Rewrote {
		r.add(name, "written", "touched although foreign: "+name)
	}
	if got.Overwrote {
		r.add(name, "overwritten", "overwrites what somebody else wrote: "+name)
	}
}

// Difference is a field that differs, and how.
type Difference struct {
	Path, Text string
	// added is set if only the first of the objects has the field.
	added bool
}

// Differences returns the fields in which an object of a kind differs from the one that is wanted.
func Differences(kind schema.GroupKind, got, want Object) []Difference {
	if got.Same(want) {
		return nil
	}
	var all []Difference
	for _, d := range jsondiff.Diff(got.Normal(), want.Normal()) {
		text := d.String()
		if kind == (schema.GroupKind{Kind: "Secret"}) {
			text = d.Path + " differs"
		}
		all = append(all, Difference{d.Path, text, d.Want == any(jsondiff.Absent{})})
	}
	return all
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
func (r *report) externals(gotEnd, wantEnd *End) {
	if gotEnd.Externals == wantEnd.Externals {
		return
	}
	got, want := gotEnd.decodedExternals(), wantEnd.decodedExternals()
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

func (e *End) decodedExternals() []any {
	var decoded []any
	if json.Unmarshal([]byte(maskTimes(e.Names.Text(e.Externals, ""))), &decoded) != nil {
		return []any{e.Externals}
	}
	return decoded
}

// Beyond returns what one sorted list has more than another.
func Beyond(got, want []string) []string {
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
