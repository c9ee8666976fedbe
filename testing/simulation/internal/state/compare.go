package state

import (
	"bytes"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/testing/internal/jsondiff"
)

var (
	podKind    = schema.GroupKind{Kind: "Pod"}
	secretKind = schema.GroupKind{Kind: "Secret"}
)

// Compare returns how a state differs from the one that is wanted, in lines such as "missing: Deployment shop/web" and
// "Deployment shop/web: spec.replicas is 2, not 3". What is by chance is not compared: see [normalize.Object]; UIDs,
// generated names and addresses of Pods; and objects that are [Passing]. Values of Secrets are not told. Edit may
// change the fields of both objects before. Nil changes nothing.
func Compare(got, want State, edit func(fields map[string]any)) []string {
	gotObjects, wantObjects := got.comparable(), want.comparable()
	keys := slices.AppendSeq(slices.Collect(maps.Keys(gotObjects)), maps.Keys(wantObjects))
	slices.SortFunc(keys, Key.Compare)
	var lines []string
	for _, key := range slices.Compact(keys) {
		g, w := gotObjects[key], wantObjects[key]
		switch {
		case g == nil:
			lines = append(lines, "missing: "+key.String())
		case w == nil:
			lines = append(lines, "left over: "+key.String())
		default:
			lines = append(lines, compare(key, g, w, edit)...)
		}
	}
	return lines
}

// readable is an object and the names in it.
type readable struct {
	*Object
	names *Names
}

// comparable returns the objects that are compared, by their keys without what is named by chance.
func (s State) comparable() map[Key]*readable {
	n := s.Names()
	objects := map[Key]*readable{}
	for _, obj := range s.All() {
		if !Passing(obj.Kind) {
			objects[n.Key(obj.Key)] = &readable{obj, n}
		}
	}
	return objects
}

func compare(key Key, got, want *readable, edit func(fields map[string]any)) []string {
	if bytes.Equal(got.data, want.data) {
		return nil
	}
	var lines []string
	for _, d := range jsondiff.Diff(got.names.normalize(got.Object, edit), want.names.normalize(want.Object, edit)) {
		line := d.String()
		if key.Kind == secretKind {
			line = d.Path + " differs"
		}
		lines = append(lines, key.String()+": "+line)
	}
	return lines
}

// Item is an object without what is by chance.
type Item struct {
	Key
	Fields map[string]any
}

// Since returns the objects that are not as they were in another state, in the order of their keys, without what is by
// chance. Those that are [Passing] are left out. Edit may change the fields of an object before. Nil changes nothing.
func (s State) Since(before State, edit func(fields map[string]any)) []Item {
	n := s.Names()
	var items []Item
	for _, obj := range s.All() {
		old := before.Get(obj.Key)
		if Passing(obj.Kind) || old != nil && len(compare(obj.Key, &readable{obj, n}, &readable{old, n}, nil)) == 0 {
			continue
		}
		items = append(items, Item{n.Key(obj.Key), n.normalize(obj, edit)})
	}
	slices.SortFunc(items, func(a, b Item) int { return a.Compare(b.Key) })
	return items
}
