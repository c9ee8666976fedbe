package testing

import (
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/component/engine"
	"github.com/espalier-dev/espalier/internal/component/inventory"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/testing/internal/check"
	"github.com/espalier-dev/espalier/testing/internal/objects"
	"github.com/espalier-dev/espalier/testing/internal/run"
)

// Inventory expects, in ExpectCreates and ExpectUpdates, a Secret or ConfigMap that keeps records of a component, which
// are compressed there. A component has four of them. Which one has a record depends on a hash of its key; a failed row
// prints it:
//
//	ExpectCreates: []client.Object{&rtesting.Inventory{
//		ObjectMeta: metav1.ObjectMeta{Namespace: "default"},
//		Records: []apis.InventoryRecord{
//			{Version: "v1", Kind: "ConfigMap", Namespace: "default", Name: "walls", Phase: apis.PhaseReady},
//		},
//	}},
//
// It is compared as a structure. The namespace and the records are always compared, other fields only if they are set:
// the name, for example, has a hash of the owner in it. See [DefaultDiffer] for records. An Inventory can only be
// expected. Give the real object, for example from a [Rollout].
type Inventory struct {
	metav1.ObjectMeta
	// Kind is Secret or ConfigMap; empty for any.
	Kind string
	// Records are in order of group, kind, namespace and name.
	Records []apis.InventoryRecord
}

var (
	_ client.Object = (*Inventory)(nil)

	errOnlyExpected = errors.New("an Inventory can only be expected: give the object that keeps it, from a Rollout")
)

// GetObjectKind returns the kind of the object that keeps the records. It cannot be changed.
func (i *Inventory) GetObjectKind() schema.ObjectKind {
	kind := &metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: i.Kind}
	return run.OnlyExpected{ObjectKind: kind, Why: errOnlyExpected}
}

// DeepCopyObject returns a copy.
func (i *Inventory) DeepCopyObject() runtime.Object {
	if i == nil {
		return nil
	}
	return &Inventory{ObjectMeta: *i.ObjectMeta.DeepCopy(), Kind: i.Kind, Records: check.CopyOfRecords(i.Records)}
}

// InventoryOf returns the records that objects keep: resources in the status of their components, Secrets and
// ConfigMaps as content. Those of Secrets and ConfigMaps come first, in order of group, kind, namespace and name. It
// returns none for other objects, and an error for records that are damaged.
func InventoryOf(objs ...client.Object) ([]apis.InventoryRecord, error) {
	var kept, inStatus []apis.InventoryRecord
	for _, obj := range objects.CopyAll(objs) {
		records, _, err := inventory.Read(obj)
		if err != nil {
			return nil, err
		}
		kept = append(kept, records...)
		for _, status := range check.ComponentStatuses(obj) {
			inStatus = append(inStatus, check.CopyOfRecords(status.Inventory)...)
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

// ignoreUnset returns the part of an observed inventory that i sets.
func (i *Inventory) ignoreUnset(actual *Inventory) *Inventory {
	part := &Inventory{Kind: actual.Kind, Records: check.CopyOfRecords(actual.Records)}
	part.ObjectMeta = metav1.ObjectMeta{
		Namespace: actual.Namespace, Name: actual.Name, UID: actual.UID, Labels: actual.Labels,
		Annotations: actual.Annotations, Finalizers: actual.Finalizers, OwnerReferences: actual.OwnerReferences,
	}
	check.IgnoreField(i.Kind, &part.Kind)
	check.IgnoreField(i.Name, &part.Name)
	check.IgnoreField(i.UID, &part.UID)
	check.IgnoreField(i.Labels, &part.Labels)
	check.IgnoreField(i.Annotations, &part.Annotations)
	check.IgnoreField(i.Finalizers, &part.Finalizers)
	check.IgnoreField(i.OwnerReferences, &part.OwnerReferences)
	check.IgnoreUnsetRecords(i.Records, part.Records)
	return part
}

// pastable returns the part of an observed inventory that belongs in a table.
func (i *Inventory) pastable() *Inventory {
	return (&Inventory{Kind: i.Kind, Records: check.KeysOnly(i.Records)}).ignoreUnset(i)
}

// IgnoreComputed clears the times and digests in the status of a component, and the UIDs, digests and the like in its
// inventory records. An expectation that starts from a [RolledOut] resource then does not compare them, see
// [DefaultDiffer].
func IgnoreComputed(status *apis.ComponentStatus) { check.IgnoreComputed(status) }

// WithOwnership returns a copy of obj with the label and annotation by which a [component.ComponentReconciler] of
// that prefix marks the objects of owner, for tables that expect obj to be created. The digest is not among them: it is
// compared only where an expectation has one. It panics if the kind of owner is not known.
func WithOwnership[Type client.Object](obj Type, prefix string, owner client.Object, scheme *runtime.Scheme) Type {
	owner = objects.Copy(owner)
	kind, err := objects.KindOf(owner, scheme)
	if err != nil {
		panic(err)
	}
	text := engine.OwnerText(kind.GroupKind(), client.ObjectKeyFromObject(owner), "", owner.GetUID())
	owned := objects.Copy(obj)
	label := map[string]string{prefix + "/" + generator.LabelOwnerID: engine.OwnerID(text)}
	annotation := map[string]string{prefix + "/" + generator.AnnotationOwnerID: text}
	owned.SetLabels(reconcilers.MergeMaps(owned.GetLabels(), label))
	owned.SetAnnotations(reconcilers.MergeMaps(owned.GetAnnotations(), annotation))
	return owned
}
