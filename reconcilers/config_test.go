package reconcilers_test

import (
	"context"
	"errors"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	"github.com/espalier-dev/espalier/tracker"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestConfigIsEmpty(t *testing.T) {
	if !(reconcilers.Config{}).IsEmpty() {
		t.Error("the zero value is not empty, want it to be")
	}
	for name, config := range map[string]reconcilers.Config{
		"made by the harness": expectWidget().Config(),
		"only a tracker":      {Tracker: tracker.New(widgetScheme, 0)},
	} {
		if config.IsEmpty() {
			t.Errorf("%s: the config counts as empty, want one that is not", name)
		}
	}
	a, b := expectWidget().Config(), expectWidget().Config()
	if same := a; same != a || a == b {
		t.Error("a config is not equal to itself, or is to another, want it equal to itself alone")
	}
}

func TestTrackAndGet(t *testing.T) {
	given := givenConfigMap.With(func(c *corev1.ConfigMap) { c.OwnerReferences = nil })
	key := widgetKey
	track := []rtesting.TrackRequest{rtesting.NewTrackRequest(given, widget, widgetScheme)}
	gets := func(obj client.Object) func(*trace) widgetNode {
		return func(calls *trace) widgetNode {
			return &widgetSync{Sync: func(ctx context.Context, _ *resources.Widget) error {
				obj := obj.DeepCopyObject().(client.Object)
				if err := reconcilers.RetrieveConfigOrDie(ctx).TrackAndGet(ctx, key, obj); err != nil {
					return err
				}
				calls.add("got %s", obj.GetName())
				return nil
			}}
		}
	}
	untyped := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	quacks := &duckWidget{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}
	isNotFound := func(t *testing.T, _ reconcilers.Result, err error) {
		if !apierrs.IsNotFound(err) {
			t.Errorf("returned %v, want that it is not found", err)
		}
	}
	nodeTests{
		"typed": {
			node:       gets(&corev1.ConfigMap{}),
			calls:      []string{"got gadget"},
			widgetCase: widgetCase{GivenObjects: []client.Object{given}, ExpectTracks: track},
		},
		"unstructured": {
			node:       gets(untyped),
			calls:      []string{"got gadget"},
			widgetCase: widgetCase{GivenObjects: []client.Object{given}, ExpectTracks: track},
		},
		"duck": {
			node:       gets(quacks),
			calls:      []string{"got gadget"},
			widgetCase: widgetCase{GivenObjects: []client.Object{given}, ExpectTracks: track},
		},
		// To be told of its creation is the point.
		"not there": {
			node:       gets(&corev1.ConfigMap{}),
			calls:      []string{},
			widgetCase: widgetCase{ExpectTracks: track, ShouldErr: true, Verify: isNotFound},
		},
		"fails": {node: gets(&corev1.ConfigMap{}), calls: []string{}, widgetCase: widgetCase{
			GivenObjects: []client.Object{given},
			WithReactors: []rtesting.ReactionFunc{rtesting.InduceFailure("get", "ConfigMap", rtesting.InduceFailureOpts{Error: errBoom})},
			ExpectTracks: track,
			ShouldErr:    true,
			Verify:       returns(errBoom),
		}},
	}.run(t)
}

func TestTrackAndList(t *testing.T) {
	given := givenConfigMap.With(func(c *corev1.ConfigMap) { c.OwnerReferences, c.Labels = nil, map[string]string{"a": "b"} })
	other := given.With(func(c *corev1.ConfigMap) { c.Namespace, c.UID, c.Labels = "elsewhere", "elsewhere-uid", nil })
	lists := func(list client.ObjectList, opts ...client.ListOption) func(*trace) widgetNode {
		return func(calls *trace) widgetNode {
			return &widgetSync{Sync: func(ctx context.Context, _ *resources.Widget) error {
				list := list.DeepCopyObject().(client.ObjectList)
				if err := reconcilers.RetrieveConfigOrDie(ctx).TrackAndList(ctx, list, opts...); err != nil {
					return err
				}
				calls.add("listed %d", meta.LenList(list))
				return nil
			}}
		}
	}
	track := func(namespace string, selector labels.Selector) []rtesting.TrackRequest {
		return []rtesting.TrackRequest{{
			Tracker:          widgetKey,
			TrackedReference: tracker.Reference{Kind: "ConfigMap", Namespace: namespace, Selector: selector},
		}}
	}
	all := []client.Object{given, other}
	labelled := labels.SelectorFromSet(labels.Set{"a": "b"})
	untyped := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMapList"}}
	nodeTests{
		"all": {
			node: lists(&corev1.ConfigMapList{}), calls: []string{"listed 2"},
			widgetCase: widgetCase{GivenObjects: all, ExpectTracks: track("", labels.Everything())},
		},
		"of a namespace": {
			node: lists(&corev1.ConfigMapList{}, client.InNamespace("elsewhere")), calls: []string{"listed 1"},
			widgetCase: widgetCase{GivenObjects: all, ExpectTracks: track("elsewhere", labels.Everything())},
		},
		"by label": {
			node: lists(&corev1.ConfigMapList{}, client.InNamespace("default"), client.MatchingLabels{"a": "b"}), calls: []string{"listed 1"},
			widgetCase: widgetCase{GivenObjects: all, ExpectTracks: track("default", labelled)},
		},
		"unstructured": {
			node: lists(untyped, client.MatchingLabels{"a": "b"}), calls: []string{"listed 1"},
			widgetCase: widgetCase{GivenObjects: all, ExpectTracks: track("", labelled)},
		},
		"fails": {
			node: lists(&corev1.ConfigMapList{}), calls: []string{},
			widgetCase: widgetCase{
				WithReactors: []rtesting.ReactionFunc{rtesting.InduceFailure("list", "ConfigMapList", rtesting.InduceFailureOpts{Error: errBoom})},
				ExpectTracks: track("", labels.Everything()),
				ShouldErr:    true,
				Verify:       returns(errBoom),
			},
		},
		"a list of no known kind": {
			node: lists(&unstructured.UnstructuredList{}), calls: []string{},
			widgetCase: widgetCase{ShouldErr: true},
		},
	}.run(t)
}

// Outside of a request nothing can be tracked, so nothing is read either: an author would wait for an event that never comes.
func TestL7TrackingOutsideOfARequest(t *testing.T) {
	config := expectWidget(givenConfigMap).Config()
	for name, ctx := range map[string]context.Context{
		"nothing":     t.Context(),
		"no type":     reconcilers.StashRequest(t.Context(), widgetRequest),
		"no request":  reconcilers.StashResourceType(t.Context(), &resources.Widget{}),
		"no resource": reconcilers.StashResourceType(reconcilers.StashRequest(t.Context(), reconcilers.Request{}), &resources.Widget{}),
	} {
		t.Run(name, func(t *testing.T) {
			child := &corev1.ConfigMap{}
			if err := config.TrackAndGet(ctx, widgetKey, child); err == nil || child.Name != "" {
				t.Errorf("got %q and the error %v, want nothing and an error", child.Name, err)
			}
			list := &corev1.ConfigMapList{}
			if err := config.TrackAndList(ctx, list); err == nil || len(list.Items) != 0 {
				t.Errorf("listed %d objects with the error %v, want none and an error", len(list.Items), err)
			}
		})
	}
}

// failingTracker refuses to track.
type failingTracker struct{ tracker.Tracker }

func (failingTracker) TrackReference(tracker.Reference, client.Object) error { return errBoom }

func (failingTracker) TrackObject(client.Object, client.Object) error { return errBoom }

// The errors of the tracker are returned: who is not tracked is never heard of.
func TestTrackErrorsAreReturned(t *testing.T) {
	config := expectWidget(givenConfigMap).Config()
	config.Tracker = failingTracker{config.Tracker}
	ctx := testContext(t, config)
	if err := config.TrackAndGet(ctx, widgetKey, &corev1.ConfigMap{}); !errors.Is(err, errBoom) {
		t.Errorf("TrackAndGet returned %v, want %v", err, errBoom)
	}
	if err := config.TrackAndList(ctx, &corev1.ConfigMapList{}); !errors.Is(err, errBoom) {
		t.Errorf("TrackAndList returned %v, want %v", err, errBoom)
	}
}

// Legal names of RBAC objects are no DNS names.
func TestTrackingOfRBACNames(t *testing.T) {
	config := expectWidget().Config()
	config.Tracker = tracker.New(widgetScheme, 0)
	role := &rbacv1.ClusterRole{}
	if err := config.TrackAndGet(testContext(t, config), types.NamespacedName{Name: "system:node"}, role); !apierrs.IsNotFound(err) {
		t.Fatalf("returned %v, want that it is not found", err)
	}
	role.Name = "system:node"
	observers, err := config.Tracker.GetObservers(role)
	if err != nil || len(observers) != 1 || observers[0] != widgetKey {
		t.Errorf("observed by %v with the error %v, want by %v", observers, err, widgetKey)
	}
}

// Readers leave out the namespace of a kind that has none, so what is tracked has none either: its events have none.
func TestTrackingOfClusterScopedKinds(t *testing.T) {
	for name, track := range map[string]func(context.Context, reconcilers.Config) error{
		"TrackAndGet": func(ctx context.Context, config reconcilers.Config) error {
			return config.TrackAndGet(ctx, types.NamespacedName{Namespace: "default", Name: "admin"}, &rbacv1.ClusterRole{})
		},
		"TrackAndList": func(ctx context.Context, config reconcilers.Config) error {
			return config.TrackAndList(ctx, &rbacv1.ClusterRoleList{}, client.InNamespace("default"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			expect := expectWidget()
			expect.UseFake = true
			config := expect.Config()
			config.Tracker = tracker.New(widgetScheme, 0)
			if err := track(testContext(t, config), config); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
			admin := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "admin"}}
			observers, err := config.Tracker.GetObservers(admin)
			if err != nil || len(observers) != 1 || observers[0] != widgetKey {
				t.Errorf("observed by %v with the error %v, want by %v", observers, err, widgetKey)
			}
		})
	}
}

func TestConfigMethodsKeepTheRest(t *testing.T) {
	config := expectWidget().Config()
	tests := map[string]struct {
		changed reconcilers.Config
		client  bool
		tracker bool
	}{
		"WithTracker":                       {changed: config.WithTracker(), tracker: true},
		"WithDangerousDuckClientOperations": {changed: config.WithDangerousDuckClientOperations(), client: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := test.changed
			if (c.Client != config.Client) != test.client {
				t.Errorf("the client is another: %t, want %t", c.Client != config.Client, test.client)
			}
			if (c.Tracker != config.Tracker) != test.tracker {
				t.Errorf("the tracker is another: %t, want %t", c.Tracker != config.Tracker, test.tracker)
			}
			if c.APIReader != config.APIReader || c.Recorder != config.Recorder || c.EventRecorder != config.EventRecorder ||
				c.Discovery != config.Discovery {
				t.Error("something else was lost, want the rest of the config as it was")
			}
		})
	}
}

func TestWithDangerousDuckClientOperations(t *testing.T) {
	quacks := &duckWidget{TypeMeta: metav1.TypeMeta{APIVersion: "test.espalier.dev/v1", Kind: "Widget"}}
	quacks.Namespace, quacks.Name = "default", "quacks"
	config := expectWidget().Config()
	if err := config.Create(t.Context(), quacks); err == nil {
		t.Error("a duck was created, want an error")
	}
	if err := config.WithDangerousDuckClientOperations().Create(t.Context(), quacks); err != nil {
		t.Errorf("a duck could not be created: %v", err)
	}
}

func TestRetrieveConfig(t *testing.T) {
	const (
		noConfig   = "config must exist on the context. Check that the context is from a ResourceReconciler or WithConfig"
		noOriginal = "resource config must exist on the context. Check that the context is from a ResourceReconciler"
	)
	_, err := reconcilers.RetrieveConfig(t.Context())
	checkError(t, "RetrieveConfig", err, noConfig)
	_, err = reconcilers.RetrieveOriginalConfig(t.Context())
	checkError(t, "RetrieveOriginalConfig", err, noOriginal)
	for text, retrieve := range map[string]func(context.Context) reconcilers.Config{
		noConfig: reconcilers.RetrieveConfigOrDie, noOriginal: reconcilers.RetrieveOriginalConfigOrDie,
	} {
		func() {
			defer func() {
				if err, ok := recover().(error); !ok || err.Error() != text {
					t.Errorf("panicked with %v, expected %q", err, text)
				}
			}()
			retrieve(t.Context())
		}()
	}
	current, original := expectWidget().Config(), expectWidget().Config()
	ctx := reconcilers.StashOriginalConfig(reconcilers.StashConfig(t.Context(), current), original)
	if reconcilers.RetrieveConfigOrDie(ctx) != current || reconcilers.RetrieveOriginalConfigOrDie(ctx) != original {
		t.Error("the configs were mixed up, want the current and the original one")
	}
}

func TestContextDefaults(t *testing.T) {
	ctx := t.Context()
	if r := reconcilers.RetrieveRequest(ctx); r != (reconcilers.Request{}) {
		t.Errorf("the request is %v, want none", r)
	}
	if o := reconcilers.RetrieveResourceType(ctx); o != nil {
		t.Errorf("the resource type is %v, want none", o)
	}
	if o := reconcilers.RetrieveOriginalResourceType(ctx); o != nil {
		t.Errorf("the original resource type is %v, want none", o)
	}
	if c := reconcilers.RetrieveAdditionalConfigs(ctx); c == nil || len(c) != 0 {
		t.Errorf("the additional configs are %v, want an empty map", c)
	}
	if r := reconcilers.RetrieveAdmissionRequest(ctx); r.UID != "" {
		t.Errorf("the admission request is %v, want an empty one", r)
	}
	if r := reconcilers.RetrieveAdmissionResponse(ctx); r != nil {
		t.Errorf("the admission response is %v, want none", r)
	}
	if r := reconcilers.RetrieveHTTPRequest(ctx); r != nil {
		t.Errorf("the HTTP request is %v, want none", r)
	}
	if p := reconcilers.RetrievePath(ctx); p != "" {
		t.Errorf("the path is %q, want none", p)
	}
}
