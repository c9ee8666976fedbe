package reconcilers

import (
	"github.com/espalier-dev/espalier/internal/digest"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// difference is a reason to apply a configuration: it says where, what is wrong there, and what was found.
type difference struct {
	path  string
	fault fault
	found uint64
}

type fault string

const (
	// differs: the value is another.
	differs fault = "differs"
	// notOurs: the manager does not own what it wants.
	notOurs fault = "not ours"
	// leftover: the manager owns what it does not want any more.
	leftover fault = "left over"
	// unclear: it cannot be told.
	unclear fault = "unclear"
)

// differences are all those between a configuration and an object; none if these agree.
type differences map[difference]bool

func (d differences) add(path string, fault fault, found any) {
	sum, _ := digest.Of(found)
	d[difference{path: path, fault: fault, found: sum}] = true
}

// within tells whether every difference is among known.
func (d differences) within(known differences) bool {
	for one := range d {
		if !known[one] {
			return false
		}
	}
	return true
}

// comparison compares what a manager wants of an object with what is there and with what is its own.
//
// It has no schema. What kind of list or map it meets, it takes from the fields that are owned; what it cannot take from there
// counts as a difference.
type comparison struct {
	// unowned is true if it is not known who owns what: then values are all there is to compare.
	unowned bool
	// completed is true if the server may have completed values that are owned as a whole, see ownership.created.
	completed bool
	found     differences
}

// compare returns the differences between what is wanted and what is there, given who owns what. With leave, what others own and
// have another value for is no difference.
func compare(wanted configuration, there map[string]any, who ownership, leave bool) differences {
	c := comparison{completed: !who.created.Empty(), found: differences{}}
	if who.unclear {
		c.found.add("", unclear, nil)
		return c.found
	}
	others := &fieldpath.Set{}
	if leave {
		others = who.others
	}
	want := wanted.body()
	c.members(nil, want, who.kept.Union(who.created), others, there)
	c.leftovers(nil, who.kept, want)
	return c.found
}

// compareValues returns the differences between what is wanted and what is there where it is not known who owns what.
func compareValues(wanted configuration, there map[string]any) differences {
	c := comparison{unowned: true, found: differences{}}
	none := &fieldpath.Set{}
	c.members(nil, wanted.body(), none, none, there)
	return c.found
}

func (c *comparison) members(path fieldpath.Path, want map[string]any, ours, others *fieldpath.Set, there any) {
	have, _ := there.(map[string]any)
	for name, value := range want {
		c.member(path, fieldpath.FieldNameElement(name), value, ours, others, have[name])
	}
}

// member compares what is wanted at one element of path.
func (c *comparison) member(path fieldpath.Path, at fieldpath.PathElement, want any, ours, others *fieldpath.Set, have any) {
	owned := ours.Members.Has(at)
	inner, nested := ours.Children.Get(at)
	if !nested {
		inner = &fieldpath.Set{}
	}
	theirs, shared := others.Children.Get(at)
	if !shared {
		theirs = &fieldpath.Set{}
	}
	path = append(path, at)
	switch want := want.(type) {
	case map[string]any:
		if len(want) > 0 && (nested || !owned) {
			c.members(path, want, inner, theirs, have)
			return
		}
	case []any:
		if len(want) > 0 && nested {
			c.items(path, want, inner, theirs, have)
			return
		}
	}
	same := agrees(want, have, c.completed)
	switch {
	case !c.unowned && !owned && !nested:
		if !same && (shared || others.Members.Has(at)) {
			return
		}
		c.found.add(path.String(), notOurs, have)
	case !same:
		c.found.add(path.String(), differs, have)
	}
}

// items compares a list whose items are owned one by one.
func (c *comparison) items(path fieldpath.Path, want []any, ours, others *fieldpath.Set, there any) {
	elements, ok := elementsOf(ours)
	if !ok {
		c.found.add(path.String(), unclear, there)
		return
	}
	list, _ := there.([]any)
	have := elements.byElement(list)
	for i, item := range want {
		at, ok := elements.of(item)
		if !ok {
			c.found.add(append(path, fieldpath.IndexElement(i)).String(), notOurs, nil)
			continue
		}
		c.member(path, at, item, ours, others, have[at.String()])
	}
}

// leftovers finds what is owned and not wanted.
func (c *comparison) leftovers(path fieldpath.Path, ours *fieldpath.Set, want any) {
	wanted := func(fieldpath.PathElement) (any, bool) { return nil, false }
	switch want := want.(type) {
	case map[string]any:
		wanted = func(at fieldpath.PathElement) (any, bool) {
			if at.FieldName == nil {
				return nil, false
			}
			value, ok := want[*at.FieldName]
			return value, ok
		}
	case []any:
		if elements, ok := elementsOf(ours); ok {
			items := elements.byElement(want)
			wanted = func(at fieldpath.PathElement) (any, bool) {
				item, ok := items[at.String()]
				return item, ok
			}
		}
	}
	ours.Members.Iterate(func(at fieldpath.PathElement) {
		if _, ok := wanted(at); !ok {
			c.found.add(append(path, at).String(), leftover, nil)
		}
	})
	for at := range ours.Children.All() {
		inner, _ := ours.Children.Get(at)
		if value, ok := wanted(at); ok {
			c.leftovers(append(path, at), inner, value)
		} else {
			c.found.add(append(path, at).String(), leftover, nil)
		}
	}
}

// agrees tells whether what is there is what is wanted. What a Go type has no way to leave out, or to say, is taken for zero. If
// completed, maps may have more than is wanted of them.
func agrees(want, have any, completed bool) bool {
	switch want := want.(type) {
	case map[string]any:
		members, ok := have.(map[string]any)
		if !ok {
			return isZeroContent(want) && isZeroContent(have)
		}
		for name, value := range want {
			if !agrees(value, members[name], completed) {
				return false
			}
		}
		for name, value := range members {
			if _, ok := want[name]; !ok && !completed && !isZeroContent(value) {
				return false
			}
		}
		return true
	case []any:
		items, ok := have.([]any)
		if !ok {
			return len(want) == 0 && isZeroContent(have)
		}
		if len(want) != len(items) {
			return false
		}
		for i, item := range want {
			if !agrees(item, items[i], completed) {
				return false
			}
		}
		return true
	case int64:
		if have, ok := have.(float64); ok {
			return float64(want) == have
		}
	case float64:
		if have, ok := have.(int64); ok {
			return want == float64(have)
		}
	}
	switch have.(type) {
	case map[string]any, []any:
		return isZeroContent(want) && isZeroContent(have)
	case nil:
		return isZeroContent(want)
	}
	return want == have
}

// isZeroContent tells whether v is what decoding leaves of a Go field that is zero.
func isZeroContent(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		for _, member := range v {
			if !isZeroContent(member) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	case bool:
		return !v
	case string:
		return v == ""
	case int64:
		return v == 0
	case float64:
		return v == 0
	}
	return false
}
