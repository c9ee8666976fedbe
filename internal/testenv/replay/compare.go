package replay

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// report collects how an end differs from that of a run without a fault.
type report struct {
	ignore func(object, path string) bool
	lines  []string
}

// compare returns how an end differs from that of a run without a fault, in lines that are the same each time.
func compare(got, want *end, ignore func(object, path string) bool) []string {
	if got.restless != "" {
		return []string{"never comes to rest, not after " + got.restless}
	}
	r := &report{ignore: ignore}
	keys := maps.Clone(want.objects)
	maps.Copy(keys, got.objects)
	for _, key := range slices.SortedFunc(maps.Keys(keys), compareKeys) {
		r.object(key, got, want)
	}
	for _, key := range got.overwritten {
		r.add(key.String(), "overwritten", "overwrites what somebody else wrote: "+key.String())
	}
	r.externals(got, want)
	for _, call := range beyond(got.demands, want.demands) {
		r.add(call, "rest", "at rest still: "+call)
	}
	return r.lines
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
		return
	case got.last != nil && want.last == nil:
		r.add(name, "", "left over: "+name)
		return
	case !equality.Semantic.DeepEqual(got.last, want.last):
		r.fields(key, got.masked(gotEnd.mask), want.masked(wantEnd.mask))
	}
	r.count(name, "created", got.created, want.created)
	r.count(name, "deleted", got.deleted, want.deleted)
	if got.written && !want.written && got.given != nil {
		r.add(name, "written", "touched although foreign: "+name)
	}
}

func (r *report) fields(key objectKey, got, want map[string]any) {
	name := key.String()
	for _, d := range diff("", got, want) {
		line := d.String()
		if key.Kind == (schema.GroupKind{Kind: "Secret"}) {
			line = d.path + " differs"
		}
		r.add(name, d.path, name+": "+line)
	}
}

// count compares how often something was done.
func (r *report) count(name, what string, got, want int) {
	switch {
	case got == want:
	case got > want && want <= 1 && got > 1:
		r.add(name, what, fmt.Sprintf("%s %s: %s", what, times(got), name))
	default:
		r.add(name, what, fmt.Sprintf("%s %s, not %s: %s", what, times(got), times(want), name))
	}
}

func times(n int) string {
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
	if gotEnd.externals == wantEnd.externals {
		return
	}
	got, want := gotEnd.decodedExternals(), wantEnd.decodedExternals()
	for i := range min(len(got), len(want)) {
		name := "external"
		if len(want) > 1 {
			name = fmt.Sprintf("external %d", i+1)
		}
		for _, d := range diff("", got[i], want[i]) {
			if d.path == "" {
				d.path = "the end"
			}
			r.add(name, d.path, name+": "+d.String())
		}
	}
}

func (e *end) decodedExternals() []any {
	var decoded []any
	if json.Unmarshal([]byte(e.mask.text(e.externals)), &decoded) != nil {
		return []any{e.externals}
	}
	return decoded
}

// unchanged is an object that is as the given one was.
func (o *object) unchanged() *object { return &object{given: o.given, last: o.given} }

// masked returns the content at the end.
func (o *object) masked(m *mask) map[string]any {
	if o.content == nil {
		o.content = content(o.last, m)
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
