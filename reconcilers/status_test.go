package reconcilers_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// shaped is a resource whose status has any shape.
type shaped[S any] struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Status S `json:"status,omitempty"`
}

func (s *shaped[S]) DeepCopyObject() runtime.Object { return copyByJSON(s, &shaped[S]{}) }

// statusless is a resource without a status.
type statusless struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

func (s *statusless) DeepCopyObject() runtime.Object { return copyByJSON(s, &statusless{}) }

func copyByJSON(from, to runtime.Object) runtime.Object {
	data, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(data, to)
	}
	if err != nil {
		panic(err)
	}
	return to
}

type (
	emptyStatus struct{}
	plainStatus struct {
		Message string `json:"message,omitempty"`
	}
	generationOfAnotherType struct {
		ObservedGeneration string             `json:"observedGeneration,omitempty"`
		Conditions         []metav1.Condition `json:"conditions,omitempty"`
	}
	ownConditions struct {
		ObservedGeneration int64    `json:"observedGeneration,omitempty"`
		Conditions         []string `json:"conditions,omitempty"`
	}
	deprecatedStatus  struct{ generationAndConditions }
	fallibleStatus    struct{ generationAndConditions }
	initializedStatus struct {
		generationAndConditions
		Initialized string `json:"initialized,omitempty"`
	}
	generationAndConditions struct {
		ObservedGeneration int64              `json:"observedGeneration,omitempty"`
		Conditions         []metav1.Condition `json:"conditions,omitempty"`
	}
)

func (s *deprecatedStatus) InitializeConditions() { s.Conditions = []metav1.Condition{{Type: "Old"}} }

func (s *fallibleStatus) InitializeConditions(context.Context) error { return errBoom }

func (s *initializedStatus) InitializeConditions(context.Context) { s.Initialized = "yes" }

func TestStatusShapesAreLogged(t *testing.T) {
	const (
		missing    = "resource missing status field, operations related to status will be skipped"
		nilable    = "resource status is nilable, status is typically a struct"
		generation = "resource status missing ObservedGeneration field of type int64, generation will not be managed"
		initialize = "resource status missing InitializeConditions(context.Context) method, conditions will not be auto-initialized"
		deprecated = "resource status InitializeConditions() method is deprecated, use InitializeConditions(context.Context)"
		conditions = "resource status is missing field Conditions of type []metav1.Condition, condition timestamps will not be managed"
	)
	logsOf[*resources.Widget](t, "well-shaped", nil)
	logsOf[*statusless](t, "none", nil, missing)
	logsOf[*shaped[*initializedStatus]](t, "pointer", nil, nilable)
	logsOf[*shaped[emptyStatus]](t, "empty", nil, generation, initialize, conditions)
	logsOf[*shaped[*emptyStatus]](t, "pointer, empty", nil, nilable, generation, initialize, conditions)
	logsOf[*shaped[generationOfAnotherType]](t, "generation of another type", nil, generation, initialize)
	logsOf[*shaped[ownConditions]](t, "conditions of another type", nil, initialize, conditions)
	logsOf[*shaped[deprecatedStatus]](t, "deprecated", nil, deprecated)
	logsOf[*shaped[fallibleStatus]](t, "fallible", nil, initialize)
	logsOf[*shaped[string]](t, "scalar", nil, generation, initialize, conditions)
	logsOf[*shaped[generationAndConditions]](t, "conditions alone", nil, initialize)
	logsOf(t, "unstructured", &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Thing"}}, missing)
}

// TestConditionsOfASummaryNeedNoInitializer shows that a root that sums up conditions asks for no method of the status.
func TestConditionsOfASummaryNeedNoInitializer(t *testing.T) {
	var lines []string
	ctx := logr.NewContext(t.Context(), funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}))
	root := &reconcilers.ResourceReconciler[*shaped[generationAndConditions]]{
		Reconciler:       reconcilers.Sequence[*shaped[generationAndConditions]]{},
		Config:           expectWidget().Config(),
		SummaryCondition: "Ready",
	}
	if err := root.Validate(ctx); err != nil {
		t.Fatal(err)
	}
	if len(lines) > 0 {
		t.Errorf("the log has\n\t%s\nwant no line", strings.Join(lines, "\n\t"))
	}
}

func logsOf[T client.Object](t *testing.T, name string, sample T, expected ...string) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Helper()
		var lines []string
		logger := funcr.NewJSON(func(line string) {
			var fields struct{ Msg string }
			if err := json.Unmarshal([]byte(line), &fields); err != nil {
				t.Fatal(err)
			}
			lines = append(lines, fields.Msg)
		}, funcr.Options{})
		root := &reconcilers.ResourceReconciler[T]{Type: sample, Reconciler: reconcilers.Sequence[T]{}, Config: expectWidget().Config()}
		if err := root.Validate(logr.NewContext(t.Context(), logger)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(lines, expected) {
			t.Errorf("logged\n\t%s\nexpected\n\t%s", strings.Join(lines, "\n\t"), strings.Join(expected, "\n\t"))
		}
	})
}

// statusCase is a request for an object of some shape: what the tree does to it, and what is written of it.
type statusCase[T client.Object] struct {
	given   T
	tree    func(ctx context.Context, resource T) error
	written client.Object
	patched string
	fails   bool
}

func (c statusCase[T]) run(t *testing.T, name string) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Helper()
		scheme := resources.NewScheme()
		kind := resources.GroupVersion.WithKind("Thing")
		if _, ok := any(c.given).(*unstructured.Unstructured); !ok && c.patched == "" {
			scheme.AddKnownTypeWithName(kind, c.given.DeepCopyObject())
		}
		c.given.GetObjectKind().SetGroupVersionKind(kind)
		sample := c.given.DeepCopyObject().(T)
		c.given.SetNamespace(widgetKey.Namespace)
		c.given.SetName(widgetKey.Name)
		c.given.SetGeneration(1)
		expect := &rtesting.ExpectConfig{Scheme: scheme, GivenObjects: []client.Object{c.given}, StatusSubResourceTypes: []client.Object{sample}}
		reason := ""
		switch {
		case c.patched != "":
			expect.ExpectStatusPatches = []rtesting.PatchRef{{
				Group: kind.Group, Kind: kind.Kind, Namespace: widgetKey.Namespace, Name: widgetKey.Name, SubResource: "status",
				PatchType: types.MergePatchType, Patch: []byte(c.patched),
			}}
			reason = "Patched"
		case c.written != nil:
			expect.ExpectStatusUpdates = []client.Object{c.written}
			reason = "Updated"
		}
		if reason != "" {
			expect.ExpectEvents = []rtesting.Event{rtesting.NewEvent(c.given, scheme, "Normal", "Status"+reason, "%s status", reason)}
		}
		root := &reconcilers.ResourceReconciler[T]{
			Type:       sample,
			Reconciler: &reconcilers.SyncReconciler[T]{Sync: c.tree},
			Config:     expect.Config(),
		}
		if _, err := root.Reconcile(t.Context(), widgetRequest); (err != nil) != c.fails {
			t.Fatalf("the error is %v, want one: %t", err, c.fails)
		}
		expect.AssertExpectations(t)
	})
}

func TestStatusShapes(t *testing.T) {
	statusCase[*statusless]{
		given: &statusless{},
		tree:  func(_ context.Context, r *statusless) error { r.Labels = map[string]string{"a": "b"}; return nil },
	}.run(t, "none")
	statusCase[*shaped[emptyStatus]]{
		given: &shaped[emptyStatus]{},
		tree: func(_ context.Context, r *shaped[emptyStatus]) error {
			r.Labels = map[string]string{"a": "b"}
			return nil
		},
	}.run(t, "empty")
	statusCase[*shaped[*initializedStatus]]{
		given: &shaped[*initializedStatus]{},
		tree: func(_ context.Context, r *shaped[*initializedStatus]) error {
			if r.Status != nil {
				t.Errorf("the status is %v, want nil", r.Status)
			}
			return nil
		},
	}.run(t, "nil pointer")
	statusCase[*shaped[*initializedStatus]]{
		given: &shaped[*initializedStatus]{Status: &initializedStatus{}},
		tree: func(_ context.Context, r *shaped[*initializedStatus]) error {
			if r.Status.Initialized != "yes" {
				t.Error("the conditions are not initialised, want them to be")
			}
			return nil
		},
		written: &shaped[*initializedStatus]{Status: &initializedStatus{
			generationAndConditions: generationAndConditions{ObservedGeneration: 1}, Initialized: "yes",
		}},
	}.run(t, "pointer")
	statusCase[*shaped[deprecatedStatus]]{
		given: &shaped[deprecatedStatus]{},
		tree:  func(context.Context, *shaped[deprecatedStatus]) error { return nil },
		written: &shaped[deprecatedStatus]{Status: deprecatedStatus{generationAndConditions{
			ObservedGeneration: 1, Conditions: []metav1.Condition{{Type: "Old"}},
		}}},
	}.run(t, "deprecated")
	statusCase[*shaped[fallibleStatus]]{
		given: &shaped[fallibleStatus]{Status: fallibleStatus{generationAndConditions{ObservedGeneration: 1}}},
		tree:  func(context.Context, *shaped[fallibleStatus]) error { return nil },
	}.run(t, "fallible is not called")
	statusCase[*shaped[plainStatus]]{
		given:   &shaped[plainStatus]{},
		tree:    func(_ context.Context, r *shaped[plainStatus]) error { r.Status.Message = "hello"; return nil },
		written: &shaped[plainStatus]{Status: plainStatus{Message: "hello"}},
	}.run(t, "plain")
	statusCase[*shaped[generationOfAnotherType]]{
		given: &shaped[generationOfAnotherType]{},
		tree:  func(context.Context, *shaped[generationOfAnotherType]) error { return nil },
	}.run(t, "generation of another type")
	statusCase[*shaped[ownConditions]]{
		given: &shaped[ownConditions]{Status: ownConditions{ObservedGeneration: 1}},
		tree: func(_ context.Context, r *shaped[ownConditions]) error {
			r.Status.Conditions = []string{"a"}
			return nil
		},
		written: &shaped[ownConditions]{Status: ownConditions{
			ObservedGeneration: 1, Conditions: []string{"a"},
		}},
	}.run(t, "conditions of another type")
	statusCase[*shaped[string]]{
		given:   &shaped[string]{},
		tree:    func(_ context.Context, r *shaped[string]) error { r.Status = "hello"; return nil },
		written: &shaped[string]{Status: "hello"},
	}.run(t, "scalar")
	statusCase[*shaped[map[string]string]]{
		given: &shaped[map[string]string]{},
		tree: func(_ context.Context, r *shaped[map[string]string]) error {
			r.Status = map[string]string{"a": "b"}
			return nil
		},
		written: &shaped[map[string]string]{Status: map[string]string{"a": "b"}},
	}.run(t, "map")
}

func TestStatusOfUnstructured(t *testing.T) {
	status := func(status any) *unstructured.Unstructured {
		object := map[string]any{}
		if status != nil {
			object["status"] = status
		}
		return &unstructured.Unstructured{Object: object}
	}
	sets := func(key string, value any) func(context.Context, *unstructured.Unstructured) error {
		return func(_ context.Context, u *unstructured.Unstructured) error {
			status, _ := u.Object["status"].(map[string]any)
			status = maps.Clone(status)
			if status == nil {
				status = map[string]any{}
			}
			status[key] = value
			u.Object["status"] = status
			return nil
		}
	}
	nothing := func(context.Context, *unstructured.Unstructured) error { return nil }
	writtenStatus := func(status any) client.Object {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "test.espalier.dev/v1", "kind": "Thing",
			"metadata": map[string]any{"namespace": widgetKey.Namespace, "name": widgetKey.Name, "generation": int64(1)},
			"status":   status,
		}}
	}
	type u = statusCase[*unstructured.Unstructured]
	u{given: status(nil), tree: nothing}.run(t, "none")
	u{given: status(map[string]any{"a": "b"}), tree: nothing}.run(t, "unchanged")
	u{given: status(map[string]any{"a": "b"}), tree: sets("a", "b")}.run(t, "set to what it is")
	u{given: status(map[string]any{"a": "b"}), tree: sets("c", "d"), written: writtenStatus(map[string]any{"a": "b", "c": "d"})}.run(t, "changed")
	u{given: status(nil), tree: sets("a", "b"), written: writtenStatus(map[string]any{"a": "b"})}.run(t, "added")
	u{
		given: status(map[string]any{"a": "b"}),
		tree: func(_ context.Context, u *unstructured.Unstructured) error {
			u.Object["status"] = map[string]any{}
			return nil
		},
		written: writtenStatus(map[string]any{}),
	}.run(t, "emptied")
}

type duckWidget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   duckPart `json:"spec"`
	Status duckPart `json:"status"`
}

type duckPart struct {
	Fields map[string]string `json:"fields,omitempty"`
}

func (d *duckWidget) DeepCopyObject() runtime.Object { return copyByJSON(d, &duckWidget{}) }

func (d *duckWidget) Default(context.Context) error {
	d.Spec.Fields = map[string]string{"Defaulter": "ran"}
	return nil
}

func TestStatusOfDucks(t *testing.T) {
	nothing := func(context.Context, *duckWidget) error { return nil }
	statusCase[*duckWidget]{
		given: &duckWidget{},
		tree: func(_ context.Context, d *duckWidget) error {
			d.Status.Fields = map[string]string{"Reconciler": "ran"}
			return nil
		},
		// Compatibility pins that defaults are part of the patch.
		patched: `{"spec":{"fields":{"Defaulter":"ran"}},"status":{"fields":{"Reconciler":"ran"}}}`,
	}.run(t, "changed")
	statusCase[*duckWidget]{
		given:   &duckWidget{Status: duckPart{Fields: map[string]string{"Reconciler": "ran"}}},
		tree:    func(_ context.Context, d *duckWidget) error { d.Status.Fields = nil; return nil },
		patched: `{"spec":{"fields":{"Defaulter":"ran"}},"status":{"fields":null}}`,
	}.run(t, "emptied")

	given := &duckWidget{Status: duckPart{Fields: map[string]string{"Reconciler": "ran"}}}
	given.APIVersion, given.Kind = "test.espalier.dev/v1", "Widget"
	given.Namespace, given.Name = widgetKey.Namespace, widgetKey.Name
	for name, test := range map[string]struct {
		tree   func(context.Context, *duckWidget) error
		events []rtesting.Event
		fails  bool
	}{
		"unchanged": {tree: nothing},
		"cannot be written": {
			tree:   func(_ context.Context, d *duckWidget) error { d.Status.Fields = nil; return nil },
			events: []rtesting.Event{warning("StatusPatchFailed", "Failed to patch status: boom")},
			fails:  true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			expect := &rtesting.ExpectConfig{
				Scheme: widgetScheme, GivenObjects: []client.Object{given}, ExpectEvents: test.events,
				WithReactors: []rtesting.ReactionFunc{rtesting.InduceFailure("patch", "Widget", rtesting.InduceFailureOpts{Error: errBoom})},
			}
			root := &reconcilers.ResourceReconciler[*duckWidget]{
				Type:       &duckWidget{TypeMeta: given.TypeMeta},
				Reconciler: &reconcilers.SyncReconciler[*duckWidget]{Sync: test.tree},
				Config:     expect.Config(),
			}
			if _, err := root.Reconcile(t.Context(), widgetRequest); (err != nil) != test.fails {
				t.Errorf("the error is %v, want one: %t", err, test.fails)
			}
			expect.AssertRecorderExpectations(t)
		})
	}
}

// hiding has a field that only a function of its author can compare.
type hiding struct {
	Shown  string `json:"shown,omitempty"`
	hidden string
}

func TestStatusEqualityMayBeExtended(t *testing.T) {
	if err := equality.Semantic.AddFunc(func(a, b hiding) bool { return a.Shown == b.Shown }); err != nil {
		t.Fatal(err)
	}
	type status struct {
		apis.Status `json:",inline"`
		Hiding      hiding `json:"hiding"`
	}
	statusCase[*shaped[status]]{
		given: &shaped[status]{Status: status{Status: apis.Status{ObservedGeneration: 1}}},
		tree:  func(_ context.Context, r *shaped[status]) error { r.Status.Hiding.hidden = "changed"; return nil },
	}.run(t, "only what is hidden changes")
	statusCase[*shaped[status]]{
		given: &shaped[status]{Status: status{Status: apis.Status{ObservedGeneration: 1}}},
		tree: func(_ context.Context, r *shaped[status]) error {
			r.Status.Hiding = hiding{"changed", "too"}
			return nil
		},
		written: &shaped[status]{Status: status{
			Status: apis.Status{ObservedGeneration: 1}, Hiding: hiding{Shown: "changed"},
		}},
	}.run(t, "what is shown changes")
}
