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

var (
	kindValidating    = schema.GroupKind{Group: groupAdmission, Kind: "ValidatingWebhookConfiguration"}
	kindMutating      = schema.GroupKind{Group: groupAdmission, Kind: "MutatingWebhookConfiguration"}
	kindIngressClass  = schema.GroupKind{Group: "networking.k8s.io", Kind: "IngressClass"}
	kindRuntimeClass  = schema.GroupKind{Group: "node.k8s.io", Kind: "RuntimeClass"}
	kindPriorityClass = schema.GroupKind{Group: "scheduling.k8s.io", Kind: "PriorityClass"}
	kindStorageClass  = schema.GroupKind{Group: "storage.k8s.io", Kind: "StorageClass"}
)

// applyPriorities say which kinds of a wave are written before others. The default is 0.
var applyPriorities = map[schema.GroupKind]int8{
	kinds.Namespace:                         -4,
	kindValidating:                          -3,
	kindMutating:                            -3,
	kinds.CustomResourceDefinition:          -2,
	kindIngressClass:                        -2,
	kindRuntimeClass:                        -2,
	kindPriorityClass:                       -2,
	kindStorageClass:                        -2,
	{Group: groupRBAC, Kind: "ClusterRole"}: -2,
	{Group: groupRBAC, Kind: "Role"}:        -2,
	kinds.ConfigMap:                         -1,
	kinds.Secret:                            -1,
	{Group: groupRBAC, Kind: "ClusterRoleBinding"}: -1,
	{Group: groupRBAC, Kind: "RoleBinding"}:        -1,
	kinds.APIService:                               1,
}

// deletePriorities say which kinds of a wave are deleted before others. The default is 0.
var deletePriorities = map[schema.GroupKind]int8{
	kinds.CustomResourceDefinition: -1,
	kinds.APIService:               -1,
	kindValidating:                 1,
	kindMutating:                   1,
	kinds.Service:                  2,
	kinds.ConfigMap:                2,
	kinds.Secret:                   2,
	kinds.Namespace:                3,
	kindIngressClass:               4,
	kindRuntimeClass:               4,
	kindPriorityClass:              4,
	kindStorageClass:               4,
}

// kind is what the plan knows of a type of objects.
type kind struct {
	applyPriority, deletePriority           int8
	isNamespace, isAPIService, definesTypes bool
	// managed: the component, or a pattern, defines the type. Namespaces never count: the objects in them would have to
	// wait for them, and they for the objects.
	managed   bool
	instances contents
}

// contents counts the objects in a container: the instances of a type, or the objects in a namespace.
type contents struct {
	// left counts the objects that exist, as far as is known. retained counts the ones that may not be deleted yet.
	left, retained int
	// order is the highest delete order of the objects that are to be deleted.
	order int16
}

func newContents() *contents {
	return &contents{order: math.MinInt16}
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
		found = &kind{
			applyPriority:  applyPriorities[gk],
			deletePriority: deletePriorities[gk],
			isNamespace:    gk == kinds.Namespace,
			isAPIService:   gk == kinds.APIService,
			definesTypes:   kinds.DefinesTypes(gk),
			managed:        len(definers) > 0 && gk != kinds.Namespace,
			instances:      *newContents(),
		}
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
