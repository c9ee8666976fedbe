package plan

import (
	"math"
	"slices"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/kinds"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	groupAdmission = "admissionregistration.k8s.io"
	groupRBAC      = "rbac.authorization.k8s.io"
)

// kind is what the plan knows of a type of objects.
type kind struct {
	// Of the kinds of a wave, those with a lower priority are written or deleted first.
	applyPriority, deletePriority           int8
	isNamespace, isAPIService, definesTypes bool
	// isWebhook reports whether an object of the kind makes the API server ask others about requests.
	isWebhook bool
	// managed reports whether the component, or a pattern, defines the type. Namespaces never count: the objects in
	// them would have to wait for them, and they for the objects.
	managed   bool
	instances contents
	// definers are the positions of what defines the type.
	definers []int32
}

// builtIn has the kinds that the plan knows. The priorities of all others are 0.
var builtIn = map[schema.GroupKind]kind{
	kinds.Namespace: {applyPriority: -4, deletePriority: 3, isNamespace: true},

	kinds.CustomResourceDefinition:                      {applyPriority: -2, deletePriority: -1, definesTypes: true},
	{Group: "networking.k8s.io", Kind: "IngressClass"}:  {applyPriority: -2, deletePriority: 4},
	{Group: "node.k8s.io", Kind: "RuntimeClass"}:        {applyPriority: -2, deletePriority: 4},
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}: {applyPriority: -2, deletePriority: 4},
	{Group: "storage.k8s.io", Kind: "StorageClass"}:     {applyPriority: -2, deletePriority: 4},
	{Group: groupRBAC, Kind: "ClusterRole"}:             {applyPriority: -2},
	{Group: groupRBAC, Kind: "Role"}:                    {applyPriority: -2},

	kinds.ConfigMap: {applyPriority: -1, deletePriority: 2},
	kinds.Secret:    {applyPriority: -1, deletePriority: 2},
	{Group: groupRBAC, Kind: "ClusterRoleBinding"}: {applyPriority: -1},
	{Group: groupRBAC, Kind: "RoleBinding"}:        {applyPriority: -1},

	kinds.Service: {deletePriority: 2},

	// A webhook may refuse what its server needs.
	{Group: groupAdmission, Kind: "ValidatingWebhookConfiguration"}: webhook,
	{Group: groupAdmission, Kind: "MutatingWebhookConfiguration"}:   webhook,

	kinds.APIService: {applyPriority: 2, deletePriority: -1, isAPIService: true, definesTypes: true},
}

var webhook = kind{applyPriority: 1, deletePriority: -2, isWebhook: true}

// contents counts the objects in a container: the instances of a type, or the objects in a namespace.
type contents struct {
	// left counts the objects that exist, as far as is known. retained counts the ones that may not be deleted yet.
	left, retained int
	// order is the highest delete order of the objects that are to be deleted.
	order int16
}

// kindSet has the types of all records.
type kindSet struct {
	byType map[apis.ManagedType]*kind
	// contents has, by the position of an object, what its deletion would delete: instances of the types that it
	// defines, and the objects in the namespace that it is.
	contents map[int32][]*contents
	matcher  matcher
	// The type that was asked for last is often asked for next.
	last      apis.ManagedType
	lastFound *kind
}

func newKindSet() *kindSet {
	return &kindSet{byType: map[apis.ManagedType]*kind{}, contents: map[int32][]*contents{}, matcher: matcher{}}
}

// of returns what is known of the type of a record. It needs a complete matcher.
func (k *kindSet) of(r *apis.InventoryRecord) *kind {
	t := apis.ManagedType{Group: r.Group, Version: r.Version, Kind: r.Kind}
	if k.lastFound != nil && k.last == t {
		return k.lastFound
	}
	found := k.byType[t]
	if found == nil {
		gk := schema.GroupKind{Group: t.Group, Kind: t.Kind}
		definers := k.matcher.definers(t)
		found = new(builtIn[gk])
		found.managed = len(definers) > 0 && !found.isNamespace
		found.definers = definers
		found.instances.order = math.MinInt16
		for _, position := range definers {
			k.addContents(position, &found.instances)
		}
		k.byType[t] = found
	}
	k.last, k.lastFound = t, found
	return found
}

// addContents records that deleting the object at position deletes the objects that c counts.
func (k *kindSet) addContents(position int32, c *contents) *contents {
	k.contents[position] = append(k.contents[position], c)
	return c
}

// byPattern stands for a pattern in the place of the position of an object that defines a type.
const byPattern = -1

// matcher has the positions of the objects that define a type, by the type with its wildcards. The number of look-ups
// for a type does not depend on the number of managed types.
type matcher map[apis.ManagedType][]int32

// add records that the object at position defines t. A group is a name, "*" for all groups, or "*." and a suffix. Any
// other group with a "*" matches nothing, since no group has such a name.
func (m matcher) add(t apis.ManagedType, position int32) {
	m[t] = append(m[t], position)
}

// definers returns the positions of what defines the type, in ascending order, each once.
func (m matcher) definers(t apis.ManagedType) (positions []int32) {
	if len(m) == 0 {
		return nil
	}
	collect := func(group string) {
		for _, kind := range [...]string{t.Kind, "*"} {
			for _, version := range [...]string{t.Version, "*"} {
				positions = append(positions, m[apis.ManagedType{Group: group, Version: version, Kind: kind}]...)
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
	return slices.Compact(positions)
}

// place is where something stands in a canonical order: by wave, by the priority of its kind, and by its position. It
// is one number, so that sorting 10,000 of them is cheap.
type place int64

func placeOf(order int16, priority int8, position int) place {
	return place(int64(order)<<40 | (int64(priority)+128)<<32 | int64(position))
}

// inOrder returns the values whose positions are in places, in the order of places. It returns values itself if these
// are all values and in order, which is usual.
func inOrder[Value any](values []Value, places []place) []Value {
	if !slices.IsSorted(places) {
		slices.Sort(places)
	} else if len(places) == len(values) {
		return values
	}
	sorted := make([]Value, len(places))
	for i, p := range places {
		sorted[i] = values[p&0xffffffff]
	}
	return sorted
}
