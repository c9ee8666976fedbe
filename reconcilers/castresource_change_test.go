package reconcilers_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// machine is a resource with more to it than its JSON form shows.
type machine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   machineSpec    `json:"spec,omitempty"`
	Status *machineStatus `json:"status,omitempty"`
	Log    costly         `json:"log,omitempty"`

	cached string
}

type machineSpec struct {
	*machineSize `json:",inline"`
	MachineModel

	Name    string `json:"name"`
	Weight  int64  `json:"weight,string"`
	Colour  string
	hashed  string
	Ignored string `json:"-"`
}

type MachineModel struct {
	Name  string `json:"name"`
	Model string `json:"model,omitempty"`
}

// machineSize is embedded by a pointer that decoding cannot set, since the type is not exported.
type machineSize struct {
	Height int `json:"height,omitempty"`
}

type machineStatus struct {
	*MachineLoad `json:",inline"`

	Phase  string `json:"phase,omitempty"`
	Seen   bool   `json:"seen"`
	cached string
}

type MachineLoad struct {
	CPU    int `json:"cpu,omitempty"`
	Memory int `json:"memory,omitempty"`
}

// costly counts how often it is decoded.
type costly struct {
	lines   []string
	decoded int
}

func (c costly) MarshalJSON() ([]byte, error) { return json.Marshal(c.lines) }

func (c *costly) UnmarshalJSON(data []byte) error {
	c.decoded++
	return json.Unmarshal(data, &c.lines)
}

func (m *machine) DeepCopyObject() runtime.Object {
	out := *m
	m.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

func newMachine() *machine {
	return &machine{
		TypeMeta:   metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Machine"},
		ObjectMeta: metav1.ObjectMeta{Name: "drill", Generation: 3},
		Spec: machineSpec{
			MachineModel: MachineModel{Name: "hidden", Model: "T"}, Name: "drill", Weight: 1<<60 + 1, Colour: "blue", hashed: "abc", Ignored: "kept",
		},
		Status: &machineStatus{Phase: "Running", Seen: true, cached: "def"},
		Log:    costly{lines: []string{"one"}},
		cached: "ghi",
	}
}

// edited returns what becomes of resource when a node edits it as unstructured content.
func edited[T client.Object](t *testing.T, resource T, edit func(content map[string]any)) error {
	t.Helper()
	node := &reconcilers.CastResource[T, *unstructured.Unstructured]{
		Reconciler: &reconcilers.SyncReconciler[*unstructured.Unstructured]{
			Sync: func(_ context.Context, u *unstructured.Unstructured) error {
				edit(u.Object)
				return nil
			},
		},
	}
	_, err := node.Reconcile(t.Context(), resource)
	return err
}

func TestCastResourceAppliesChanges(t *testing.T) {
	members := func(content map[string]any, name string) map[string]any { return content[name].(map[string]any) }
	tests := map[string]struct {
		edit   func(content map[string]any)
		change func(*machine)
	}{
		"nothing":      {func(map[string]any) {}, func(*machine) {}},
		"the identity": {func(c map[string]any) { c["kind"] = "Other"; delete(c, "apiVersion") }, func(*machine) {}},
		"a member of a struct": {
			func(c map[string]any) { members(c, "spec")["model"] = "S" },
			func(m *machine) { m.Spec.Model = "S" },
		},
		"a member of the outer struct hides one of the embedded": {
			func(c map[string]any) { members(c, "spec")["name"] = "saw" },
			func(m *machine) { m.Spec.Name = "saw" },
		},
		"a member with options": {
			func(c map[string]any) { members(c, "spec")["weight"] = "1152921504606846979" },
			func(m *machine) { m.Spec.Weight = 1<<60 + 3 },
		},
		"a member without a tag, in another spelling": {
			func(c map[string]any) { delete(members(c, "spec"), "Colour"); members(c, "spec")["colour"] = "red" },
			func(m *machine) { m.Spec.Colour = "red" },
		},
		"a member that is not there": {
			func(c map[string]any) { members(c, "spec")["Ignored"] = "lost"; c["other"] = 1 },
			func(*machine) {},
		},
		"a member that goes": {
			func(c map[string]any) { delete(members(c, "spec"), "model") },
			func(m *machine) { m.Spec.Model = "" },
		},
		"a member that becomes null": {
			func(c map[string]any) { members(c, "spec")["model"] = nil },
			func(m *machine) { m.Spec.Model = "" },
		},
		"a struct that goes": {
			func(c map[string]any) { delete(c, "spec") },
			func(m *machine) {
				m.Spec = machineSpec{MachineModel: MachineModel{Name: "hidden"}, hashed: "abc", Ignored: "kept"}
			},
		},
		"a member behind a pointer": {
			func(c map[string]any) { members(c, "status")["phase"] = "Stopped" },
			func(m *machine) { m.Status.Phase = "Stopped" },
		},
		"members of an embedded struct that was not there": {
			func(c map[string]any) { members(c, "status")["cpu"] = 1; members(c, "status")["memory"] = 2 },
			func(m *machine) { m.Status.MachineLoad = &MachineLoad{CPU: 1, Memory: 2} },
		},
		"a pointer that goes": {
			func(c map[string]any) { delete(c, "status") },
			func(m *machine) { m.Status = nil },
		},
		"a type with a form of its own becomes null": {
			func(c map[string]any) { c["log"] = nil },
			func(m *machine) { m.Log = costly{decoded: 1} },
		},
		"a type with a form of its own": {
			func(c map[string]any) { c["log"] = []any{"one", "two"} },
			func(m *machine) { m.Log = costly{lines: []string{"one", "two"}, decoded: 1} },
		},
	}
	// All that there is, exported or not, is compared.
	everything := cmp.Options{cmp.AllowUnexported(machine{}, machineSpec{}, machineStatus{}, costly{})}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			resource, expected := newMachine(), newMachine()
			test.change(expected)
			status := resource.Status
			if err := edited(t, resource, test.edit); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(expected, resource, everything); diff != "" {
				t.Errorf("the resource differs (-expected, +actual):\n%s", diff)
			}
			if resource.Status != nil && resource.Status != status {
				t.Error("the pointer to the status is another, want that of before")
			}
		})
	}

	failing := map[string]func(content map[string]any){
		"after something that fits": func(c map[string]any) {
			members(c, "metadata")["labels"] = map[string]any{"a": "b"}
			c["log"] = []any{}
			members(c, "status")["seen"] = "perhaps"
		},
		"a scalar for a struct":          func(c map[string]any) { c["spec"] = 1 },
		"an embedded struct of no name":  func(c map[string]any) { members(c, "spec")["height"] = 1 },
		"a number that does not fit":     func(c map[string]any) { members(c, "spec")["weight"] = "9223372036854775808" },
		"the failure of a type's own":    func(c map[string]any) { c["log"] = 1 },
		"what has no JSON form":          func(c map[string]any) { c["log"] = func() {} },
		"a list for a pointer to struct": func(c map[string]any) { c["status"] = []any{} },
	}
	for name, edit := range failing {
		t.Run("fails: "+name, func(t *testing.T) {
			resource := newMachine()
			if err := neverPanics(t, "the cast", func() error { return edited(t, resource, edit) }); err == nil {
				t.Error("the error is nil, want one")
			}
			if diff := cmp.Diff(newMachine(), resource, everything); diff != "" {
				t.Errorf("the resource differs (-expected, +actual):\n%s", diff)
			}
		})
	}
}

// opaque makes its JSON form itself, and nothing is known of its fields.
type opaque struct {
	widgetBuilder `json:"-"`
}

func (o *opaque) MarshalJSON() ([]byte, error) { return json.Marshal(&o.Widget) }

func (o *opaque) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, &o.Widget) }

func TestCastResourceAppliesChangesToOtherForms(t *testing.T) {
	given := widget.With(statusField("old", "value"))
	edit := func(content map[string]any) {
		content["status"] = map[string]any{"fields": map[string]any{"new": "value"}}
		delete(content, "spec")
	}
	expected := widget.With(statusField("new", "value")).Object()

	t.Run("a form of its own", func(t *testing.T) {
		resource := &opaque{widgetBuilder: widgetBuilder{Widget: *given.Object()}}
		if err := edited(t, resource, edit); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(expected, &resource.Widget); diff != "" {
			t.Errorf("the resource differs, want the change of the edit (-want +got):\n%s", diff)
		}
		misfit := func(content map[string]any) { content["status"] = 1 }
		if err := edited(t, resource, misfit); err == nil {
			t.Error("the error is nil, want one of the misfit")
		}
		if diff := cmp.Diff(expected, &resource.Widget); diff != "" {
			t.Errorf("the resource differs after a failure, want it unchanged (-want +got):\n%s", diff)
		}
	})
	t.Run("unstructured", func(t *testing.T) {
		resource := &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "gadget"},
			"spec":     map[string]any{"big": int64(1<<60 + 1)},
			"status":   map[string]any{"fields": map[string]any{"old": "value"}, "hidden": int64(1<<60 + 1)},
		}}
		spec := resource.Object["spec"]
		node := &reconcilers.CastResource[*unstructured.Unstructured, *statusView]{Reconciler: &viewSync{
			Sync: func(_ context.Context, v *statusView) error {
				v.Status.Fields = map[string]any{"new": true}
				v.Annotations = map[string]string{"a": "b"}
				return nil
			},
		}}
		if _, err := node.Reconcile(t.Context(), resource); err != nil {
			t.Fatal(err)
		}
		expected := map[string]any{
			"metadata": map[string]any{"name": "gadget", "annotations": map[string]any{"a": "b"}},
			"spec":     spec,
			"status":   map[string]any{"fields": map[string]any{"new": true}, "hidden": int64(1<<60 + 1)},
		}
		if diff := cmp.Diff(expected, resource.Object); diff != "" {
			t.Errorf("the object differs, want the change of the edit (-want +got):\n%s", diff)
		}
	})
	t.Run("a value", func(t *testing.T) {
		err := edited[client.Object](t, boxed{given.Object()}, edit)
		if err == nil {
			t.Error("the error is nil, want one")
		}
	})
}

// podView is a duck type of what has a pod template: it knows of a container its name and image, and nothing else.
type podView struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Template struct {
			Spec struct {
				Containers []containerView `json:"containers,omitempty"`
			} `json:"spec,omitempty"`
		} `json:"template,omitempty"`
	} `json:"spec,omitempty"`
}

type containerView struct {
	Name  string `json:"name,omitempty"`
	Image string `json:"image,omitempty"`
}

func (v *podView) DeepCopyObject() runtime.Object {
	out := *v
	v.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Template.Spec.Containers = append([]containerView(nil), v.Spec.Template.Spec.Containers...)
	return &out
}

// tolerationView knows a list of items without names.
type tolerationView struct {
	podView `json:"-"`

	Tolerations []struct {
		Key string `json:"key"`
	} `json:"tolerations"`
}

func (v *tolerationView) DeepCopyObject() runtime.Object {
	out := *v
	return &out
}

func TestCastResourceAppliesChangesOfListsWithoutNames(t *testing.T) {
	item := func(key, hidden string) any { return map[string]any{"key": key, "hidden": hidden} }
	resource := &unstructured.Unstructured{Object: map[string]any{
		"tolerations": []any{item("a", "of a"), item("b", "of b"), item("c", "of c"), item("c", "of c")},
	}}
	node := &reconcilers.CastResource[*unstructured.Unstructured, *tolerationView]{
		Reconciler: &reconcilers.SyncReconciler[*tolerationView]{
			Sync: func(_ context.Context, v *tolerationView) error {
				v.Tolerations = v.Tolerations[1:]
				v.Tolerations[2].Key = "d"
				return nil
			},
		},
	}
	if _, err := node.Reconcile(t.Context(), resource); err != nil {
		t.Fatal(err)
	}
	// What was edited while others moved is an item that is not known.
	expected := []any{item("b", "of b"), item("c", "of c"), map[string]any{"key": "d"}}
	if diff := cmp.Diff(expected, resource.Object["tolerations"]); diff != "" {
		t.Errorf("the list differs (-expected, +actual):\n%s", diff)
	}
}

// listDuck is a duck type that knows one member of the items of a list.
type listDuck struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		List []listDuckItem `json:"list,omitempty"`
		Any  any            `json:"any,omitempty"`
	} `json:"spec,omitempty"`
}

type listDuckItem struct {
	Size int64 `json:"size"`
}

func (d *listDuck) DeepCopyObject() runtime.Object {
	out := *d
	d.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.List = append([]listDuckItem(nil), d.Spec.List...)
	out.Spec.Any = runtime.DeepCopyJSONValue(d.Spec.Any)
	return &out
}

// Beside a change, members of list items stay, and so do numbers that no float holds.
func TestCastResourceKeepsWhatTheCastTypeDoesNotKnow(t *testing.T) {
	const large = int64(1)<<53 + 1
	// No Go type and no schema says what the kind has.
	schemaless := resources.GroupVersion.WithKind("Schemaless")
	served := []*metav1.APIResourceList{{
		GroupVersion: schemaless.GroupVersion().String(),
		APIResources: []metav1.APIResource{{Name: "schemalesses", Kind: schemaless.Kind, Namespaced: true}},
	}}
	given := func(first, second, third int64) *unstructured.Unstructured {
		u := withoutType(widget.Object(), schemaless)
		u.Object["spec"] = map[string]any{
			"list": []any{
				map[string]any{"size": first, "unknown": large, "part": 1.5},
				map[string]any{"size": second, "unknown": large + 2},
			},
			"any": map[string]any{"large": large + 4, "small": third},
		}
		return u
	}
	tests := map[string]nodeRow[*unstructured.Unstructured]{}
	for name, test := range map[string]struct {
		sync     func(*listDuck)
		expected *unstructured.Unstructured
	}{
		"nothing":        {func(*listDuck) {}, given(1, 2, 3)},
		"an item":        {func(d *listDuck) { d.Spec.List[1].Size = 20 }, given(1, 20, 3)},
		"a free member":  {func(d *listDuck) { d.Spec.Any.(map[string]any)["small"] = int64(30) }, given(1, 2, 30)},
		"a large number": {func(d *listDuck) { d.Spec.List[0].Size = large }, given(large, 2, 3)},
	} {
		tests[name] = nodeRow[*unstructured.Unstructured]{
			SubReconcilerTestCase: rtesting.SubReconcilerTestCase[*unstructured.Unstructured]{
				Resource: given(1, 2, 3), ExpectResource: test.expected, GivenAPIResources: served,
			},
			node: func(*trace) reconcilers.SubReconciler[*unstructured.Unstructured] {
				sync := func(_ context.Context, d *listDuck) error { test.sync(d); return nil }
				return &reconcilers.CastResource[*unstructured.Unstructured, *listDuck]{
					Reconciler: &reconcilers.SyncReconciler[*listDuck]{Sync: sync},
				}
			},
		}
	}
	runNodes(t, tests)
}
