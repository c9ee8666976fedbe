package testing

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/inventory"
)

// Inventory expects, in ExpectCreates and ExpectUpdates, a Secret or ConfigMap that keeps records of a component, which are compressed
// there. A component has four of them. Which one has a record depends on a hash of its key; a failed row prints it:
//
//	ExpectCreates: []client.Object{&rtesting.Inventory{
//		ObjectMeta: metav1.ObjectMeta{Namespace: "default"},
//		Records:    []apis.InventoryRecord{{Version: "v1", Kind: "ConfigMap", Namespace: "default", Name: "walls", Phase: apis.PhaseReady}},
//	}},
//
// It is compared as a structure. All but the namespace and the records is compared only if it is set: the name, for example, has a hash
// of the owner in it. See [DefaultDiffer] for records. Inventories can only be expected; what is given has to be the real object, as
// [Rollout] has it.
type Inventory struct {
	metav1.ObjectMeta
	// Kind is Secret or ConfigMap; empty for any.
	Kind string
	// Records are those that the object keeps, in order of group, kind, namespace and name.
	Records []apis.InventoryRecord
}

var _ client.Object = (*Inventory)(nil)

// GetObjectKind returns the kind of the object that keeps the records. It cannot be changed.
func (i *Inventory) GetObjectKind() schema.ObjectKind {
	return &metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: i.Kind}
}

// DeepCopyObject returns a copy.
func (i *Inventory) DeepCopyObject() runtime.Object {
	if i == nil {
		return nil
	}
	return &Inventory{ObjectMeta: *i.ObjectMeta.DeepCopy(), Kind: i.Kind, Records: copyOfRecords(i.Records)}
}

func copyOfRecords(records []apis.InventoryRecord) []apis.InventoryRecord {
	copied := slices.Clone(records)
	for i := range copied {
		copied[i] = *records[i].DeepCopy()
	}
	return copied
}

// InventoryOf returns the records that objects keep: resources in the status of their components, Secrets and ConfigMaps as content.
// Those of Secrets and ConfigMaps come first, in order of group, kind, namespace and name. It returns none for other objects, and an
// error for records that are damaged.
func InventoryOf(objs ...client.Object) ([]apis.InventoryRecord, error) {
	var kept, inStatus []apis.InventoryRecord
	for _, obj := range realObjects(objs) {
		records, _, err := inventory.Read(obj)
		if err != nil {
			return nil, err
		}
		kept = append(kept, records...)
		for _, status := range componentStatuses(obj) {
			inStatus = append(inStatus, copyOfRecords(status.Inventory)...)
		}
	}
	slices.SortFunc(kept, func(a, b apis.InventoryRecord) int { return inventory.ByKey(&a, &b) })
	return append(kept, inStatus...), nil
}

// asInventory returns an object that keeps records as an Inventory, and any other as it is.
func asInventory(obj client.Object) client.Object {
	records, ok, err := inventory.Read(obj)
	if !ok || err != nil {
		return obj
	}
	i := &Inventory{Kind: inventory.KindSecret, Records: records}
	switch obj := obj.(type) {
	case *corev1.ConfigMap:
		i.ObjectMeta, i.Kind = *obj.ObjectMeta.DeepCopy(), inventory.KindConfigMap
	case *corev1.Secret:
		i.ObjectMeta = *obj.ObjectMeta.DeepCopy()
	}
	return i
}

// asSaid returns the part of an observed inventory that i says something about.
func (i *Inventory) asSaid(actual *Inventory) *Inventory {
	said := &Inventory{Records: copyOfRecords(actual.Records)}
	said.Namespace = actual.Namespace
	if i.Kind != "" {
		said.Kind = actual.Kind
	}
	if i.Name != "" {
		said.Name = actual.Name
	}
	if i.UID != "" {
		said.UID = actual.UID
	}
	if len(i.Labels) > 0 {
		said.Labels = actual.Labels
	}
	if len(i.Annotations) > 0 {
		said.Annotations = actual.Annotations
	}
	if len(i.Finalizers) > 0 {
		said.Finalizers = actual.Finalizers
	}
	if len(i.OwnerReferences) > 0 {
		said.OwnerReferences = actual.OwnerReferences
	}
	leaveUnsaidRecords(i.Records, said.Records)
	return said
}

// pastable returns what of an observed inventory belongs in a table.
func (i *Inventory) pastable() *Inventory {
	kept := &Inventory{Kind: i.Kind, Records: copyOfRecords(i.Records)}
	kept.Namespace = i.Namespace
	leaveUnsaidRecords(bare(i.Records), kept.Records)
	return kept
}

// bare returns records that say nothing but what they are about.
func bare(records []apis.InventoryRecord) []apis.InventoryRecord {
	bare := make([]apis.InventoryRecord, len(records))
	for i, r := range records {
		bare[i] = apis.InventoryRecord{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
	}
	return bare
}
