package reconcilers_test

import (
	"context"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	"github.com/espalier-dev/espalier/validation"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func contextWithLogger(t *testing.T, l *listener) context.Context {
	return logr.NewContext(t.Context(), l.logger())
}

func validationContext(t *testing.T) context.Context {
	return validation.WithRecursive(t.Context())
}

type castChild = reconcilers.ChildReconciler[*appsv1.Deployment, *corev1.ConfigMap, *corev1.ConfigMapList]

// childOfCast is a child of a Widget that its node sees as a Deployment.
func childOfCast(options ...func(*castChild)) *castChild {
	child := &castChild{
		DesiredChild: func(_ context.Context, d *appsv1.Deployment) (*corev1.ConfigMap, error) {
			return &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name},
				Data:       map[string]string{"color": "blue"},
			}, nil
		},
		MergeBeforeUpdate:          mergeConfigMap,
		ReflectChildStatusOnParent: func(context.Context, *appsv1.Deployment, *corev1.ConfigMap, error) {},
	}
	for _, option := range options {
		option(child)
	}
	return child
}

// unowned makes the child one that a finalizer guards.
func unowned(child *castChild) {
	child.Finalizer = ours
	child.OurChild = func(d *appsv1.Deployment, c *corev1.ConfigMap) bool { return c.Name == d.Name }
	child.ListOptions = func(_ context.Context, d *appsv1.Deployment) []client.ListOption {
		return []client.ListOption{client.InNamespace(d.Namespace)}
	}
}

// Under a cast the resource is what it was for the cluster: a Widget, although Deployments have an endpoint of their own.
func TestCastObjectStandsForTheResource(t *testing.T) {
	add := finalizersPatch(`{"metadata":{"finalizers":["` + ours + `"],"resourceVersion":"999"}}`)
	remove := finalizersPatch(`{"metadata":{"finalizers":null,"resourceVersion":"999"}}`)
	patched := normal("FinalizerPatched", `Patched finalizer "`+ours+`"`)
	finalized := func(*trace) widgetNode {
		return &asDeployment{Reconciler: &deploymentFinalizer{Finalizer: ours, Reconciler: reconcilers.Sequence[*appsv1.Deployment]{}}}
	}
	beingDeleted := widget.With(terminating(ours))
	nodeTests{
		"a finalizer is put on": {
			node:  finalized,
			calls: []string{"patch Widget"},
			widgetCase: widgetCase{
				ExpectResource: widget.With(patchedBy(ours)).Object(),
				ExpectPatches:  []rtesting.PatchRef{add},
				ExpectEvents:   []rtesting.Event{patched},
			},
		},
		"a finalizer is taken off": {
			node:  finalized,
			calls: []string{"patch Widget"},
			widgetCase: widgetCase{
				Resource:       beingDeleted.Object(),
				ExpectResource: beingDeleted.With(patchedBy()).Object(),
				ExpectPatches:  []rtesting.PatchRef{remove},
				ExpectEvents:   []rtesting.Event{patched},
			},
		},
		"a finalizer is put on and taken off": {
			node: func(*trace) widgetNode {
				return syncDeployment(func(ctx context.Context, d *appsv1.Deployment) error {
					if err := reconcilers.AddFinalizer(ctx, d, ours); err != nil {
						return err
					}
					return reconcilers.ClearFinalizer(ctx, d, ours)
				})
			},
			widgetCase: widgetCase{
				ExpectResource: widget.With(patchedBy()).Object(),
				ExpectPatches: []rtesting.PatchRef{
					add, finalizersPatch(`{"metadata":{"finalizers":null,"resourceVersion":"1000"}}`),
				},
				ExpectEvents: []rtesting.Event{patched, patched},
				Replays:      rtesting.NoReplays("each request puts the finalizer on and takes it off"),
			},
		},
		"a finalizer cannot be put on": {
			node: finalized,
			widgetCase: widgetCase{
				WithReactors:  []rtesting.ReactionFunc{rtesting.InduceFailure("patch", "Widget", rtesting.InduceFailureOpts{Error: errBoom})},
				ExpectPatches: []rtesting.PatchRef{add},
				ExpectEvents:  []rtesting.Event{warning("FinalizerPatchFailed", `Failed to patch finalizer "`+ours+`": boom`)},
				ShouldErr:     true,
				Verify:        returns(errBoom),
			},
		},
		"a cast within a cast, and a finalizer at each level": {
			node: func(*trace) widgetNode {
				inner := reconcilers.CastResource[*appsv1.Deployment, *unstructured.Unstructured]{
					Reconciler: &reconcilers.WithFinalizer[*unstructured.Unstructured]{
						Finalizer: ours, Reconciler: reconcilers.Sequence[*unstructured.Unstructured]{},
					},
				}
				return &asDeployment{Reconciler: &deploymentFinalizer{Finalizer: theirs, Reconciler: &inner}}
			},
			widgetCase: widgetCase{
				ExpectResource: widget.With(func(w *resources.Widget) {
					w.Finalizers = []string{theirs, ours}
					w.ResourceVersion = "1001"
				}).Object(),
				ExpectPatches: []rtesting.PatchRef{
					finalizersPatch(`{"metadata":{"finalizers":["` + theirs + `"],"resourceVersion":"999"}}`),
					finalizersPatch(`{"metadata":{"finalizers":["` + theirs + `","` + ours + `"],"resourceVersion":"1000"}}`),
				},
				ExpectEvents: []rtesting.Event{normal("FinalizerPatched", `Patched finalizer "`+theirs+`"`), patched},
			},
		},
		"the object of an outer cast": {
			node: func(*trace) widgetNode {
				return syncDeployment(func(ctx context.Context, d *appsv1.Deployment) error {
					inner := &reconcilers.CastResource[*appsv1.Deployment, *statusView]{Reconciler: &viewSync{
						Sync: func(ctx context.Context, _ *statusView) error { return reconcilers.AddFinalizer(ctx, d, ours) },
					}}
					_, err := inner.Reconcile(ctx, d)
					return err
				})
			},
			calls: []string{"patch Widget"},
			widgetCase: widgetCase{
				ExpectResource: widget.With(patchedBy(ours)).Object(),
				ExpectPatches:  []rtesting.PatchRef{add},
				ExpectEvents:   []rtesting.Event{patched},
			},
		},
		"another object keeps its kind": {
			node: func(*trace) widgetNode {
				return syncDeployment(func(ctx context.Context, d *appsv1.Deployment) error {
					return reconcilers.AddFinalizer(ctx, d.DeepCopy(), ours)
				})
			},
			calls: []string{"patch Deployment"},
			widgetCase: widgetCase{
				ExpectPatches: []rtesting.PatchRef{{
					Group: "apps", Kind: "Deployment", Namespace: widgetKey.Namespace, Name: widgetKey.Name,
					PatchType: add.PatchType, Patch: add.Patch,
				}},
				ExpectEvents: []rtesting.Event{warning("FinalizerPatchFailed", `Failed to patch finalizer "`+ours+`": deployments.apps "gadget" not found`)},
				ShouldErr:    true,
			},
		},
		"a child is owned by it": {
			node: func(*trace) widgetNode { return &asDeployment{Reconciler: childOfCast()} },
			widgetCase: widgetCase{
				ExpectCreates: []client.Object{configMap},
				ExpectEvents:  []rtesting.Event{normal("Created", `Created ConfigMap "gadget"`)},
			},
		},
		"a child is owned by it, also if the node gives it another kind": {
			node: func(*trace) widgetNode {
				renamed := &deploymentSync{Sync: func(_ context.Context, d *appsv1.Deployment) error {
					d.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
					return nil
				}}
				return &asDeployment{Reconciler: reconcilers.Sequence[*appsv1.Deployment]{renamed, childOfCast()}}
			},
			widgetCase: widgetCase{
				ExpectCreates: []client.Object{configMap},
				ExpectEvents:  []rtesting.Event{normal("Created", `Created ConfigMap "gadget"`)},
			},
		},
		"a child of its own is found": {
			node:       func(*trace) widgetNode { return &asDeployment{Reconciler: childOfCast()} },
			widgetCase: widgetCase{GivenObjects: []client.Object{givenConfigMap}},
		},
		"a child that it does not own": {
			node: func(*trace) widgetNode { return &asDeployment{Reconciler: childOfCast(unowned)} },
			widgetCase: widgetCase{
				ExpectResource: widget.With(patchedBy(ours)).Object(),
				ExpectPatches:  []rtesting.PatchRef{add},
				ExpectCreates:  []client.Object{configMap.With(func(child *corev1.ConfigMap) { child.OwnerReferences = nil })},
				ExpectEvents:   []rtesting.Event{patched, normal("Created", `Created ConfigMap "gadget"`)},
				ExpectTracks:   []rtesting.TrackRequest{rtesting.NewTrackRequest(configMap, widget, widgetScheme)},
			},
		},
	}.run(t)
}

// widgetBuilder stands for a Widget: a copy of it is a Widget.
type widgetBuilder struct {
	resources.Widget `json:",inline"`
}

func (b *widgetBuilder) DeepCopyObject() runtime.Object { return b.Widget.DeepCopy() }

// The barrier against a cache that lags behind works for what is written under a cast.
func TestFinalizerUnderACastIsRememberedByTheRoot(t *testing.T) {
	expect := expectWidget(steadyWidget)
	stale := expect.Config()
	root := &widgetRoot{
		Config:     reconcilers.Config{Client: frozen{Client: stale.Client, known: map[client.ObjectKey]client.Object{}}, Tracker: stale.Tracker},
		Reconciler: &asDeployment{Reconciler: &deploymentFinalizer{Finalizer: ours, Reconciler: reconcilers.Sequence[*appsv1.Deployment]{}}},
	}
	for range 3 {
		if _, err := root.Reconcile(t.Context(), widgetRequest); err != nil {
			t.Fatal(err)
		}
	}
	expect.ExpectPatches = finalizersPatches(ours)
	expect.AssertExpectations(t)
}

// frozen is a client whose cache stays as it was at the first read.
type frozen struct {
	client.Client
	known map[client.ObjectKey]client.Object
}

func (f frozen) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if known, ok := f.known[key]; ok {
		*obj.(*resources.Widget) = *known.(*resources.Widget).DeepCopy()
		return nil
	}
	err := f.Client.Get(ctx, key, obj, opts...)
	if err == nil {
		f.known[key] = obj.DeepCopyObject().(client.Object)
	}
	return err
}

// An object that the author made may have numbers that cannot be copied as they are.
func TestFinalizerUnderACastOfAnObjectWithPlainIntegers(t *testing.T) {
	w := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "test.espalier.dev/v1", "kind": "Widget",
		"metadata": map[string]any{"namespace": widgetKey.Namespace, "name": widgetKey.Name, "resourceVersion": "999"},
	}}
	node := &reconcilers.CastResource[*unstructured.Unstructured, *resources.Widget]{
		Reconciler: &widgetSync{Sync: func(ctx context.Context, typed *resources.Widget) error {
			w.Object["size"] = 1
			return reconcilers.AddFinalizer(ctx, typed, ours)
		}},
	}
	ctx := testContext(t, expectWidget(widget).Config())
	if _, err := node.Reconcile(ctx, w); err != nil || len(w.GetFinalizers()) != 1 {
		t.Errorf("the finalizers are %v with the error %v, want one finalizer", w.GetFinalizers(), err)
	}
}
