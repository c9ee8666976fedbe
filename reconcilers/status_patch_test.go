package reconcilers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/espalier-dev/espalier/duck"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type (
	duckSync = reconcilers.SyncReconciler[*duckWidget]
	duckRoot = reconcilers.ResourceReconciler[*duckWidget]
)

var duckType = metav1.TypeMeta{APIVersion: "test.espalier.dev/v1", Kind: "Widget"}

// reflectsDuck changes the status, and more than that.
func reflectsDuck(_ context.Context, d *duckWidget) error {
	d.Labels = map[string]string{"extra": "true"}
	d.Status.Fields = map[string]string{"tree": "ran"}
	return nil
}

// With PatchStatusAlone the patch has the status, the version that it was made for, and nothing else.
func TestPatchStatusAlone(t *testing.T) {
	const conditional = `{"metadata":{"resourceVersion":"999"},"status":{"fields":{"tree":"ran"}}}`
	conflict := rtesting.InduceFailure("patch", "Widget", rtesting.InduceFailureOpts{Error: statusConflict})
	given := &duckWidget{
		TypeMeta:   duckType,
		ObjectMeta: metav1.ObjectMeta{Namespace: widgetKey.Namespace, Name: widgetKey.Name},
	}
	for name, test := range map[string]struct {
		alone, keep bool
		tree        func(context.Context, *duckWidget) error
		reactors    []rtesting.ReactionFunc
		patch       string
		events      []rtesting.Event
		result      reconcilers.Result
		fails       bool
	}{
		"off": {
			tree:   reflectsDuck,
			patch:  `{"metadata":{"labels":{"extra":"true"}},"spec":{"fields":{"Defaulter":"ran"}},"status":{"fields":{"tree":"ran"}}}`,
			events: []rtesting.Event{normal("StatusPatched", "Patched status")},
		},
		"on": {
			alone: true, tree: reflectsDuck, patch: conditional,
			events: []rtesting.Event{normal("StatusPatched", "Patched status")},
		},
		"on, after a patch of ours": {
			alone: true,
			tree: func(ctx context.Context, d *duckWidget) error {
				if err := reconcilers.AddFinalizer(ctx, d, ours); err != nil {
					return err
				}
				return reflectsDuck(ctx, d)
			},
			patch: `{"metadata":{"resourceVersion":"1000"},"status":{"fields":{"tree":"ran"}}}`,
			events: []rtesting.Event{
				normal("FinalizerPatched", `Patched finalizer "`+ours+`"`),
				normal("StatusPatched", "Patched status"),
			},
		},
		"on, after a write of the node's own": {
			alone: true,
			tree: func(ctx context.Context, d *duckWidget) error {
				before := d.DeepCopyObject().(client.Object)
				d.Annotations = map[string]string{"written": "true"}
				if err := reconcilers.RetrieveConfigOrDie(ctx).Patch(ctx, d, client.MergeFrom(before)); err != nil {
					return err
				}
				return reflectsDuck(ctx, d)
			},
			patch:  `{"metadata":{"resourceVersion":"1000"},"status":{"fields":{"tree":"ran"}}}`,
			events: []rtesting.Event{normal("StatusPatched", "Patched status")},
		},
		"on, nothing but the status is as it was": {
			alone: true,
			tree: func(_ context.Context, d *duckWidget) error {
				d.Labels = map[string]string{"extra": "true"}
				return nil
			},
		},
		"on, conflict": {
			alone:    true,
			tree:     reflectsDuck,
			patch:    conditional,
			reactors: []rtesting.ReactionFunc{conflict},
		},
		"on, conflict, filtered": {
			alone:    true,
			keep:     true,
			tree:     reflectsDuck,
			patch:    conditional,
			reactors: []rtesting.ReactionFunc{conflict},
			result:   requeue,
		},
		"off, conflict": {
			tree: reflectsDuck, reactors: []rtesting.ReactionFunc{conflict}, fails: true,
			patch:  `{"metadata":{"labels":{"extra":"true"}},"spec":{"fields":{"Defaulter":"ran"}},"status":{"fields":{"tree":"ran"}}}`,
			events: []rtesting.Event{warning("StatusPatchFailed", "Failed to patch status: "+statusConflict.Error())},
		},
	} {
		t.Run(name, func(t *testing.T) {
			expect := &rtesting.ExpectConfig{
				Scheme: widgetScheme, GivenObjects: []client.Object{given}, WithReactors: test.reactors, ExpectEvents: test.events,
				StatusSubResourceTypes: []client.Object{&duckWidget{TypeMeta: duckType}},
			}
			if test.patch != "" {
				expect.ExpectStatusPatches = []rtesting.PatchRef{{
					Group: resources.GroupVersion.Group, Kind: "Widget", Namespace: widgetKey.Namespace, Name: widgetKey.Name,
					SubResource: "status", PatchType: types.MergePatchType, Patch: []byte(test.patch),
				}}
			}
			root := &duckRoot{
				Type: &duckWidget{TypeMeta: duckType}, Reconciler: &duckSync{Sync: test.tree},
				PatchStatusAlone: test.alone, KeepResultAfterStatusUpdate: test.keep, Config: expect.Config(),
			}
			result, err := root.Reconcile(t.Context(), widgetRequest)
			if (err != nil) != test.fails || result != test.result {
				t.Errorf("it returned %+v and %v, want %+v, and an error: %t", result, err, test.result, test.fails)
			}
			expect.AssertClientStatusPatchExpectations(t)
			expect.AssertRecorderExpectations(t)
		})
	}
}

// Another client changes the resource while the tree runs. Only a real API server reports whether the lock holds.
func TestPatchStatusAloneIsRefusedForAnotherVersion(t *testing.T) {
	c := live(t)
	namespace := plane.Namespace(t)
	w := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "widget"}}
	if err := c.Create(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	interfere := true
	recorder := record.NewFakeRecorder(10)
	root := &duckRoot{
		Type:             &duckWidget{TypeMeta: duckType},
		PatchStatusAlone: true,
		Reconciler: &duckSync{Sync: func(ctx context.Context, d *duckWidget) error {
			if interfere {
				interfere = false
				w.Spec.Fields = map[string]string{"changed": "meanwhile"}
				if err := c.Update(ctx, w); err != nil {
					return err
				}
			}
			return reflectsDuck(ctx, d)
		}},
		Config: reconcilers.Config{Client: duck.NewDuckAwareClientWrapper(c), Recorder: recorder},
	}
	request := reconcilers.Request{NamespacedName: client.ObjectKeyFromObject(w)}
	for attempt, expected := range []string{`{}`, `{"fields":{"tree":"ran"}}`} {
		result, err := root.Reconcile(t.Context(), request)
		if err != nil || result != (reconcilers.Result{}) {
			t.Errorf("attempt %d returned %+v and %v, want neither", attempt, result, err)
		}
		if err := c.Get(t.Context(), request.NamespacedName, w); err != nil {
			t.Fatal(err)
		}
		if status, err := json.Marshal(w.Status); err != nil || string(status) != expected {
			t.Errorf("after attempt %d the status is %s (%v), want %s", attempt, status, err, expected)
		}
	}
	if len(w.Labels) != 0 || fmt.Sprint(w.Spec.Fields) != "map[changed:meanwhile]" {
		t.Errorf("the labels are %v and the fields %v, want none and those changed meanwhile", w.Labels, w.Spec.Fields)
	}
	if event := <-recorder.Events; event != corev1.EventTypeNormal+" StatusPatched Patched status" || len(recorder.Events) > 0 {
		t.Errorf("the events are %q and %d more, want that of the patched status alone", event, len(recorder.Events))
	}
}

// unchanging is a client whose server finds nothing to change in a status.
type unchanging struct {
	client.Client
	// versionless objects are read without a resource version.
	versionless bool
}

func (u unchanging) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := u.Client.Get(ctx, key, obj, opts...)
	if u.versionless {
		obj.SetResourceVersion("")
	}
	return err
}

func (u unchanging) Status() client.SubResourceWriter { return unchangingStatus{u.Client.Status()} }

type unchangingStatus struct{ client.SubResourceWriter }

func (unchangingStatus) Update(context.Context, client.Object, ...client.SubResourceUpdateOption) error {
	return nil
}

func (unchangingStatus) Patch(
	_ context.Context, obj client.Object, patch client.Patch, _ ...client.SubResourcePatchOption,
) error {
	_, err := patch.Data(obj)
	return err
}

// No event follows a write that changed nothing, so that the delay of the tree counts.
func TestAStatusWriteThatChangesNothingKeepsTheResult(t *testing.T) {
	for name, test := range map[string]struct {
		versionless bool
		expected    reconcilers.Result
	}{
		"the version stays the same": {expected: minute},
		"no version":                 {versionless: true, expected: nothing},
	} {
		t.Run(name, func(t *testing.T) {
			config := expectWidget(steadyWidget).Config()
			config.Client = unchanging{config.Client, test.versionless}
			root := &widgetRoot{Config: config, Reconciler: writing(minute, nil)}
			if result, err := root.Reconcile(t.Context(), widgetRequest); err != nil || result != test.expected {
				t.Errorf("it returned %+v and %v, want %+v and no error", result, err, test.expected)
			}
		})
	}
}

func TestPatchStatusAloneWithoutAVersion(t *testing.T) {
	config := expectWidget(steadyWidget).Config()
	config.Client = unchanging{config.Client, true}
	root := &duckRoot{
		Type: &duckWidget{TypeMeta: duckType}, PatchStatusAlone: true, Config: config,
		Reconciler: &duckSync{Sync: reflectsDuck},
	}
	if _, err := root.Reconcile(t.Context(), widgetRequest); err != nil {
		t.Error(err)
	}
}

func TestTheStatusOfADuckThatIsGone(t *testing.T) {
	expect := expectWidget(steadyWidget.With(terminating(ours)))
	expect.WithReactors = []rtesting.ReactionFunc{rtesting.InduceFailure("patch", "Widget", rtesting.InduceFailureOpts{
		Error: apierrs.NewNotFound(schema.GroupResource{}, "gadget"), SubResource: "status",
	})}
	root := &duckRoot{
		Type: &duckWidget{TypeMeta: duckType}, SyncStatusDuringFinalization: true, Config: expect.Config(),
		Reconciler: &duckSync{SyncDuringFinalization: true, Sync: reflectsDuck},
	}
	if _, err := root.Reconcile(t.Context(), widgetRequest); err != nil {
		t.Error(err)
	}
}
