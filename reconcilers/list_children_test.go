package reconcilers_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	"github.com/espalier-dev/espalier/tracker"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ourPart narrows a set to the child with one identity.
func ourPart(id string) func(*configMapSet) {
	return func(node *configMapSet) {
		node.Name = id
		node.OurChild = func(_ *resources.Widget, child *corev1.ConfigMap) bool { return child.Labels[setLabel] == id }
	}
}

// unownedPart is ourPart for a child that the resource does not own.
func unownedPart(id string) func(*configMapSet) {
	return func(node *configMapSet) {
		ourPart(id)(node)
		node.SkipOwnerReference = true
		node.ListOptions = func(context.Context, *resources.Widget) []client.ListOption {
			return []client.ListOption{client.MatchingLabels{setLabel: id}}
		}
	}
}

// knownParts records the names of the children that a set knows, and leaves them as they are.
func knownParts(calls *trace) *configMapSet {
	node := reflectingSet(calls)
	node.Name = "known"
	node.DesiredChildren = func(ctx context.Context, _ *resources.Widget) ([]*corev1.ConfigMap, error) {
		known := reconcilers.RetrieveKnownChildren[*corev1.ConfigMap](ctx)
		var names []string
		for _, child := range known {
			names = append(names, strings.TrimPrefix(child.Namespace+"/", "default/")+child.Name)
		}
		calls.add("known %v", names)
		return nil, reconcilers.OnlyReconcileChildStatus
	}
	return node
}

// reconcileOnce has a root reconcile a tree once, and returns the calls.
func reconcileOnce(t *testing.T, expect *rtesting.ExpectConfig, calls *trace, tree widgetNode) []string {
	t.Helper()
	expect.WithReactors = append(expect.WithReactors, calls.observe, assignUID)
	root := &widgetRoot{SkipStatusUpdate: true, Reconciler: tree, Config: expect.Config()}
	if _, err := root.Reconcile(t.Context(), widgetRequest); err != nil {
		t.Fatal(err)
	}
	return calls.calls
}

func TestNodesShareTheListOfChildrenOfOneType(t *testing.T) {
	calls := &trace{reads: true}
	expect := expectWidget(steadyWidget, givenPart("a"), givenPart("b"))
	reconcileOnce(t, expect, calls, widgetSequence{
		changedSet([]string{"a"}, ourPart("a"))(&trace{}), changedSet([]string{"b"}, ourPart("b"))(&trace{}),
	})
	calls.compare(t, []string{"get Widget", "list ConfigMapList"})
}

func TestANodeSeesWhatTheNodesBeforeItWrote(t *testing.T) {
	calls := &trace{}
	expect := expectWidget(steadyWidget, givenPart("b"), givenPart("d"))
	first := changedSet([]string{"c", "b", "a"}, func(node *configMapSet) {
		node.ReflectChildrenStatusOnParent = func(context.Context, *resources.Widget, partResult) {}
	})
	reconcileOnce(t, expect, calls, widgetSequence{first(&trace{}), knownParts(calls)})
	calls.compare(t, []string{
		"create ConfigMap", "create ConfigMap", "delete ConfigMap",
		"known [gadget-a gadget-b gadget-c]", "reflect [a: gadget-a, b: gadget-b, c: gadget-c]",
	})
}

// The children of one node are not taken for the children of another.
func TestListsOfChildrenAreKeptApart(t *testing.T) {
	type untypedNode = reconcilers.ChildReconciler[
		*resources.Widget, *unstructured.Unstructured, *unstructured.UnstructuredList,
	]
	untyped := func(kind string) widgetNode {
		desired := &unstructured.Unstructured{}
		desired.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
		return &untypedNode{
			ChildType: desired,
			DesiredChild: func(context.Context, *resources.Widget) (*unstructured.Unstructured, error) {
				child := desired.DeepCopy()
				child.SetNamespace("default")
				child.SetName("gadget-a")
				return child, nil
			},
			MergeBeforeUpdate: func(_, _ *unstructured.Unstructured) {},
			ReflectChildStatusOnParent: func(
				_ context.Context, _ *resources.Widget, child *unstructured.Unstructured, _ error,
			) {
				if child.GetKind() != kind {
					t.Errorf("the child is a %s, want a %s", child.GetKind(), kind)
				}
			},
		}
	}
	secrets := &reconcilers.ChildReconciler[*resources.Widget, *corev1.Secret, *corev1.SecretList]{
		DesiredChild: func(context.Context, *resources.Widget) (*corev1.Secret, error) {
			return &corev1.Secret{ObjectMeta: part("a").ObjectMeta}, nil
		},
		MergeBeforeUpdate:          func(_, _ *corev1.Secret) {},
		ReflectChildStatusOnParent: func(context.Context, *resources.Widget, *corev1.Secret, error) {},
	}
	looped := changedSet(nil, unownedPart(""), func(node *configMapSet) {
		item := func(ctx context.Context) string { return reconcilers.CursorStasher[string]().RetrieveOrDie(ctx).Item }
		node.OurChild = func(*resources.Widget, *corev1.ConfigMap) bool { return true }
		node.ListOptions = func(ctx context.Context, _ *resources.Widget) []client.ListOption {
			return []client.ListOption{client.MatchingLabels{setLabel: item(ctx)}}
		}
		node.DesiredChildren = func(ctx context.Context, _ *resources.Widget) ([]*corev1.ConfigMap, error) {
			return []*corev1.ConfigMap{part(item(ctx))}, nil
		}
	})(&trace{})
	owned := []client.Object{steadyWidget, givenPart("a"), &corev1.Secret{ObjectMeta: givenPart("a").ObjectMeta}}
	unowned := []client.Object{steadyWidget, givenPart("a", ownerless), givenPart("b", ownerless)}
	for name, test := range map[string]struct {
		given []client.Object
		tree  widgetNode
	}{
		"types":              {owned, widgetSequence{changedSet([]string{"a"})(&trace{}), secrets}},
		"unstructured kinds": {owned, widgetSequence{untyped("ConfigMap"), untyped("Secret")}},
		"list options": {unowned, widgetSequence{
			changedSet([]string{"a"}, unownedPart("a"))(&trace{}), changedSet(
				[]string{"b"}, unownedPart("b"),
			)(&trace{}),
		}},
		"list options in a loop": {unowned, &reconcilers.ForEach[*resources.Widget, string]{
			Items:      func(context.Context, *resources.Widget) ([]string, error) { return []string{"a", "b"}, nil },
			Reconciler: looped,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if calls := reconcileOnce(t, expectWidget(test.given...), &trace{}, test.tree); len(calls) > 0 {
				t.Errorf("called %v, want no calls", calls)
			}
		})
	}
	t.Run("clusters", func(t *testing.T) {
		away := &trace{}
		expect := expectWidget()
		expect.WithReactors = []rtesting.ReactionFunc{away.observe, assignUID}
		config := expect.Config()
		elsewhere := &reconcilers.WithConfig[*resources.Widget]{
			Config:     func(context.Context, reconcilers.Config) (reconcilers.Config, error) { return config, nil },
			Reconciler: changedSet([]string{"a"})(&trace{}),
		}
		tree := widgetSequence{changedSet([]string{"a"})(&trace{}), elsewhere}
		if calls := reconcileOnce(t, expectWidget(owned...), &trace{}, tree); len(calls) > 0 {
			t.Errorf("called %v, want no calls", calls)
		}
		away.compare(t, []string{"create ConfigMap"})
	})
}

// failingReader cannot read anything.
type failingReader struct{ err error }

func (r failingReader) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return r.err
}

func (r failingReader) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return r.err
}

func TestKnownChildrenThatTheCacheDoesNotShow(t *testing.T) {
	calls := &trace{}
	cluster := newStaleCluster(t, func(*trace) widgetNode {
		first := changedSet([]string{"a", "b"}, func(node *configMapSet) { node.Name = "first" })(&trace{})
		return widgetSequence{knownParts(calls), first}
	})
	if err := cluster.lagging.Client.Create(t.Context(), part("b")); err != nil {
		t.Fatal(err)
	}
	cluster.catchUp(t)
	cluster.reconcile("first", "create ConfigMap")
	cluster.reconcile("the cache lags")
	calls.compare(t, []string{
		"known [gadget-b]", "reflect [b: gadget-b]", "known [gadget-a gadget-b]", "reflect [a: gadget-a, b: gadget-b]",
	})
	cluster.root.Config.APIReader = failingReader{errBoom}
	cluster.calls.calls = nil
	if _, err := cluster.root.Reconcile(t.Context(), widgetRequest); !errors.Is(err, errBoom) {
		t.Errorf("returned %v, want %v", err, errBoom)
	}
	cluster.calls.compare(t, []string{})
}

// The API server may not understand list options that the cache understands.
func TestTheCacheAloneUnderstandsTheListOptions(t *testing.T) {
	beingDeleted := widget.With(terminating(ours))
	nodeTests{"": {
		node: withConfig(func(config *reconcilers.Config) {
			config.APIReader = failingReader{apierrs.NewBadRequest("field label not supported")}
		})(changedSet(nil, guardedSet)),
		calls: []string{"reflect []", "patch Widget"},
		widgetCase: widgetCase{
			Resource:       beingDeleted.Object(),
			ExpectResource: beingDeleted.With(patchedBy()).Object(),
			ExpectPatches: []rtesting.PatchRef{
				finalizersPatch(`{"metadata":{"finalizers":null,"resourceVersion":"999"}}`),
			},
			ExpectEvents: []rtesting.Event{normal("FinalizerPatched", `Patched finalizer "`+ours+`"`)},
		},
	}}.run(t)
}

// The author may change the child that is reflected, which must not change what is known of it.
func TestAWrittenChildIsKeptAsItWasWritten(t *testing.T) {
	color := "blue"
	var colors []string
	cluster := newStaleCluster(t, changedChild(desires(func(child *corev1.ConfigMap) (*corev1.ConfigMap, error) {
		child.Data["color"] = color
		return child, nil
	}), func(node *configMapNode) {
		node.ReflectChildStatusOnParent = func(
			_ context.Context, _ *resources.Widget, child *corev1.ConfigMap, _ error,
		) {
			colors = append(colors, child.Data["color"])
			child.Data["color"] = "red"
		}
	}))
	cluster.reconcile("first", "create ConfigMap")
	cluster.catchUp(t)
	color = "green"
	cluster.reconcile("desired otherwise", "update ConfigMap")
	cluster.reconcile("the cache lags")
	if expected := []string{"blue", "green", "green"}; !slices.Equal(colors, expected) {
		t.Errorf("reflected %v, expected %v", colors, expected)
	}
}

// A child that was created and could not be tracked is there all the same.
func TestAChildThatCannotBeTrackedIsCreatedOnce(t *testing.T) {
	cluster := newStaleCluster(t, shortForm(withoutOwner))
	cluster.root.Config.Tracker = failingTracker{cluster.root.Config.Tracker}
	for range 2 {
		if _, err := cluster.root.Reconcile(t.Context(), widgetRequest); !errors.Is(err, errBoom) {
			t.Errorf("returned %v, want %v", err, errBoom)
		}
	}
	if n := len(cluster.children()); n != 1 {
		t.Errorf("there are %d children, want 1", n)
	}
}

// The objects of the cache are read without a copy. Nodes that share their maps with the status must not change them.
func TestChildrenOfTheCacheStayAsTheyAre(t *testing.T) {
	cluster := newMemoryClient()
	cluster.put(steadyWidget.Object())
	cluster.put(givenConfigMap.Object())
	root := &widgetRoot{
		SkipStatusUpdate: true,
		Reconciler: changedChild(failsToDesire(reconcilers.OnlyReconcileChildStatus), func(node *configMapNode) {
			node.ReflectChildStatusOnParent = func(
				_ context.Context, w *resources.Widget, child *corev1.ConfigMap, _ error,
			) {
				w.Status.Fields = child.Data
				w.Status.AddField("color", "red")
			}
		})(&trace{}),
		Config: reconcilers.Config{Client: cluster, APIReader: cluster, Tracker: tracker.New(widgetScheme, 0)},
	}
	if _, err := root.Reconcile(t.Context(), widgetRequest); err != nil {
		t.Fatal(err)
	}
	for _, obj := range cluster.objects[configMapType] {
		if color := obj.(*corev1.ConfigMap).Data["color"]; color != "blue" {
			t.Errorf("the object of the cache is %s, want it to stay blue", color)
		}
	}
}

// listing records the lists that it is asked for, and refuses some of them.
type listing struct {
	client.Client
	indexed []bool
	refuse  func(indexed bool) error
}

func (l *listing) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var options client.ListOptions
	options.ApplyOptions(opts)
	indexed := options.FieldSelector != nil
	l.indexed = append(l.indexed, indexed)
	if err := l.refuse(indexed); err != nil {
		return err
	}
	options.FieldSelector = nil
	return l.Client.List(ctx, list, &options)
}

func TestChildrenAreFoundByTheIndexIfThereIsOne(t *testing.T) {
	other := errors.New("other")
	for name, test := range map[string]struct {
		refuse  func(indexed bool) error
		indexed []bool
		err     error
	}{
		"the client reads from the cache": {func(bool) error { return nil }, []bool{true, true}, nil},
		"the client reads past the cache": {
			func(indexed bool) error {
				if indexed {
					return errBoom
				}
				return nil
			}, []bool{true, false, false}, nil,
		},
		"the client cannot read": {
			func(indexed bool) error {
				if indexed {
					return errBoom
				}
				return other
			}, []bool{true, false, true, false}, errBoom,
		},
	} {
		t.Run(name, func(t *testing.T) {
			config := expectWidget(steadyWidget, givenConfigMap).Config()
			client := &listing{Client: config.Client, refuse: test.refuse}
			config.Client = client
			config = config.WithOwnerIndex(newMemoryClient())
			config.RegisterOwnerIndex(&corev1.ConfigMap{})
			root := &widgetRoot{SkipStatusUpdate: true, Config: config, Reconciler: reflectingChild(&trace{})}
			for range 2 {
				if _, err := root.Reconcile(t.Context(), widgetRequest); !errors.Is(err, test.err) {
					t.Errorf("returned %v, want %v", err, test.err)
				}
			}
			if !slices.Equal(client.indexed, test.indexed) {
				t.Errorf("lists by index: %v, expected %v", client.indexed, test.indexed)
			}
		})
	}
}

// scoped is a client that knows whether a type is namespaced.
type scoped struct {
	client.Client
	namespaced bool
}

func (s scoped) IsObjectNamespaced(runtime.Object) (bool, error) { return s.namespaced, nil }

func TestAChildNeedsTheNamespaceOfItsType(t *testing.T) {
	in := func(namespace string, namespaced bool) func(*trace) widgetNode {
		return withConfig(func(config *reconcilers.Config) {
			config.Client = scoped{config.Client, namespaced}
		})(changedChild(withoutOwner, desires(func(child *corev1.ConfigMap) (*corev1.ConfigMap, error) {
			child.Namespace = namespace
			return child, nil
		})))
	}
	unnamespaced := errors.New("an empty namespace may not be set during creation")
	created := func(namespace string) widgetCase {
		return widgetCase{
			ExpectResource: reflecting("gadget"),
			ExpectCreates: []client.Object{configMap.With(labelled, func(c *corev1.ConfigMap) {
				c.Namespace = namespace
			})},
			ExpectEvents: []rtesting.Event{normal("Created", `Created ConfigMap "gadget"`)},
		}
	}
	refused := created("")
	refused.ExpectResource, refused.ExpectEvents = nil, failedTo("create", "gadget", unnamespaced)
	refused.ExpectedErr = unnamespaced
	nodeTests{
		"a namespaced type": {node: in("default", true), widgetCase: created("default")},
		// The type is none, so the server refuses it: the node has asked.
		"a cluster-scoped type": {node: in("", false), widgetCase: refused},
		"a namespaced type without it": {
			node:  in("", true),
			calls: []string{"desired child"},
			widgetCase: widgetCase{ExpectedErr: errors.New(
				`ChildReconciler "ConfigMapChildReconciler" is unable to create ConfigMap gadget: ` +
					"the type is namespaced, and no namespace is desired",
			)},
		},
	}.run(t)
}
