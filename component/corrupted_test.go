package component_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// delete deletes the resource and makes requests until it is gone.
func (o *operated) delete(t *testing.T) {
	t.Helper()
	if err := o.client.Delete(t.Context(), o.house(t)); err != nil {
		t.Fatal(err)
	}
	for range 9 {
		if _, err := o.reconcile(t, time.Minute); err != nil {
			t.Fatal(err)
		}
		if err := o.client.Get(t.Context(), o.key, &resources.Assembly{}); apierrs.IsNotFound(err) {
			return
		}
	}
	t.Fatalf("the resource is not gone: %+v", o.house(t).Status)
}

// corrupt changes the status as another client.
func (o *operated) corrupt(t *testing.T, change func(*apis.ComponentStatus)) {
	t.Helper()
	house := o.house(t)
	change(&house.Status)
	if err := o.client.Status().Update(t.Context(), house); err != nil {
		t.Fatal(err)
	}
}

// TestRecordOfAnObjectOfOthers: a record with the UID of an object that others wrote does not make the object ours. It
// is neither overwritten nor deleted, and adopted only as the policy says.
func TestRecordOfAnObjectOfOthers(t *testing.T) {
	for policy, adopted := range map[apis.AdoptionPolicy]bool{apis.AdoptNever: false, apis.AdoptIfUnowned: true} {
		house, walls, _ := newHouse()
		house.Spec.AdoptionPolicy = policy
		o := newOperated(t, assembling(), house, nil)
		o.untilIdle(t)
		theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "walls", UID: "theirs"}}
		if err := o.client.Delete(t.Context(), walls.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		if err := o.client.Create(t.Context(), theirs, client.FieldOwner("somebody")); err != nil {
			t.Fatal(err)
		}
		o.corrupt(t, func(s *apis.ComponentStatus) {
			for i := range s.Inventory {
				if r := &s.Inventory[i]; r.Name == "walls" {
					r.UID = theirs.UID
				}
			}
		})
		o.untilIdle(t)
		found := &corev1.ConfigMap{}
		if o.get(t, "walls", found); (len(found.Data) > 0) != adopted || found.UID != theirs.UID {
			t.Errorf("%s: the object is %+v, want it to be adopted: %t", policy, found, adopted)
		}
		ready := meta.FindStatusCondition(o.house(t).Status.Conditions, "Ready")
		if want := "not ours: ConfigMap default/walls: it exists already"; strings.Contains(ready.Message, want) == adopted {
			t.Errorf("%s: the condition says %q, want %q: %t", policy, ready.Message, want, !adopted)
		}
		o.delete(t)
		if o.get(t, "walls", found); found.UID != theirs.UID || found.DeletionTimestamp != nil {
			t.Errorf("%s: after the deletion, the object is %+v, want it to stay", policy, found)
		}
	}
}

// TestMarksThatOthersRemove: an object in the inventory that has no owner label any more is still ours if it has the
// owner annotation or fields of our field manager.
func TestMarksThatOthersRemove(t *testing.T) {
	for name, remove := range map[string]func(*corev1.ConfigMap){
		"the label":            func(o *corev1.ConfigMap) { o.Labels = nil },
		"label and annotation": func(o *corev1.ConfigMap) { o.Labels, o.Annotations = nil, nil },
	} {
		house, _, _ := newHouse()
		o := newOperated(t, assembling(), house, nil)
		o.untilIdle(t)
		found := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "walls"}}
		o.get(t, "walls", found)
		labels := maps.Clone(found.Labels)
		o.change(t, found, func() { remove(found) })
		o.untilIdle(t)
		if o.get(t, "walls", found); !maps.Equal(found.Labels, labels) {
			t.Errorf("%s: the labels are %v, want %v again", name, found.Labels, labels)
		}
	}
}

// TestInventoryThatOthersEmpty: before the finalizer goes, objects with our marks are looked for if there is no record.
// What may have been adopted stays, and so does what only has the label.
func TestInventoryThatOthersEmpty(t *testing.T) {
	for name, test := range map[string]struct {
		adoption apis.AdoptionPolicy
		node     func(assemblyNode)
		stays    bool
	}{
		"desired": {},
		"adopted": {adoption: apis.AdoptIfUnowned, stays: true},
		"dependents": {node: func(node assemblyNode) {
			node.Generator = generator.GeneratorFunc(func(context.Context, string, string, generator.Unstructurable,
			) ([]client.Object, error) {
				panic("no chart")
			})
			node.Dependents = []client.Object{&corev1.ConfigMap{}}
		}},
		"nothing is known": {node: func(node assemblyNode) {
			node.Parameters = func(context.Context, *resources.Assembly) (generator.Unstructurable, error) {
				return nil, errors.New("no parameters")
			}
		}, stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			house, walls, roof := newHouse()
			house.Spec.AdoptionPolicy = test.adoption
			deployed := rollOut(t, house, 0)
			copied := deployed.Find(walls).DeepCopyObject().(client.Object)
			copied.SetName("copied")
			copied.SetUID("copied-uid")
			copied.SetAnnotations(nil)
			emptied := deployed.With(func(a *resources.Assembly) { a.Status = resources.Assembly{}.Status })
			node := assembling()
			if test.node != nil {
				test.node(node)
			}
			o := newOperated(t, node, emptied.Object(), append(deployed.Objects(), copied))
			o.delete(t)
			for _, object := range []client.Object{walls, roof} {
				found := &corev1.ConfigMap{}
				err := o.client.Get(t.Context(), client.ObjectKeyFromObject(object), found)
				if stays := err == nil; stays != test.stays {
					t.Errorf("%s: the read ends with %v, want it to stay: %t", object.GetName(), err, test.stays)
				}
				marked := found.Labels[componentPrefix+"/owner-id"] != ""
				if test.adoption != "" && marked {
					t.Errorf("%s: the labels are %v, want it released", object.GetName(), found.Labels)
				}
			}
			o.get(t, "copied", &corev1.ConfigMap{})
		})
	}
}

// TestRecordWithAnImpossibleName: a name that no object can have is named as what keeps the resource. Nothing is
// deleted until the record is mended.
func TestRecordWithAnImpossibleName(t *testing.T) {
	house, _, _ := newHouse()
	o := newOperated(t, assembling(), house, nil)
	o.untilIdle(t)
	o.corrupt(t, func(s *apis.ComponentStatus) { s.Inventory[0].Name = "a/b" })
	if err := o.client.Delete(t.Context(), o.house(t)); err != nil {
		t.Fatal(err)
	}
	_, err := o.reconcile(t, time.Minute)
	ready := meta.FindStatusCondition(o.house(t).Status.Conditions, "Ready")
	if want := `(ConfigMap default/a/b): "a/b" may not contain '/'`; err == nil || !strings.Contains(ready.Message, want) {
		t.Errorf("the error is %v and the condition says %q, want %q", err, ready.Message, want)
	}
	o.corrupt(t, func(s *apis.ComponentStatus) { s.Inventory[0].Name = "walls" })
	for range 9 {
		if _, err := o.reconcile(t, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.client.Get(t.Context(), o.key, &resources.Assembly{}); !apierrs.IsNotFound(err) {
		t.Errorf("once it is mended, the read of the resource ends with %v, want it gone", err)
	}
}

func TestRowsOfAnEmptiedInventory(t *testing.T) {
	house, walls, roof := newHouse()
	deployed := rollOut(t, house, 0)
	emptied := deployed.With(going, func(a *resources.Assembly) { a.Status = resources.Assembly{}.Status })
	const left = "2 objects left to delete, waiting for ConfigMap default/roof: it is being deleted, " +
		"ConfigMap default/walls: it is being deleted"
	assemblyRows{
		"deletes what it finds": {
			Resource:     emptied.Object(),
			GivenObjects: deployed.Objects(),
			ExpectResource: emptied.With(
				conditionIs(apis.ComponentDeleting, metav1.ConditionUnknown, "DeletionProcessing", left),
				records(
					recordOf("roof", 1, apis.PhaseDeleting, apis.ObjectTerminating, "it is being deleted"),
					recordOf("walls", 0, apis.PhaseDeleting, apis.ObjectTerminating, "it is being deleted"),
				),
			).Object(),
			ExpectDeletes: []rtesting.DeleteRef{deployed.DeleteWithResourceRef(roof), deployed.DeleteWithResourceRef(walls)},
			ExpectEvents: houseEvents(house,
				"Deleted", "Deleted 2 objects: ConfigMap default/roof, ConfigMap default/walls",
				"DeletionProcessing", left),
			ExpectedResult: later(50500 * time.Microsecond),
		},
	}.run(t)
}
