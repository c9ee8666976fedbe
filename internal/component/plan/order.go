package plan

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	groupCRD        = "apiextensions.k8s.io"
	groupAPIService = "apiregistration.k8s.io"
	groupAdmission  = "admissionregistration.k8s.io"
	groupRBAC       = "rbac.authorization.k8s.io"
)

var (
	kindNamespace  = schema.GroupKind{Kind: "Namespace"}
	kindCRD        = schema.GroupKind{Group: groupCRD, Kind: "CustomResourceDefinition"}
	kindAPIService = schema.GroupKind{Group: groupAPIService, Kind: "APIService"}

	kindValidating    = schema.GroupKind{Group: groupAdmission, Kind: "ValidatingWebhookConfiguration"}
	kindMutating      = schema.GroupKind{Group: groupAdmission, Kind: "MutatingWebhookConfiguration"}
	kindIngressClass  = schema.GroupKind{Group: "networking.k8s.io", Kind: "IngressClass"}
	kindRuntimeClass  = schema.GroupKind{Group: "node.k8s.io", Kind: "RuntimeClass"}
	kindPriorityClass = schema.GroupKind{Group: "scheduling.k8s.io", Kind: "PriorityClass"}
	kindStorageClass  = schema.GroupKind{Group: "storage.k8s.io", Kind: "StorageClass"}
	kindConfigMap     = schema.GroupKind{Kind: "ConfigMap"}
	kindSecret        = schema.GroupKind{Kind: "Secret"}
	kindService       = schema.GroupKind{Kind: "Service"}
)

// definesTypes tells whether objects of the kind bring types into a cluster.
func definesTypes(gk schema.GroupKind) bool {
	return gk == kindCRD || gk == kindAPIService
}

// applyPriorities say which kinds of a wave are written before others. A kind that is not listed has 0.
var applyPriorities = map[schema.GroupKind]int8{
	kindNamespace:                           -4,
	kindValidating:                          -3,
	kindMutating:                            -3,
	kindCRD:                                 -2,
	kindIngressClass:                        -2,
	kindRuntimeClass:                        -2,
	kindPriorityClass:                       -2,
	kindStorageClass:                        -2,
	{Group: groupRBAC, Kind: "ClusterRole"}: -2,
	{Group: groupRBAC, Kind: "Role"}:        -2,
	kindConfigMap:                           -1,
	kindSecret:                              -1,
	{Group: groupRBAC, Kind: "ClusterRoleBinding"}: -1,
	{Group: groupRBAC, Kind: "RoleBinding"}:        -1,
	kindAPIService:                                 1,
}

// deletePriorities say which kinds of a wave are deleted before others. A kind that is not listed has 0.
var deletePriorities = map[schema.GroupKind]int8{
	kindCRD:           -1,
	kindAPIService:    -1,
	kindValidating:    1,
	kindMutating:      1,
	kindService:       2,
	kindConfigMap:     2,
	kindSecret:        2,
	kindNamespace:     3,
	kindIngressClass:  4,
	kindRuntimeClass:  4,
	kindPriorityClass: 4,
	kindStorageClass:  4,
}

// place is where something stands in a canonical order: by wave, by priority of its kind, and among equals by its position. It
// is one number, so that sorting 10,000 of them is cheap.
type place int64

func placeOf(order int16, priority int8, position int) place {
	return place(int64(order)<<40 | (int64(priority)+128)<<32 | int64(position))
}

func (p place) position() int {
	return int(p & 0xffffffff)
}

// ordered sorts places, unless they are sorted already, as they mostly are.
func ordered(places []place) []place {
	if !slices.IsSorted(places) {
		slices.Sort(places)
	}
	return places
}

// waveNumber returns the index of the last of the sorted orders that is not above order; -1 if all are.
func waveNumber(orders []int16, order int16) int {
	i, found := slices.BinarySearchFunc(orders, order, cmp.Compare[int16])
	if found {
		return i
	}
	return i - 1
}
