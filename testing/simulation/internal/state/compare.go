package state

import (
	"bytes"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/internal/fault"
)

var podKind = schema.GroupKind{Kind: "Pod"}

// Compare returns how a state differs from the one that is wanted, in lines, see [fault.Compare]. What is by chance is
// not compared: see [fault.Names]; and objects that are [Passing]. Edit may change the fields of both objects before.
// Nil changes nothing.
func Compare(got, want State, edit func(fields map[string]any)) []string {
	return fault.Compare(got.end(edit), want.end(edit), nil)
}

// end returns the objects that are compared, by their keys without what is named by chance.
func (s State) end(edit func(fields map[string]any)) *fault.End {
	names := s.Names()
	e := &fault.End{Objects: map[fault.Key]*fault.Changed{}}
	for _, obj := range s.All() {
		if !Passing(obj.Kind) {
			alias, _ := names.Alias(obj.Key)
			e.Objects[alias] = &fault.Changed{Last: readable{obj, names, edit}, Group: alias}
		}
	}
	return e
}

// Names returns the names of a state.
func (s State) Names() *fault.Names {
	all := map[fault.Key]*fault.Made{}
	for uid, c := range s.created {
		made := all[c.Key]
		if made == nil {
			made = &fault.Made{}
			all[c.Key] = made
			if obj := s.Get(c.Key); obj != nil {
				made.Fields = obj.Fields
			}
		}
		made.UIDs = append(made.UIDs, uid)
		if c.generateName != "" {
			made.GenerateName = c.generateName
		}
	}
	for _, pod := range s.Of(podKind) {
		if status, ok := pod.Fields()["status"].(map[string]any); ok && all[pod.Key] != nil {
			all[pod.Key].Address, _ = status["podIP"].(string)
		}
	}
	return fault.NewNames(all)
}

// readable is an object and the names in it.
type readable struct {
	*Object
	names *fault.Names
	edit  func(fields map[string]any)
}

// Same implements [fault.Object].
func (r readable) Same(other fault.Object) bool {
	o, ok := other.(readable)
	return ok && bytes.Equal(r.data, o.data)
}

// Normal implements [fault.Object].
func (r readable) Normal() map[string]any {
	fields := r.Fields()
	if r.edit != nil {
		r.edit(fields)
	}
	return r.names.Normalize(fields, r.Cluster)
}

// Item is an object without what is by chance.
type Item struct {
	fault.Key
	Fields map[string]any
}

// Since returns the objects that are not as they were in another state, in the order of their keys, without what is by
// chance. Those that are [Passing] are left out. Edit may change the fields of an object before. Nil changes nothing.
func (s State) Since(before State, edit func(fields map[string]any)) []Item {
	names := s.Names()
	var items []Item
	for _, obj := range s.All() {
		old := before.Get(obj.Key)
		is := readable{obj, names, nil}
		if Passing(obj.Kind) || old != nil && len(fault.Differences(obj.Kind, is, readable{old, names, nil})) == 0 {
			continue
		}
		alias, _ := names.Alias(obj.Key)
		items = append(items, Item{alias, readable{obj, names, edit}.Normal()})
	}
	slices.SortFunc(items, func(a, b Item) int { return a.Compare(b.Key) })
	return items
}
