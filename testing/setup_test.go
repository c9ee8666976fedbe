package testing_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	"github.com/espalier-dev/espalier/tracker"
)

type (
	setupCase   = rtesting.SetupTestCase
	widgetNode  = reconcilers.SubReconciler[*resources.Widget]
	widgetChild = reconcilers.ChildReconciler[*resources.Widget, *corev1.ConfigMap, *corev1.ConfigMapList]
	setupHook   = func(ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder) error
)

var (
	widgets = resources.NewScheme()
	widget  = rtesting.NewFixture(&resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "gadget", UID: "one"}})
	gadget  = requestFor("default", "gadget")
	// owned is a child of the widget.
	owned = settings.With(func(c *corev1.ConfigMap) {
		c.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: resources.GroupVersion.String(), Kind: "Widget", Name: "gadget", UID: "one", Controller: new(true),
		}}
	})
	partialSecret = &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}}
	dynamicPod    = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod"}}
)

func requestFor(namespace, name string) reconcilers.Request {
	return reconcilers.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

// child is a node that has ConfigMaps.
func child(name string) *widgetChild {
	return &widgetChild{
		Name:                       name,
		DesiredChild:               func(context.Context, *resources.Widget) (*corev1.ConfigMap, error) { return nil, nil },
		OurChild:                   func(_ *resources.Widget, c *corev1.ConfigMap) bool { return c.Name == name },
		MergeBeforeUpdate:          func(current, desired *corev1.ConfigMap) {},
		ReflectChildStatusOnParent: func(context.Context, *resources.Widget, *corev1.ConfigMap, error) {},
	}
}

// hook is a node that is set up by f.
func hook(f setupHook) widgetNode {
	return &reconcilers.SyncReconciler[*resources.Widget]{
		Setup: f, Sync: func(context.Context, *resources.Widget) error { return nil },
	}
}

// sets is the metadata of a case that sets up nodes.
func sets(nodes ...widgetNode) map[string]any {
	return map[string]any{"nodes": reconcilers.Sequence[*resources.Widget](nodes)}
}

func newSetup(_ *testing.T, tc *setupCase, c reconcilers.Config) rtesting.Setup {
	if setup, ok := tc.Metadata["setup"].(rtesting.SetupFunc); ok {
		return setup
	}
	nodes, ok := tc.Metadata["nodes"].(reconcilers.Sequence[*resources.Widget])
	if !ok {
		return nil
	}
	return rtesting.SubReconcilerSetup[*resources.Widget](c, nodes)
}

func enqueue(requests ...reconcilers.Request) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcilers.Request { return requests })
}

func TestSetupOfATree(t *testing.T) {
	renamed := owned.With(func(c *corev1.ConfigMap) { c.Name = "other" })
	rtesting.SetupTests{
		"a type is watched once": {
			Metadata:      sets(child("a"), child("b"), reconcilers.Sequence[*resources.Widget]{child("c")}),
			ExpectWatches: []client.Object{&resources.Widget{}, &corev1.ConfigMap{}},
			Events: []rtesting.SetupEvent{
				{Created: widget, ExpectRequests: []reconcilers.Request{gadget}},
				{Updated: widget, ExpectRequests: []reconcilers.Request{gadget}},
				{Deleted: widget, ExpectRequests: []reconcilers.Request{gadget}},
				{Created: owned, ExpectRequests: []reconcilers.Request{gadget}},
				{Updated: settings, Before: owned, ExpectRequests: []reconcilers.Request{gadget}},
				{Updated: settings},
				{Deleted: owned, ExpectRequests: []reconcilers.Request{gadget}},
				{Created: pod},
				{Name: "together", Created: widget, Deleted: renamed, ExpectRequests: []reconcilers.Request{gadget}},
			},
		},
		"tracked objects": {
			Metadata: sets(hook(func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
				bldr.Watches(&corev1.Secret{}, reconcilers.EnqueueTracked(ctx))
				return nil
			})),
			GivenTracks: []rtesting.TrackRequest{
				rtesting.CreateTrackRequest("", "Secret", "default", "tls").By("default", "gadget"),
				{
					Tracker:          types.NamespacedName{Namespace: "default", Name: "by-label"},
					TrackedReference: tracker.Reference{Kind: "Secret", Selector: labels.SelectorFromSet(labels.Set{"a": "b"})},
				},
			},
			ExpectWatches: []client.Object{&resources.Widget{}, &corev1.Secret{}},
			Events: []rtesting.SetupEvent{
				{
					Created:        &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "tls"}},
					ExpectRequests: []reconcilers.Request{gadget},
				},
				{
					Deleted: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
						Namespace: "default", Name: "tls", Labels: map[string]string{"a": "b"},
					}},
					ExpectRequests: []reconcilers.Request{gadget, requestFor("default", "by-label"), gadget},
				},
				{Created: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "other"}}},
			},
		},
		"types of their own": {
			Metadata: sets(hook(func(_ context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
				bldr.Watches(&corev1.Pod{}, &typed[*corev1.Pod]{})
				bldr.Watches(dynamicPod, &typed[*unstructured.Unstructured]{})
				bldr.WatchesMetadata(&corev1.Secret{}, &typed[*metav1.PartialObjectMetadata]{})
				bldr.Watches(&corev1.Pod{}, &typed[*corev1.Pod]{})
				return nil
			})),
			ExpectWatches: []client.Object{&resources.Widget{}, &corev1.Pod{}, dynamicPod, &corev1.Pod{}, partialSecret},
			Events: []rtesting.SetupEvent{
				{Created: running, ExpectRequests: []reconcilers.Request{
					requestFor("*v1.Pod ", "web"), requestFor("*unstructured.Unstructured Pod", "web"),
				}},
				{
					Deleted:        &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "tls"}},
					ExpectRequests: []reconcilers.Request{requestFor("*v1.PartialObjectMetadata Secret", "tls")},
				},
			},
		},
		"predicates": {
			Metadata: sets(hook(func(_ context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
				changed := predicate.Funcs{UpdateFunc: func(e ctrlevent.UpdateEvent) bool {
					return e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion()
				}}
				bldr.Watches(&corev1.Pod{}, enqueue(gadget), builder.WithPredicates(changed))
				return nil
			})),
			ExpectWatches: []client.Object{&resources.Widget{}, &corev1.Pod{}},
			Events: []rtesting.SetupEvent{
				{Updated: pod},
				{
					Updated: pod, Before: pod.With(func(p *corev1.Pod) { p.ResourceVersion = "1" }),
					ExpectRequests: []reconcilers.Request{gadget},
				},
			},
		},
		"fails": {
			Metadata:    sets(child("a"), hook(func(context.Context, reconcilers.Manager, *reconcilers.Builder) error { return errOops })),
			ExpectedErr: errOops,
		},
		"is not valid": {
			Metadata: sets(&widgetChild{Name: "a"}),
			ExpectedErr: errors.New(`ResourceReconciler "WidgetResourceReconciler" must have a valid Reconciler: ` +
				`Sequence must have a valid Sequence[0]: ChildReconciler "a" must implement DesiredChild`),
			Verify: func(t *testing.T, err error) {
				if err == nil {
					t.Error("there is no error")
				}
			},
		},
		"prepared and cleaned up": {
			ShouldErr: true,
			Prepare: func(_ *testing.T, ctx context.Context, tc *setupCase) (context.Context, error) {
				tc.Metadata["setup"] = rtesting.SetupFunc(func(ctx context.Context, _ reconcilers.Manager) error {
					if ctx.Value(preparedKey{}) != nil {
						return errOops
					}
					return nil
				})
				tc.CleanUp = func(_ *testing.T, ctx context.Context, _ *setupCase) error {
					if ctx.Value(preparedKey{}) == nil {
						return errOops
					}
					return nil
				}
				return context.WithValue(ctx, preparedKey{}, true), nil
			},
		},
		"skipped": {Skip: true},
	}.Run(t, widgets, newSetup)
}

// typed enqueues requests that tell the type that the handler gets.
type typed[Type client.Object] struct{ handler.Funcs }

func (typed[Type]) add(obj client.Object, q workqueue.TypedRateLimitingInterface[reconcilers.Request]) {
	if _, ok := obj.(Type); ok {
		// A type that is decoded into does not carry its kind.
		q.AddRateLimited(requestFor(fmt.Sprintf("%T %s", obj, obj.GetObjectKind().GroupVersionKind().Kind), obj.GetName()))
	}
}

func (h typed[Type]) Create(_ context.Context, e ctrlevent.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcilers.Request]) {
	h.add(e.Object, q)
}

func (h typed[Type]) Delete(_ context.Context, e ctrlevent.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcilers.Request]) {
	h.add(e.Object, q)
}

// A root that is written by hand: raw sources, indexes of its own, and an owner without a namespace.
func TestSetupByHand(t *testing.T) {
	const field = "spec.node"
	reconciles := reconcile.Func(func(context.Context, reconcilers.Request) (reconcilers.Result, error) {
		t.Error("nothing is to be reconciled")
		return reconcilers.Result{}, nil
	})
	generic := make(chan ctrlevent.GenericEvent)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "admin"}}
	byRole := rtesting.NewFixture(settings.Object()).With(func(c *corev1.ConfigMap) {
		c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "admin"}}
	})
	scheduled := pod.With(func(p *corev1.Pod) { p.Spec.NodeName = "a" })

	rtesting.SetupTestSuite{{
		Name:         "by hand",
		GivenObjects: []client.Object{scheduled, pod.With(func(p *corev1.Pod) { p.Name = "other" })},
		Metadata: map[string]any{"setup": rtesting.SetupFunc(func(ctx context.Context, mgr reconcilers.Manager) error {
			index := func(obj client.Object) []string { return []string{obj.(*corev1.Pod).Spec.NodeName} }
			if err := mgr.GetFieldIndexer().IndexField(ctx, &corev1.Pod{}, field, index); err != nil {
				return err
			}
			// The same index once more is refused, as it is by a cache.
			if err := mgr.GetFieldIndexer().IndexField(ctx, &corev1.Pod{}, field, index); err == nil {
				return errors.New("the index is there twice")
			}
			onNode := func(ctx context.Context, node client.Object) (requests []reconcilers.Request) {
				var pods corev1.PodList
				if err := mgr.GetClient().List(ctx, &pods, client.MatchingFields{field: node.GetName()}); err != nil {
					return []reconcilers.Request{requestFor("", err.Error())}
				}
				for _, pod := range pods.Items {
					requests = append(requests, requestFor(pod.Namespace, pod.Name))
				}
				return requests
			}
			started := source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcilers.Request]) error {
				q.AddAfter(requestFor("default", "started"), 1)
				time.AfterFunc(10*time.Millisecond, func() { q.Add(requestFor("default", "later")) })
				return nil
			})
			if err := mgr.Add(manager.RunnableFunc(func(context.Context) error { return errOops })); err != nil {
				return err
			}
			return ctrl.NewControllerManagedBy(mgr).
				For(&rbacv1.ClusterRole{}).
				Owns(&corev1.ConfigMap{}, builder.MatchEveryOwner).
				Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(onNode)).
				WatchesRawSource(started).
				WatchesRawSource(source.Channel(generic, &handler.EnqueueRequestForObject{})).
				Complete(reconciles)
		})},
		ExpectWatches:  []client.Object{&corev1.Node{}, &rbacv1.ClusterRole{}, &corev1.ConfigMap{}},
		ExpectIndexes:  []rtesting.IndexRef{{Object: &corev1.Pod{}, Field: field}},
		ExpectRequests: []reconcilers.Request{requestFor("default", "started"), requestFor("default", "later")},
		Events: []rtesting.SetupEvent{
			{Created: role, ExpectRequests: []reconcilers.Request{requestFor("", "admin")}},
			{Created: byRole, ExpectRequests: []reconcilers.Request{requestFor("", "admin")}},
			{
				Created:        &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}},
				ExpectRequests: []reconcilers.Request{requestFor("default", "web")},
			},
			{
				Send:           func(context.Context) { generic <- ctrlevent.GenericEvent{Object: pod.Object()} },
				ExpectRequests: []reconcilers.Request{requestFor("default", "web")},
			},
		},
	}}.Run(t, scheme, newSetup)
}

// An owner is woken in the namespace of what it owns, unless it has none.
func TestSetupKnowsScopes(t *testing.T) {
	ownedBy := func(apiVersion, kind string) client.Object {
		return settings.With(func(c *corev1.ConfigMap) {
			c.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: "gadget", Controller: new(true)}}
		})
	}
	cases := rtesting.SetupTests{}
	for name, tc := range map[string]struct {
		owner     client.Object
		resources []*metav1.APIResourceList
		want      reconcilers.Request
	}{
		"of the scheme": {owner: &resources.Widget{}, want: gadget},
		"given": {
			owner: &resources.Widget{},
			resources: []*metav1.APIResourceList{{
				GroupVersion: resources.GroupVersion.String(),
				APIResources: []metav1.APIResource{{Name: "widgets", SingularName: "widget", Kind: "Widget"}},
			}},
			want: requestFor("", "gadget"),
		},
		"built in": {owner: &corev1.Node{}, want: requestFor("", "gadget")},
		"unknown": {
			owner: &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Gadget"}},
			want:  gadget,
		},
	} {
		kind, err := apiutil.GVKForObject(tc.owner, widgets)
		if err != nil {
			t.Fatal(err)
		}
		cases[name] = setupCase{
			GivenAPIResources: tc.resources,
			ExpectWatches:     []client.Object{tc.owner, &corev1.ConfigMap{}},
			Events: []rtesting.SetupEvent{
				{Created: ownedBy(kind.GroupVersion().String(), kind.Kind), ExpectRequests: []reconcilers.Request{tc.want}},
			},
			Metadata: map[string]any{"setup": rtesting.SetupFunc(func(_ context.Context, mgr reconcilers.Manager) error {
				return ctrl.NewControllerManagedBy(mgr).For(tc.owner).Owns(&corev1.ConfigMap{}).Complete(
					reconcile.Func(func(context.Context, reconcilers.Request) (reconcilers.Result, error) {
						return reconcilers.Result{}, nil
					}))
			})},
		}
	}
	cases.Run(t, widgets, newSetup)
}
