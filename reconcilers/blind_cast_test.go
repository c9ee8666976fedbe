package reconcilers_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// looseWidget is a duck type that takes anything for the fields of a Widget.
type looseWidget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Fields any `json:"fields,omitempty"`
		Extra  any `json:"extra,omitempty"`
	} `json:"spec,omitempty"`
	Status struct {
		Fields map[string]string `json:"fields,omitempty"`
	} `json:"status,omitempty"`
}

func (w *looseWidget) DeepCopyObject() runtime.Object {
	out := *w
	w.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Fields = runtime.DeepCopyJSONValue(w.Spec.Fields)
	out.Spec.Extra = runtime.DeepCopyJSONValue(w.Spec.Extra)
	out.Status.Fields = reconcilers.MergeMaps(w.Status.Fields)
	return &out
}

type castLoose = reconcilers.CastResource[*resources.Widget, *looseWidget]

func TestCastResourceValidates(t *testing.T) {
	type castSecret = reconcilers.CastResource[*resources.Widget, *corev1.Secret]
	validationTests{
		"default name": {node: &castSecret{}, shallow: `CastResource "SecretCastResource" must define Reconciler`},
		"named":        {node: &castSecret{Name: "my"}, shallow: `CastResource "my" must define Reconciler`},
		"invalid": {
			node:      &castSecret{Reconciler: &reconcilers.SyncReconciler[*corev1.Secret]{}},
			recursive: `CastResource "SecretCastResource" must have a valid Reconciler: ` + invalidSync,
		},
	}.run(t)
}

func TestCastResourceConverts(t *testing.T) {
	colored := widget.With(func(w *resources.Widget) { w.Spec.Fields = map[string]string{"color": "blue"} })
	cast := func(sync func(context.Context, *looseWidget) (reconcilers.Result, error)) func(*trace) widgetNode {
		return func(*trace) widgetNode {
			return &castLoose{Reconciler: &reconcilers.SyncReconciler[*looseWidget]{SyncWithResult: sync}}
		}
	}
	nodeTests{
		"carries a change over, with the result": {
			widgetCase: widgetCase{
				Resource:       colored.Object(),
				ExpectResource: colored.With(statusField("seen", "blue")).Object(),
				ExpectedResult: minute,
			},
			node: cast(func(_ context.Context, w *looseWidget) (reconcilers.Result, error) {
				w.Status.Fields = map[string]string{"seen": w.Spec.Fields.(map[string]any)["color"].(string)}
				return minute, nil
			}),
		},
		"carries a change over beside an error": {
			widgetCase: widgetCase{
				ExpectResource: widget.With(statusField("seen", "nothing")).Object(),
				ShouldErr:      true, Verify: returnsBoth(errBoom, minute),
			},
			node: cast(func(_ context.Context, w *looseWidget) (reconcilers.Result, error) {
				w.Status.Fields = map[string]string{"seen": "nothing"}
				return minute, errBoom
			}),
		},
		"drops what the resource lacks": {
			widgetCase: widgetCase{Resource: colored.Object()},
			node: cast(func(_ context.Context, w *looseWidget) (reconcilers.Result, error) {
				w.Spec.Extra = "new"
				return nothing, nil
			}),
		},
		"removes": {
			widgetCase: widgetCase{Resource: colored.Object(), ExpectResource: widget.Object()},
			node: cast(func(_ context.Context, w *looseWidget) (reconcilers.Result, error) {
				w.Spec.Fields = nil
				return nothing, nil
			}),
		},
		"has a change that does not fit, and leaves the resource whole": {
			widgetCase: widgetCase{
				Resource:  colored.With(statusField("kept", "yes")).Object(),
				ShouldErr: true,
				Verify: func(t *testing.T, result reconcilers.Result, err error) {
					returnsBoth(errBoom, minute)(t, result, err)
					if !strings.Contains(err.Error(), "cannot unmarshal") {
						t.Errorf("the error does not say what does not fit: %v", err)
					}
				},
			},
			node: cast(func(_ context.Context, w *looseWidget) (reconcilers.Result, error) {
				w.Spec.Fields = "a text"
				w.Labels = map[string]string{"lost": "too"}
				return minute, errBoom
			}),
		},
		"has a change that does not fit, which a halt does not silence": {
			widgetCase: widgetCase{ShouldErr: true, Verify: func(t *testing.T, result reconcilers.Result, err error) {
				returnsBoth(err, minute)(t, result, err)
				if errors.Is(err, reconcilers.ErrQuiet) {
					t.Errorf("silenced: %v", err)
				}
			}},
			node: cast(func(_ context.Context, w *looseWidget) (reconcilers.Result, error) {
				w.Spec.Fields = "a text"
				return minute, reconcilers.ErrHaltSubReconcilers
			}),
		},
		"knows both types, and its kind": {
			node: func(calls *trace) widgetNode {
				return &castLoose{Reconciler: &reconcilers.SyncReconciler[*looseWidget]{Sync: func(ctx context.Context, w *looseWidget) error {
					_, loose := reconcilers.RetrieveResourceType(ctx).(*looseWidget)
					_, typed := reconcilers.RetrieveOriginalResourceType(ctx).(*resources.Widget)
					calls.add("%t %t %s %s", loose, typed, w.APIVersion, w.Kind)
					return nil
				}}}
			},
			calls: []string{"true true test.espalier.dev/v1 Widget"},
		},
		"cannot be converted": {
			widgetCase: widgetCase{
				Resource:  colored.Object(),
				ShouldErr: true,
				Verify: func(t *testing.T, result reconcilers.Result, err error) {
					if result != nothing || !strings.Contains(err.Error(), "cannot unmarshal") {
						t.Errorf("returned %+v, %v", result, err)
					}
				},
			},
			node: func(calls *trace) widgetNode {
				return &reconcilers.CastResource[*resources.Widget, *numbers]{Reconciler: &reconcilers.SyncReconciler[*numbers]{
					Sync: func(context.Context, *numbers) error { calls.add("ran"); return nil },
				}}
			},
			calls: []string{},
		},
		"an interface passes the resource itself": {
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
		},
	}.run(t)
}

// numbers is a duck type that no colored Widget fits.
type numbers struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Fields []int `json:"fields,omitempty"`
	} `json:"spec,omitempty"`
}

func (n *numbers) DeepCopyObject() runtime.Object {
	out := *n
	n.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

func TestCastResourceKeepsTheIdentityOfTheResource(t *testing.T) {
	deployment := &reconcilers.SyncReconciler[*appsv1.Deployment]{Sync: func(context.Context, *appsv1.Deployment) error { return nil }}
	nodeTests{
		"its finalizer is patched where it lives": {
			widgetCase: widgetCase{
				ExpectPatches:  []rtesting.PatchRef{finalizersPatch(`{"metadata":{"finalizers":["f.io/f"],"resourceVersion":"999"}}`)},
				ExpectEvents:   []rtesting.Event{normal("FinalizerPatched", `Patched finalizer "f.io/f"`)},
				ExpectResource: widget.With(patchedBy("f.io/f")).Object(),
			},
			node: func(*trace) widgetNode {
				return &reconcilers.CastResource[*resources.Widget, *appsv1.Deployment]{
					Reconciler: &reconcilers.WithFinalizer[*appsv1.Deployment]{Finalizer: "f.io/f", Reconciler: deployment},
				}
			},
		},
		"its child is owned by it": {
			widgetCase: widgetCase{
				WithReactors:  []rtesting.ReactionFunc{born},
				ExpectCreates: []client.Object{configMap},
				ExpectEvents:  []rtesting.Event{normal("Created", `Created ConfigMap "gadget"`)},
			},
			node: func(*trace) widgetNode {
				return &reconcilers.CastResource[*resources.Widget, *appsv1.Deployment]{
					Reconciler: &reconcilers.ChildReconciler[*appsv1.Deployment, *corev1.ConfigMap, *corev1.ConfigMapList]{
						DesiredChild: func(context.Context, *appsv1.Deployment) (*corev1.ConfigMap, error) {
							return configMap.With(func(child *corev1.ConfigMap) { child.OwnerReferences = nil }).Object(), nil
						},
						MergeBeforeUpdate:          mergeConfigMap,
						ReflectChildStatusOnParent: func(context.Context, *appsv1.Deployment, *corev1.ConfigMap, error) {},
					},
				}
			},
		},
	}.run(t)
}
