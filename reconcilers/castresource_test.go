package reconcilers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type (
	asDeployment = reconcilers.CastResource[*resources.Widget, *appsv1.Deployment]
	asView       = reconcilers.CastResource[*resources.Widget, *statusView]

	deploymentSync      = reconcilers.SyncReconciler[*appsv1.Deployment]
	deploymentFinalizer = reconcilers.WithFinalizer[*appsv1.Deployment]
	viewSync            = reconcilers.SyncReconciler[*statusView]
)

// statusView is a duck type: it has what is of interest of a Widget, and not the rest.
type statusView struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Status struct {
		Fields map[string]any `json:"fields,omitempty"`
	} `json:"status,omitempty"`
}

func (v *statusView) DeepCopyObject() runtime.Object {
	out := *v
	v.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Status.Fields = runtime.DeepCopyJSON(v.Status.Fields)
	return &out
}

func (v *statusView) setField(key string, value any) {
	if v.Status.Fields == nil {
		v.Status.Fields = map[string]any{}
	}
	v.Status.Fields[key] = value
}

// syncView is a cast to statusView over a sync.
func syncView(sync func(context.Context, *statusView) (reconcilers.Result, error)) *asView {
	return &asView{Reconciler: &viewSync{SyncWithResult: sync, SyncDuringFinalization: true}}
}

// syncDeployment is a cast to Deployment, a type that the scheme knows, over a sync.
func syncDeployment(sync func(context.Context, *appsv1.Deployment) error) *asDeployment {
	return &asDeployment{Reconciler: &deploymentSync{Sync: sync, SyncDuringFinalization: true}}
}

func TestCastResource(t *testing.T) {
	marked := widget.With(statusField("old", "value"), func(w *resources.Widget) {
		w.Status.ObservedGeneration = 1
		w.Spec.Fields = map[string]string{"image": "example.com/app:1"}
	})
	change := func(result reconcilers.Result, err error) func(calls *trace) widgetNode {
		return func(calls *trace) widgetNode {
			return syncView(func(_ context.Context, v *statusView) (reconcilers.Result, error) {
				calls.add("%s %s has %v", v.Kind, v.Name, v.Status.Fields)
				v.setField("new", "value")
				delete(v.Status.Fields, "old")
				v.Labels = map[string]string{"changed": "true"}
				return result, err
			})
		}
	}
	changed := func(given rtesting.Fixture[*resources.Widget]) *resources.Widget {
		return given.With(func(w *resources.Widget) {
			w.Status.Fields = map[string]string{"new": "value"}
			w.Labels = map[string]string{"changed": "true"}
		}).Object()
	}
	calls := []string{"Widget gadget has map[old:value]"}
	nodeTests{
		"what changed is carried over, and nothing else": {
			node:  change(minute, nil),
			calls: calls,
			widgetCase: widgetCase{
				Resource: marked.Object(), ExpectResource: changed(marked), ExpectedResult: minute,
			},
		},
		"changes are carried over in spite of an error": {
			node:  change(minute, errBoom),
			calls: calls,
			widgetCase: widgetCase{
				Resource: marked.Object(), ExpectResource: changed(marked), ShouldErr: true, Verify: returnsBoth(errBoom, minute),
			},
		},
		"changes are carried over in spite of a halt": {
			node:  change(reconcilers.Result{}, reconcilers.ErrHaltSubReconcilers),
			calls: calls,
			widgetCase: widgetCase{
				Resource: marked.Object(), ExpectResource: changed(marked), ShouldErr: true, Verify: returns(reconcilers.ErrHaltSubReconcilers),
			},
		},
		"terminating": {
			node:  change(minute, nil),
			calls: calls,
			widgetCase: widgetCase{
				Resource:       marked.With(terminating(theirs)).Object(),
				ExpectResource: changed(marked.With(terminating(theirs))),
				ExpectedResult: minute,
			},
		},
		"nothing changed": {
			node: func(*trace) widgetNode {
				return syncView(func(context.Context, *statusView) (reconcilers.Result, error) { return minute, nil })
			},
			widgetCase: widgetCase{Resource: marked.Object(), ExpectedResult: minute},
		},
		"members that the resource lacks are dropped": {
			node: func(*trace) widgetNode {
				return syncDeployment(func(_ context.Context, d *appsv1.Deployment) error {
					d.Spec.Paused = true
					d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main"}}
					d.Status.ObservedGeneration = 5
					return nil
				})
			},
			widgetCase: widgetCase{
				Resource:       marked.Object(),
				ExpectResource: marked.With(func(w *resources.Widget) { w.Status.ObservedGeneration = 5 }).Object(),
			},
		},
		"unstructured": {
			node: func(calls *trace) widgetNode {
				return &reconcilers.CastResource[*resources.Widget, *unstructured.Unstructured]{
					Reconciler: &reconcilers.SyncReconciler[*unstructured.Unstructured]{
						Sync: func(_ context.Context, u *unstructured.Unstructured) error {
							calls.add("%s %s", u.GetKind(), u.GetName())
							// Not of the types that come from decoding.
							u.Object["status"].(map[string]any)["observedGeneration"] = 7
							return nil
						},
					},
				}
			},
			calls: []string{"Widget gadget"},
			widgetCase: widgetCase{
				Resource:       marked.Object(),
				ExpectResource: marked.With(func(w *resources.Widget) { w.Status.ObservedGeneration = 7 }).Object(),
			},
		},
	}.run(t)
}

// A resource that is of the type already is handed on as it is.
func TestCastResourceOfTheSameType(t *testing.T) {
	resource := widget.Object()
	config := expectWidget(resource).Config()
	ctx := testContext(t, config)
	received := map[string]client.Object{}
	sameType := &reconcilers.CastResource[*resources.Widget, *resources.Widget]{Reconciler: &widgetSync{
		Sync: func(ctx context.Context, w *resources.Widget) error {
			received["same type"] = w
			w.Status.AddField("seen", reconcilers.RetrievePath(ctx))
			return nil
		},
	}}
	toInterface := &reconcilers.CastResource[*resources.Widget, client.Object]{Reconciler: &reconcilers.SyncReconciler[client.Object]{
		Sync: func(ctx context.Context, obj client.Object) error {
			received["interface"] = obj
			if resourceType := reconcilers.RetrieveResourceType(ctx); reflect.TypeOf(resourceType) != reflect.TypeFor[*resources.Widget]() {
				t.Errorf("the resource type is %T, want %v", resourceType, reflect.TypeFor[*resources.Widget]())
			}
			return errBoom
		},
	}}
	fromInterface := &reconcilers.CastResource[client.Object, *resources.Widget]{Reconciler: &widgetSync{
		Sync: func(_ context.Context, w *resources.Widget) error {
			received["from an interface"] = w
			return nil
		},
	}}
	if _, err := sameType.Reconcile(ctx, resource); err != nil {
		t.Error(err)
	}
	if _, err := toInterface.Reconcile(ctx, resource); err != errBoom {
		t.Errorf("the error is %v, want %v", err, errBoom)
	}
	if _, err := fromInterface.Reconcile(ctx, resource); err != nil {
		t.Error(err)
	}
	for _, mode := range []string{"same type", "interface", "from an interface"} {
		if received[mode] != client.Object(resource) {
			t.Errorf("%s: the node received %v, want the resource itself", mode, received[mode])
		}
	}
	if path := resource.Status.Fields["seen"]; path != "WidgetCastResource/SyncReconciler" {
		t.Errorf("the path is %q, want WidgetCastResource/SyncReconciler", path)
	}
}

func TestCastResourceNames(t *testing.T) {
	sync := &deploymentSync{Sync: func(context.Context, *appsv1.Deployment) error { return nil }}
	for name, test := range map[string]struct {
		node     any
		expected string
	}{
		"a struct":     {&asDeployment{Reconciler: sync}, "CastResource \"DeploymentCastResource\" Deployment\n└─ SyncReconciler \"SyncReconciler\"\n"},
		"an interface": {&reconcilers.CastResource[*resources.Widget, client.Object]{}, "CastResource \"ObjectCastResource\" Object\n└─ nothing\n"},
		"given":        {&asDeployment{Name: "mine", Reconciler: sync}, "CastResource \"mine\" Deployment\n└─ SyncReconciler \"SyncReconciler\"\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.expected, reconcilers.Describe(test.node).String()); diff != "" {
				t.Errorf("the description differs (-want +got):\n%s", diff)
			}
		})
	}
}

// boxed is no pointer, and thus nothing that can be filled.
type boxed struct{ client.Object }

// named is an interface that Widgets do not implement.
type named interface {
	client.Object
	Nickname() string
}

func TestCastResourceValidate(t *testing.T) {
	invalid := &deploymentSync{Name: "invalid"}
	validationTests{
		"empty": {node: &asDeployment{}, shallow: `CastResource "DeploymentCastResource" must define Reconciler`},
		"nil":   {node: &asDeployment{Reconciler: (*deploymentSync)(nil)}, shallow: `CastResource "DeploymentCastResource" must define Reconciler`},
		"valid": {node: syncDeployment(func(context.Context, *appsv1.Deployment) error { return nil })},
		"invalid": {
			node: &asDeployment{Reconciler: invalid},
			recursive: `CastResource "DeploymentCastResource" must have a valid Reconciler: ` +
				`SyncReconciler "invalid" must implement Sync or SyncWithResult`,
		},
		"no pointer": {
			node:    &reconcilers.CastResource[*resources.Widget, boxed]{Reconciler: reconcilers.Sequence[boxed]{}},
			shallow: `CastResource "boxedCastResource" must have a CastType that is a pointer or an interface, not reconcilers_test.boxed`,
		},
		"no implementation": {
			node:    &reconcilers.CastResource[*resources.Widget, named]{Reconciler: reconcilers.Sequence[named]{}},
			shallow: `CastResource "namedCastResource" must have a CastType that *resources.Widget implements, not reconcilers_test.named`,
		},
	}.run(t)
	for _, node := range []widgetNode{
		&asDeployment{},
		&reconcilers.CastResource[*resources.Widget, boxed]{Reconciler: reconcilers.Sequence[boxed]{}},
	} {
		_, err := node.Reconcile(t.Context(), widget.Object())
		if setUp := node.SetupWithManager(t.Context(), nil, nil); err == nil || setUp == nil || err.Error() != setUp.Error() {
			t.Errorf("Reconcile returned %v and set-up %v, want the same error of both", err, setUp)
		}
	}
	// What an interface holds is known in a request only.
	dynamic := &reconcilers.CastResource[client.Object, named]{Reconciler: reconcilers.Sequence[named]{}}
	_, err := dynamic.Reconcile(t.Context(), widget.Object())
	checkError(t, "in a request", err, `CastResource "namedCastResource" is unable to make a named of Widget default/gadget: `+
		`type reconcilers_test.named: no empty value can be made of it`)
}

// setupProbe notes what the set-up and the validation of nested nodes see.
type setupProbe struct {
	reconcilers.Sequence[*appsv1.Deployment]
	calls *trace
}

func (p *setupProbe) SetupWithManager(ctx context.Context, _ reconcilers.Manager, _ *reconcilers.Builder) error {
	p.note(ctx, "set-up")
	return errBoom
}

func (p *setupProbe) Validate(ctx context.Context) error {
	p.note(ctx, "validation")
	return nil
}

func (p *setupProbe) note(ctx context.Context, what string) {
	resource, original := reconcilers.RetrieveResourceType(ctx), reconcilers.RetrieveOriginalResourceType(ctx)
	p.calls.add("%s at %s: %T of kind %s, originally %T", what, reconcilers.RetrievePath(ctx),
		resource, resource.GetObjectKind().GroupVersionKind(), original)
}

func TestCastResourceSetup(t *testing.T) {
	calls := &trace{}
	root := &widgetRoot{Config: expectWidget().Config(), Reconciler: &asDeployment{Reconciler: &setupProbe{calls: calls}}}
	if err := root.Validate(validationContext(t)); err != nil {
		t.Error(err)
	}
	if err := root.Reconciler.SetupWithManager(testContext(t, root.Config), nil, nil); !errors.Is(err, errBoom) {
		t.Errorf("set-up returned %v, want %v", err, errBoom)
	}
	calls.compare(t, []string{
		"validation at : *v1.Deployment of kind test.espalier.dev/v1, Kind=Widget, originally *resources.Widget",
		"set-up at DeploymentCastResource: *v1.Deployment of kind test.espalier.dev/v1, Kind=Widget, originally *resources.Widget",
	})
}

// stubborn has a JSON form that fails.
type stubborn struct {
	resources.Widget
	encoding error
}

func (s *stubborn) MarshalJSON() ([]byte, error) {
	if s.encoding != nil {
		return nil, s.encoding
	}
	return json.Marshal(s.Widget)
}

func (s *stubborn) UnmarshalJSON([]byte) error { return errBoom }

func (s *stubborn) DeepCopyObject() runtime.Object {
	return &stubborn{Widget: *s.Widget.DeepCopy(), encoding: s.encoding}
}

// failure is an error that errors.As finds by its type.
type failure struct{ code int }

func (f *failure) Error() string { return fmt.Sprintf("failure %d", f.code) }

func TestCastResourceThatCannotBeConverted(t *testing.T) {
	ctx := testContext(t, expectWidget().Config())
	never := func(context.Context, *statusView) (reconcilers.Result, error) {
		t.Error("the nested node ran, want it not to")
		return minute, nil
	}
	encode := &reconcilers.CastResource[*stubborn, *statusView]{Reconciler: syncView(never).Reconciler}
	result, err := encode.Reconcile(ctx, &stubborn{Widget: *widget.Object(), encoding: errBoom})
	unable := `CastResource "statusViewCastResource" is unable to make a statusView of stubborn default/gadget: `
	if !errors.Is(err, errBoom) || result != (reconcilers.Result{}) || !strings.HasPrefix(err.Error(), unable) {
		t.Errorf("it returned %v and %v, want an empty result and an error of %v that begins with %q", result, err,
			errBoom, unable)
	}
	decode := &reconcilers.CastResource[*resources.Widget, *stubborn]{Reconciler: &reconcilers.SyncReconciler[*stubborn]{
		Sync: func(context.Context, *stubborn) error { t.Error("the nested node ran, want it not to"); return nil },
	}}
	result, err = decode.Reconcile(ctx, widget.Object())
	if !errors.Is(err, errBoom) || result != (reconcilers.Result{}) {
		t.Errorf("it returned %v and %v, want an empty result and %v", result, err, errBoom)
	}
}

// The resource is never left half-filled, and both errors are seen.
func TestCastResourceWithChangesThatDoNotFit(t *testing.T) {
	given := widget.With(statusField("old", "value"), func(w *resources.Widget) { w.Labels = map[string]string{"old": "value"} })
	for name, test := range map[string]struct{ nested error }{
		"alone":                    {nil},
		"with an error":            {&failure{code: 7}},
		"with an error that halts": {reconcilers.ErrHaltSubReconcilers},
	} {
		t.Run(name, func(t *testing.T) {
			resource := given.Object()
			ctx := reconcilers.StashConfig(t.Context(), expectWidget().Config())
			node := syncView(func(_ context.Context, v *statusView) (reconcilers.Result, error) {
				v.Annotations = map[string]string{"fits": "true"}
				v.Labels = nil
				v.setField("new", 5)
				return minute, test.nested
			})
			result, err := node.Reconcile(ctx, resource)
			var mismatch *json.UnmarshalTypeError
			if !errors.As(err, &mismatch) || result != minute {
				t.Errorf("it returned %v and %v, want %v and a %T", result, err, minute, mismatch)
			}
			if diff := cmp.Diff(given.Object(), resource); diff != "" {
				t.Errorf("the resource changed, want it unchanged (-want +got):\n%s", diff)
			}
			if test.nested == nil {
				unable := `CastResource "statusViewCastResource" is unable to carry over to Widget default/gadget what changed of the statusView: json: `
				if !strings.HasPrefix(err.Error(), unable) {
					t.Errorf("the error is %v, want it to begin with %q", err, unable)
				}
				return
			}
			// Joined with a quiet error, what does not fit would be silent (invariant L6).
			if errors.Is(err, reconcilers.ErrQuiet) || !errors.Is(err, test.nested) && !errors.Is(test.nested, reconcilers.ErrQuiet) {
				t.Errorf("the error is %v, want no quiet one, and %v in it unless that is quiet", err, test.nested)
			}
			var known *failure
			if _, ok := test.nested.(*failure); ok && !errors.As(err, &known) {
				t.Errorf("errors.As does not see through %v, want a %T", err, known)
			}
		})
	}
}

func TestCastResourceToAnInterfacePassesTheResourceItself(t *testing.T) {
	nodeTests{"": {
		widgetCase: widgetCase{ExpectResource: widget.With(statusField("same", "object")).Object()},
		node: func(*trace) widgetNode {
			return &reconcilers.CastResource[*resources.Widget, client.Object]{
				Reconciler: &reconcilers.SyncReconciler[client.Object]{Sync: func(_ context.Context, obj client.Object) error {
					w, ok := obj.(*resources.Widget)
					if !ok {
						return errors.New("not the widget")
					}
					w.Status.AddField("same", "object")
					return nil
				}},
			}
		},
	}}.run(t)
}
