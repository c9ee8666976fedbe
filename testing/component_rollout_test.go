package testing_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
)

const housePrefix = "house.example.com"

func houseOf(objects ...client.Object) *resources.Assembly {
	house := resources.NewAssembly("default", "house", objects...)
	house.UID = "house-uid"
	return house
}

func houseNode() *component.ComponentReconciler[*resources.Assembly] {
	return &component.ComponentReconciler[*resources.Assembly]{Prefix: housePrefix, Generator: resources.AssemblyGenerator()}
}

func part(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
	}
}

func rollOut(t testing.TB, house *resources.Assembly, given ...client.Object) *rtesting.RolledOut[*resources.Assembly] {
	return rtesting.Rollout[*resources.Assembly]{Scheme: widgets, Resource: house, Reconciler: houseNode(), GivenObjects: given}.Run(t)
}

// Types that a roll-out brings are established and served, so that instances of them can be part of it. What they need
// to be ready is the test's to say.
func TestRolloutServesWhatItBrings(t *testing.T) {
	definition := resources.CRD()
	definition.TypeMeta = metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}
	definition.Name, definition.Spec.Names.Plural = "gadgets.test.espalier.dev", "gadgets"
	definition.Spec.Names.Kind, definition.Spec.Names.Singular, definition.Spec.Names.ListKind = "Gadget", "gadget", "GadgetList"
	gadget := &unstructured.Unstructured{}
	gadget.SetGroupVersionKind(schema.GroupVersionKind{Group: "test.espalier.dev", Version: "v1", Kind: "Gadget"})
	gadget.SetName("gadget")
	gadget.SetAnnotations(map[string]string{generator.SharedPrefix + "/" + generator.AnnotationStatusHint: "has-ready-condition"})

	completed := 0
	rollout := rtesting.Rollout[*resources.Assembly]{
		Scheme: widgets, Resource: houseOf(definition, gadget), Reconciler: houseNode(),
		Complete: func(obj *unstructured.Unstructured) {
			if obj.GetKind() == "Gadget" {
				completed++
				_ = unstructured.SetNestedSlice(obj.Object, []any{map[string]any{"type": "Ready", "status": "True"}}, "status", "conditions")
			}
		},
	}
	house := rollout.Run(t)
	if state := house.Object().Status.State; state != apis.ComponentReady || completed == 0 {
		t.Errorf("the state is %s after %d completions: %v", state, completed, house.Object().Status.Conditions)
	}
	gadget.SetNamespace("default")
	if found := house.Find(gadget); found == nil || found.GetUID() == "" {
		t.Errorf("found %v", found)
	}
	if n := len(house.Objects()); n != 3 {
		t.Errorf("there are %d objects beside the resource, not the namespace, the definition and the gadget", n)
	}
}

func TestRolledOutNeverChanges(t *testing.T) {
	walls, roof := part("walls"), part("roof")
	house := rollOut(t, houseOf(walls, roof))
	house.Objects()[1].SetName("changed")
	house.Find(walls).SetName("changed")
	after := house.After(t, func(ctx context.Context, c client.Client) error {
		return errors.Join(c.Delete(ctx, roof), c.Create(ctx, part("door")))
	})
	if house.Find(walls) == nil || house.Find(roof) == nil || house.Find(part("door")) != nil {
		t.Error("what is rolled out has changed")
	}
	if after.Find(walls) == nil || after.Find(roof) != nil || after.Find(part("door")) == nil {
		t.Errorf("what somebody did is not there: %v", after.Objects())
	}
	if after.Find(walls).GetUID() != house.Find(walls).GetUID() {
		t.Error("what nobody touched is another object")
	}
	if created := house.Created(walls); created.GetUID() != "" || created.GetAnnotations()[housePrefix+"/digest"] == "" {
		t.Errorf("it would be created as %v", created)
	}
}

func TestRolloutStopsAfterSoManyRequests(t *testing.T) {
	walls := part("walls")
	recorded := rtesting.Rollout[*resources.Assembly]{Scheme: widgets, Resource: houseOf(walls), Reconciler: houseNode(), Requests: 1}.Run(t)
	if recorded.Find(walls) != nil || len(recorded.Object().Status.Inventory) != 1 {
		t.Errorf("it is not only recorded: %v", recorded.Objects())
	}
}

// Without a test, what fails the test panics.
func TestRolloutFails(t *testing.T) {
	for name, tc := range map[string]struct {
		rollout rtesting.Rollout[*resources.Assembly]
		want    string
	}{
		"nothing to roll out": {want: "needs a Scheme, a Resource and a Reconciler"},
		"a failing request": {
			rollout: rtesting.Rollout[*resources.Assembly]{Scheme: widgets, Resource: houseOf(&corev1.ConfigMap{}), Reconciler: houseNode()},
			want:    "request 1 of the roll-out failed: ",
		},
		"no end": {
			rollout: rtesting.Rollout[*resources.Assembly]{Scheme: widgets, Resource: houseOf(), Reconciler: &reconcilers.SyncReconciler[*resources.Assembly]{
				Sync: func(_ context.Context, house *resources.Assembly) error {
					house.Status.Revision++
					return nil
				},
			}},
			want: "has not come to an end after 100 requests",
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if err, ok := recover().(error); !ok || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("failed with %v, expected %q", err, tc.want)
				}
			}()
			tc.rollout.Run(nil)
		})
	}
}

// What an expectation says nothing about is not compared; what it says is.
func TestComponentsAreComparedAsFarAsExpected(t *testing.T) {
	walls := part("walls")
	house := rollOut(t, houseOf(walls))
	open := house.With(func(a *resources.Assembly) { rtesting.IgnoreComputed(&a.Status) }).Object()
	if open.Status.ProcessingDigest != "" || open.Status.Inventory[0].Digest != "" || open.Status.Inventory[0].Phase != apis.PhaseReady {
		t.Errorf("left open: %+v", open.Status)
	}
	wrong := func(change func(*apis.ComponentStatus)) *resources.Assembly {
		return house.With(func(a *resources.Assembly) { rtesting.IgnoreComputed(&a.Status); change(&a.Status) }).Object()
	}
	for name, tc := range map[string]struct {
		expected *resources.Assembly
		differ   rtesting.Differ
		same     bool
	}{
		"open":           {open, rtesting.DefaultDiffer, true},
		"all":            {house.Object(), rtesting.StrictDiffer, true},
		"strictly":       {open, rtesting.StrictDiffer, false},
		"another digest": {wrong(func(s *apis.ComponentStatus) { s.ProcessingDigest = "x" }), rtesting.DefaultDiffer, false},
		"another UID":    {wrong(func(s *apis.ComponentStatus) { s.Inventory[0].UID = "x" }), rtesting.DefaultDiffer, false},
		"another phase":  {wrong(func(s *apis.ComponentStatus) { s.Inventory[0].Phase = "x" }), rtesting.DefaultDiffer, false},
		"another name":   {wrong(func(s *apis.ComponentStatus) { s.Inventory[0].Name = "x" }), rtesting.DefaultDiffer, false},
	} {
		if same := tc.differ.Resource(tc.expected, house.Object()) == ""; same != tc.same {
			t.Errorf("%s: same is %t", name, same)
		}
		if same := tc.differ.ResourceStatusUpdate(tc.expected, house.Object()) == ""; same != tc.same {
			t.Errorf("%s, of a status update: same is %t", name, same)
		}
	}

	marked := rtesting.WithOwnership(walls, housePrefix, house, widgets)
	other := marked.DeepCopy()
	other.Annotations[housePrefix+"/digest"] = "x"
	foreign := rtesting.WithOwnership(walls, housePrefix, houseOf(), widgets)
	foreign.Labels[housePrefix+"/owner-id"] = "x"
	for name, tc := range map[string]struct {
		expected client.Object
		same     bool
	}{
		"marked": {marked, true}, "created": {house.Created(walls), true},
		"bare": {walls, false}, "another digest": {other, false}, "another owner": {foreign, false},
	} {
		if same := rtesting.DefaultDiffer.ResourceCreate(tc.expected, house.Created(walls)) == ""; same != tc.same {
			t.Errorf("%s: same is %t", name, same)
		}
		actual := house.ApplyRef(walls)
		expected := rtesting.NewApplyRefFromObject(tc.expected, widgets)
		if same := rtesting.DefaultDiffer.ApplyRef(expected, actual) == ""; same {
			t.Errorf("%s: applied without a UID, it is the same", name)
		}
		withUID := tc.expected.DeepCopyObject().(client.Object)
		withUID.SetUID(house.Find(walls).GetUID())
		expected = rtesting.NewApplyRefFromObject(withUID, widgets)
		if same := rtesting.DefaultDiffer.ApplyRef(expected, actual) == ""; same != tc.same {
			t.Errorf("%s, applied: same is %t", name, same)
		}
	}
}

func TestInventoriesAreComparedAsStructures(t *testing.T) {
	node := houseNode()
	node.Inventory = component.Inventory{Kind: "ConfigMap"}
	walls := part("walls")
	rollout := rtesting.Rollout[*resources.Assembly]{Scheme: widgets, Resource: houseOf(walls), Reconciler: node}
	house := rollout.Run(t)
	records, err := rtesting.InventoryOf(house.Objects()...)
	if err != nil || len(records) != 1 || records[0].Name != "walls" {
		t.Fatalf("found %v, %v", records, err)
	}
	var kept *corev1.ConfigMap
	for _, obj := range house.Objects() {
		if of, _ := rtesting.InventoryOf(obj); len(of) > 0 {
			kept = obj.(*corev1.ConfigMap)
		}
	}
	expect := func(i *rtesting.Inventory) []string {
		c := &rtesting.ExpectConfig{Scheme: widgets, ExpectCreates: []client.Object{i}}
		created := kept.DeepCopy()
		created.ResourceVersion = ""
		if err := c.Config().Create(t.Context(), created); err != nil {
			t.Fatal(err)
		}
		c.AssertExpectations(nil)
		return c.Failures()
	}
	said := []apis.InventoryRecord{{Version: "v1", Kind: "ConfigMap", Namespace: "default", Name: "walls", Phase: apis.PhaseReady}}
	in := metav1.ObjectMeta{Namespace: "default"}
	if failures := expect(&rtesting.Inventory{ObjectMeta: in, Records: said}); len(failures) > 0 {
		t.Errorf("unexpected: %s", failures)
	}
	named := metav1.ObjectMeta{Namespace: "default", Name: "x"}
	for name, i := range map[string]*rtesting.Inventory{
		"no records":      {ObjectMeta: in},
		"another kind":    {ObjectMeta: in, Kind: "Secret", Records: said},
		"another name":    {ObjectMeta: named, Records: said},
		"another content": {ObjectMeta: in, Records: []apis.InventoryRecord{{Version: "v1", Kind: "ConfigMap", Namespace: "default", Name: "walls"}}},
	} {
		if failures := expect(i); len(failures) != 1 {
			t.Errorf("%s: %s", name, failures)
		}
	}

	unexpected := &rtesting.ExpectConfig{Scheme: widgets, GivenObjects: house.Objects()}
	if err := unexpected.Config().Update(t.Context(), kept); err != nil {
		t.Fatal(err)
	}
	unexpected.AssertExpectations(nil)
	if got := strings.Join(unexpected.Failures(), "\n"); !strings.Contains(got, "&rtesting.Inventory{") || !strings.Contains(got, `Name: "walls", Phase: "Ready"}`) {
		t.Errorf("the hint is %s", got)
	}

	kept.BinaryData["inventory"] = append(kept.BinaryData["inventory"], 'x')
	if _, err := rtesting.InventoryOf(kept); err == nil {
		t.Error("a damaged inventory is read")
	}
}

func TestInventoriesCannotBeGiven(t *testing.T) {
	c := rtesting.ExpectConfig{Scheme: widgets, GivenObjects: []client.Object{&rtesting.Inventory{}}}
	err := c.Config().Create(t.Context(), part("walls"))
	c.AssertExpectations(nil)
	for what, got := range map[string]string{"a call": fmt.Sprint(err), "a failure": strings.Join(c.Failures(), "\n")} {
		if !strings.Contains(got, "GivenObjects[0]: ") || !strings.Contains(got, "can only be expected") {
			t.Errorf("%s is %q", what, got)
		}
	}
}

func TestUIDsAreAssigned(t *testing.T) {
	c := (&rtesting.ExpectConfig{Scheme: widgets, WithReactors: []rtesting.ReactionFunc{rtesting.AssignUIDs()}}).Config()
	for _, want := range []string{"ConfigMap.default.walls", "ConfigMap.default.walls.2"} {
		walls := part("walls")
		if err := c.Create(t.Context(), part("walls"), client.DryRunAll); err != nil {
			t.Fatal(err)
		}
		if err := c.Create(t.Context(), walls); err != nil || string(walls.UID) != want {
			t.Errorf("the UID is %q, not %q: %v", walls.UID, want, err)
		}
		if err := c.Delete(t.Context(), walls); err != nil {
			t.Fatal(err)
		}
	}
}
