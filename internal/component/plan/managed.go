package plan

import (
	"math"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/apis"
)

// byPattern stands, in the place of the position of the object that defines a type, for a pattern.
const byPattern = -1

// matcher finds out which types are managed, and what defines them, by a few look-ups for each type, however many managed
// types there are.
type matcher map[apis.ManagedType][]int32

// add notes that the item at that position, or a pattern, brings t. A group with a "*" that is neither all of it nor its
// first label stands for nothing.
func (m matcher) add(t apis.ManagedType, position int32) {
	rest := t.Group
	if rest == "*" {
		rest = ""
	} else if strings.HasPrefix(rest, "*.") {
		rest = rest[1:]
	}
	if strings.Contains(rest, "*") {
		return
	}
	if present := m[t]; len(present) == 0 || present[len(present)-1] != position {
		m[t] = append(present, position)
	}
}

// definers returns what brings the type, each once, and whether anything does.
func (m matcher) definers(t apis.ManagedType) (positions []int32, managed bool) {
	if len(m) == 0 {
		return nil, false
	}
	collect := func(group string) {
		for _, kind := range [2]string{t.Kind, "*"} {
			for _, version := range [2]string{t.Version, "*"} {
				for _, position := range m[apis.ManagedType{Group: group, Version: version, Kind: kind}] {
					managed = true
					if position != byPattern {
						positions = append(positions, position)
					}
				}
			}
		}
	}
	collect(t.Group)
	collect("*")
	for i := range len(t.Group) {
		if t.Group[i] == '.' {
			collect("*" + t.Group[i:])
		}
	}
	slices.Sort(positions)
	return slices.Compact(positions), managed
}

// kind is what the plan knows of a type of objects.
type kind struct {
	applyPriority, deletePriority int8
	// namespace: it is Namespace. defines: its objects define types. late: it is APIService.
	namespace, defines, late bool
	// managed: the component brings the type. Namespaces never count: what is in them would have to wait for them, and they
	// for it.
	managed bool
	// left counts the records of the type whose object is there, as far as is known, and unreleased those of them that
	// are not to go yet. order is the highest delete order of those that are to go.
	left, unreleased int
	order            int16
}

// kinds are the types of all records.
type kinds struct {
	byType map[apis.ManagedType]*kind
	// instances are the types that an object defines, by its position.
	instances map[int32][]*kind
	matcher   matcher
	// The type asked for last is often asked for next.
	last      apis.ManagedType
	lastFound *kind
}

func newKinds() *kinds {
	return &kinds{byType: map[apis.ManagedType]*kind{}, instances: map[int32][]*kind{}, matcher: matcher{}}
}

// of returns what is known of the type of a record. All that brings types must be in the matcher before.
func (k *kinds) of(r *apis.InventoryRecord) *kind {
	t := apis.ManagedType{Group: r.Group, Version: r.Version, Kind: r.Kind}
	if k.lastFound != nil && k.last == t {
		return k.lastFound
	}
	found := k.byType[t]
	if found == nil {
		found = k.learn(t)
		k.byType[t] = found
	}
	k.last, k.lastFound = t, found
	return found
}

func (k *kinds) learn(t apis.ManagedType) *kind {
	gk := Key{Group: t.Group, Kind: t.Kind}.GroupKind()
	found := &kind{
		applyPriority:  applyPriorities[gk],
		deletePriority: deletePriorities[gk],
		namespace:      gk == kindNamespace,
		defines:        definesTypes(gk),
		late:           gk == kindAPIService,
		order:          math.MinInt16,
	}
	definers, managed := k.matcher.definers(t)
	found.managed = managed && !found.namespace
	for _, position := range definers {
		k.instances[position] = append(k.instances[position], found)
	}
	return found
}
