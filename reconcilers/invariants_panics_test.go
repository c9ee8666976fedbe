package reconcilers_test

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/duck"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"
	rtesting "github.com/espalier-dev/espalier/testing"
	"github.com/espalier-dev/espalier/validation"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// neverPanics runs what may return an error, but not panic.
func neverPanics(t *testing.T, what string, run func() error) error {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%s panicked with %v, want it never to\n%s", what, p, debug.Stack())
		}
	}()
	return run()
}

// verbs are what every node has.
type verbs interface {
	validation.Validator
	reconcilers.Describer
}

// What is not configured as it must be is an error that names the node: in validation, in set-up, and, for who skips both, in
// each request.
func TestL7MisconfiguredNodes(t *testing.T) {
	type anyRoot = reconcilers.ResourceReconciler[client.Object]
	type anyChild = reconcilers.ChildReconciler[*resources.Widget, client.Object, client.ObjectList]
	type untypedChild = reconcilers.ChildReconciler[*resources.Widget, *unstructured.Unstructured, *unstructured.UnstructuredList]
	type mixedChild = reconcilers.ChildReconciler[*resources.Widget, *corev1.ConfigMap, *corev1.SecretList]
	valid := reflectingChild(&trace{})
	tests := map[string]struct {
		node  verbs
		names string
	}{
		"sync":        {node: &widgetSync{}, names: `SyncReconciler "SyncReconciler"`},
		"child":       {node: &configMapNode{}, names: `ChildReconciler "ConfigMapChildReconciler"`},
		"child, half": {node: &configMapNode{Name: "mine", DesiredChild: valid.DesiredChild}, names: `ChildReconciler "mine"`},
		"child, no manager": {
			node:  &configMapNode{DesiredChild: valid.DesiredChild, ReflectChildStatusOnParent: valid.ReflectChildStatusOnParent},
			names: "ConfigMapChildReconciler",
		},
		"if": {node: &widgetIfThen{}, names: `IfThen "IfThen"`},
		"if without then": {
			node:  &widgetIfThen{If: func(context.Context, *resources.Widget) bool { return true }},
			names: `IfThen "IfThen"`,
		},
		"if with a nil then": {
			node:  &widgetIfThen{If: func(context.Context, *resources.Widget) bool { return true }, Then: (*widgetSync)(nil)},
			names: `IfThen "IfThen"`,
		},
		"finalizer":                {node: &widgetFinalizer{}, names: `WithFinalizer "WithFinalizer"`},
		"finalizer without a node": {node: &widgetFinalizer{Finalizer: ours}, names: `WithFinalizer "WithFinalizer"`},
		"finalizer with a nil node": {
			node:  &widgetFinalizer{Finalizer: ours, Reconciler: (*widgetSync)(nil)},
			names: `WithFinalizer "WithFinalizer"`,
		},
		"sequence of nil":                   {node: widgetSequence{nil}, names: "Sequence[0]"},
		"sequence of a nil pointer":         {node: widgetSequence{widgetSequence{}, (*widgetSync)(nil)}, names: "Sequence[1]"},
		"sequence of a nil slice's pointer": {node: widgetSequence{(*widgetSequence)(nil)}, names: "Sequence[0]"},
		"child of an interface": {
			node: &anyChild{
				Name:                       "mine",
				DesiredChild:               func(context.Context, *resources.Widget) (client.Object, error) { return nil, nil },
				ReflectChildStatusOnParent: func(context.Context, *resources.Widget, client.Object, error) {},
				MergeBeforeUpdate:          func(client.Object, client.Object) {},
			},
			names: `ChildReconciler "mine" must define ChildType`,
		},
		"child without a kind": {
			node: &untypedChild{
				Name:                       "mine",
				DesiredChild:               func(context.Context, *resources.Widget) (*unstructured.Unstructured, error) { return nil, nil },
				ReflectChildStatusOnParent: func(context.Context, *resources.Widget, *unstructured.Unstructured, error) {},
				MergeBeforeUpdate:          func(*unstructured.Unstructured, *unstructured.Unstructured) {},
			},
			names: `ChildReconciler "mine" must define ChildType`,
		},
		"child with another's list": {
			node: &mixedChild{
				Name:                       "mine",
				DesiredChild:               valid.DesiredChild,
				ReflectChildStatusOnParent: valid.ReflectChildStatusOnParent,
				ChildObjectManager:         valid.ChildObjectManager,
			},
			names: `ChildReconciler "mine" must have a ChildListType of its ChildType`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			ctx := testContext(t, expectWidget().Config())
			named := func(verb string, err error) {
				t.Helper()
				if err == nil || !strings.Contains(err.Error(), test.names) {
					t.Errorf("%s returned %v, want an error that names %s", verb, err, test.names)
				}
			}
			named("Validate", neverPanics(t, "Validate", func() error { return test.node.Validate(validation.WithRecursive(ctx)) }))
			node := test.node.(widgetNode)
			named("SetupWithManager", neverPanics(t, "SetupWithManager", func() error { return node.SetupWithManager(ctx, nil, nil) }))
			for _, resource := range []*resources.Widget{widget.Object(), widget.With(terminating(ours)).Object()} {
				err := neverPanics(t, "Reconcile", func() error {
					_, err := node.Reconcile(ctx, resource)
					return err
				})
				named("Reconcile", err)
			}
			if test.node.Describe().String() == "" {
				t.Error("the description is empty, want the node in it")
			}
		})
	}

	roots := map[string]struct {
		root  reconcile.Reconciler
		names string
	}{
		"nothing": {root: &widgetRoot{}, names: `ResourceReconciler "WidgetResourceReconciler" must define Reconciler`},
		"nil node": {
			root:  &widgetRoot{Reconciler: (*widgetSync)(nil)},
			names: `ResourceReconciler "WidgetResourceReconciler" must define Reconciler`,
		},
		"no config": {root: &widgetRoot{Reconciler: widgetSequence{}}, names: `ResourceReconciler "WidgetResourceReconciler"`},
		"an interface": {
			root:  &anyRoot{Name: "mine", Reconciler: reconcilers.Sequence[client.Object]{}, Config: expectWidget().Config()},
			names: `ResourceReconciler "mine" must define Type`,
		},
		"no kind": {
			root: &reconcilers.ResourceReconciler[*unstructured.Unstructured]{
				Name: "mine", Reconciler: reconcilers.Sequence[*unstructured.Unstructured]{}, Config: expectWidget().Config(),
			},
			names: `ResourceReconciler "mine" must define Type`,
		},
	}
	for name, test := range roots {
		t.Run("root: "+name, func(t *testing.T) {
			err := neverPanics(t, "Reconcile", func() error {
				_, err := test.root.Reconcile(t.Context(), widgetRequest)
				return err
			})
			if err == nil || !strings.Contains(err.Error(), test.names) {
				t.Errorf("Reconcile returned %v, want an error that says %s", err, test.names)
			}
		})
	}
}

// A node that is called by hand, without what a root puts on the context.
func TestL7NodesOutsideOfATree(t *testing.T) {
	for name, node := range map[string]widgetNode{
		"child":         changedChild()(&trace{}),
		"guarded child": guardedShortForm()(&trace{}),
		"finalizer":     &widgetFinalizer{Finalizer: ours, Reconciler: widgetSequence{}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, resource := range []*resources.Widget{widget.Object(), widget.With(terminating(ours)).Object()} {
				err := neverPanics(t, "Reconcile", func() error {
					_, err := node.Reconcile(t.Context(), resource)
					return err
				})
				if err == nil || !strings.Contains(err.Error(), "config must exist on the context") {
					t.Errorf("the error is %v, want one of the config that must exist on the context", err)
				}
			}
		})
	}
	err := neverPanics(t, "Manage", func() error {
		_, err := (&configMaps{MergeBeforeUpdate: mergeConfigMap}).Manage(t.Context(), widget.Object(), nil, configMap.Object())
		return err
	})
	if err == nil {
		t.Error("a manager without a config has no error, want one")
	}
}

// A context without a stash comes from a caller that runs a node without a root.
func TestL7NodesWithoutAStash(t *testing.T) {
	const want = "context not configured for stashing"
	_ = neverPanics(t, "Unmet", func() error {
		unmet := reconcilers.Unmet(t.Context(), &reconcilers.Order{Needs: []stash.Key{"example.com/a"}})
		if !strings.HasPrefix(unmet, `waiting for data "example.com/a", `) || !strings.Contains(unmet, want) {
			t.Errorf("what is unmet is %s, want the key and %q", unmet, want)
		}
		return nil
	})
	loop := func(key func(string) string) widgetNode {
		return &reconcilers.ForEach[*resources.Widget, string]{
			Name: "loop", Key: key, Reconciler: calledNothing,
			Items: func(context.Context, *resources.Widget) ([]string, error) { return []string{"a"}, nil },
		}
	}
	for name, node := range map[string]widgetNode{
		"loop": loop(nil), "loop with keys": loop(func(item string) string { return item }),
	} {
		err := neverPanics(t, name, func() error {
			_, err := node.Reconcile(t.Context(), widget.Object())
			return err
		})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `ForEach "loop"`) {
			t.Errorf("the error of the %s is %v, want one with the name of the loop and %q", name, err, want)
		}
	}
}

// incomparable is an error value that == panics on.
type incomparable struct{ _ []string }

func (e incomparable) Error() string { return "incomparable" }

// incomparableClient is a client that cannot be the key of a map, as controller-runtime's interceptors are.
type incomparableClient struct {
	client.Client
	_ []func()
}

func TestL7WhatCannotBeCompared(t *testing.T) {
	t.Run("error", func(t *testing.T) {
		root := &widgetRoot{
			Reconciler: widgetSequence{&widgetSync{Sync: func(context.Context, *resources.Widget) error { return incomparable{} }}},
			Config:     expectWidget(steadyWidget).Config(),
		}
		err := neverPanics(t, "Reconcile", func() error {
			_, err := root.Reconcile(t.Context(), widgetRequest)
			return err
		})
		if !errors.As(err, &incomparable{}) {
			t.Errorf("the error is %v, want an %T", err, incomparable{})
		}
	})
	t.Run("client", func(t *testing.T) {
		expect := expectWidget(steadyWidget)
		expect.WithReactors = []rtesting.ReactionFunc{assignUID}
		config := expect.Config()
		config.Client = incomparableClient{Client: config.Client}
		config.APIReader = config.Client
		root := &widgetRoot{
			Reconciler: widgetSequence{changedChild()(&trace{}), guardedShortForm(desires(desiresNothing))(&trace{})},
			Config:     config,
		}
		for range 3 {
			err := neverPanics(t, "Reconcile", func() error {
				_, err := root.Reconcile(t.Context(), widgetRequest)
				return err
			})
			if err != nil {
				t.Errorf("returned %v", err)
			}
		}
		_ = neverPanics(t, "IsEmpty", func() error { config.IsEmpty(); return nil })
	})
}

// malformed are objects as they may come from an API server that knows no schema, or from a cache that another package made.
func malformed() map[string]string {
	return map[string]string{
		"status is a scalar":     `{"status":"weird"}`,
		"status is a number":     `{"status":1}`,
		"status is a list":       `{"status":["weird"]}`,
		"status is null":         `{"status":null}`,
		"conditions are scalar":  `{"status":{"conditions":"weird"}}`,
		"conditions are scalars": `{"status":{"conditions":["weird",1,null]}}`,
		"conditions are maps":    `{"status":{"conditions":{"Ready":true}}}`,
		"a condition is odd":     `{"status":{"conditions":[{"type":1,"status":[],"lastTransitionTime":{}}]}}`,
		"generation is a string": `{"status":{"observedGeneration":"weird"}}`,
		"spec is a list":         `{"spec":[1,2,3]}`,
		"finalizers are scalar":  `{"metadata":{"finalizers":"weird"}}`,
		"finalizers are numbers": `{"metadata":{"finalizers":[1,2]}}`,
		"owners are scalar":      `{"metadata":{"ownerReferences":"weird"}}`,
		"owners are scalars":     `{"metadata":{"ownerReferences":[1,null,"weird"]}}`,
		"an owner is odd":        `{"metadata":{"ownerReferences":[{"uid":1,"controller":"yes"}]}}`,
		"labels are a list":      `{"metadata":{"labels":["weird"]}}`,
		"labels are numbers":     `{"metadata":{"labels":{"a":1}}}`,
		"deleted at no time":     `{"metadata":{"deletionTimestamp":"weird"}}`,
		"created at no time":     `{"metadata":{"creationTimestamp":17}}`,
		"metadata is a scalar":   `{"metadata":"weird"}`,
		"metadata is null":       `{"metadata":null}`,
		"nothing":                `{}`,
	}
}

// reconcileMalformed reconciles an unstructured resource that looks like this, with every sort of node. Its child looks the
// same.
func reconcileMalformed(t *testing.T, text string) {
	t.Helper()
	content := map[string]any{}
	// Numbers as the API machinery has them.
	if err := utiljson.Unmarshal([]byte(text), &content); err != nil {
		return
	}
	looking := func(kind schema.GroupVersionKind) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(content)}
		u.SetGroupVersionKind(kind)
		return u
	}
	kind, childKind := resources.GroupVersion.WithKind("Widget"), corev1.SchemeGroupVersion.WithKind("ConfigMap")
	sample := func(kind schema.GroupVersionKind) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(kind)
		return u
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))

	config := expectWidget().Config()
	config.Client = malformedClient{Client: config.Client, resource: looking(kind), child: looking(childKind)}
	config.APIReader = config.Client
	type thing = *unstructured.Unstructured
	root := &reconcilers.ResourceReconciler[thing]{
		Type: sample(kind),
		Reconciler: reconcilers.Sequence[thing]{
			&reconcilers.SyncReconciler[thing]{Sync: func(_ context.Context, u thing) error {
				return unstructured.SetNestedField(u.Object, "ran", "status", "sync")
			}},
			&reconcilers.WithFinalizer[thing]{Finalizer: ours, Reconciler: reconcilers.Sequence[thing]{}},
			&reconcilers.ChildReconciler[thing, thing, *unstructured.UnstructuredList]{
				ChildType:     sample(childKind),
				ChildListType: list,
				DesiredChild: func(_ context.Context, u thing) (thing, error) {
					child := sample(childKind)
					child.SetNamespace(u.GetNamespace())
					child.SetName(u.GetName())
					return child, nil
				},
				MergeBeforeUpdate:          func(current, desired thing) { current.SetLabels(desired.GetLabels()) },
				ReflectChildStatusOnParent: func(context.Context, thing, thing, error) {},
			},
		},
		SyncStatusDuringFinalization: true,
		Config:                       config,
	}
	ctx := logr.NewContext(t.Context(), (&listener{}).logger())
	for range 2 {
		err := neverPanics(t, text, func() error {
			_, err := root.Reconcile(ctx, widgetRequest)
			return err
		})
		if err != nil && err.Error() == "" {
			t.Errorf("%s: the error says nothing, want a text", text)
		}
	}
}

// malformedClient hands out what it is given, and takes every write.
type malformedClient struct {
	client.Client
	resource, child *unstructured.Unstructured
}

func (c malformedClient) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		u.Object = c.resource.DeepCopy().Object
	}
	return nil
}

func (c malformedClient) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if l, ok := list.(*unstructured.UnstructuredList); ok {
		l.Items = []unstructured.Unstructured{*c.child.DeepCopy(), {}}
	}
	return nil
}

func (malformedClient) Create(context.Context, client.Object, ...client.CreateOption) error {
	return nil
}

func (malformedClient) Update(context.Context, client.Object, ...client.UpdateOption) error {
	return nil
}

func (malformedClient) Delete(context.Context, client.Object, ...client.DeleteOption) error {
	return nil
}

func (malformedClient) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	_, err := patch.Data(obj)
	return err
}

func (c malformedClient) Status() client.SubResourceWriter { return malformedStatus{} }

type malformedStatus struct{ client.SubResourceWriter }

func (malformedStatus) Update(context.Context, client.Object, ...client.SubResourceUpdateOption) error {
	return nil
}

func (malformedStatus) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return nil
}

func TestL7MalformedObjects(t *testing.T) {
	for name, text := range malformed() {
		t.Run(name, func(t *testing.T) { reconcileMalformed(t, text) })
	}
}

func FuzzL7MalformedObjects(f *testing.F) {
	for _, text := range malformed() {
		f.Add(text)
	}
	f.Add(`{"metadata":{"namespace":"default","name":"gadget","uid":"u","deletionTimestamp":"2024-01-01T00:00:00Z","finalizers":["a"]},` +
		`"status":{"a":[{"b":1.5}]}}`)
	f.Fuzz(func(t *testing.T, text string) { reconcileMalformed(t, text) })
}

// What authors write into unstructured objects is not always what the API machinery knows: it panics on an int.
func TestL7ContentOfOtherTypes(t *testing.T) {
	type thing = *unstructured.Unstructured
	content := func(kind string) thing {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": resources.GroupVersion.String(),
			"kind":       kind,
			"metadata": map[string]any{
				"namespace": widgetKey.Namespace, "name": widgetKey.Name, "labels": map[string]string{"a": "b"},
			},
			"spec": map[string]any{
				"replicas": 3, "ratio": float32(0.5), "names": []string{"a", "b"}, "list": []any{int32(1), uint(2)},
			},
		}}
	}
	sample := func() thing {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(resources.GroupVersion.WithKind("Part"))
		return u
	}
	run := func(t *testing.T, value any) ([]string, error) {
		t.Helper()
		calls := &trace{}
		resource := &unstructured.Unstructured{}
		if err := duck.Convert(steadyWidget.Object(), resource); err != nil {
			t.Fatal(err)
		}
		resource.SetGroupVersionKind(resources.GroupVersion.WithKind("Widget"))
		expect := expectWidget(resource)
		expect.WithReactors = []rtesting.ReactionFunc{calls.observe, assignUID}
		root := &reconcilers.ResourceReconciler[thing]{
			Type: &unstructured.Unstructured{Object: map[string]any{"apiVersion": resources.GroupVersion.String(), "kind": "Widget"}},
			Reconciler: reconcilers.Sequence[thing]{
				&reconcilers.SyncReconciler[thing]{Sync: func(_ context.Context, u thing) error {
					u.Object["status"] = map[string]any{"fields": value, "observedGeneration": 3}
					return nil
				}},
				&reconcilers.WithFinalizer[thing]{Finalizer: ours, Reconciler: reconcilers.Sequence[thing]{}},
				&reconcilers.ChildReconciler[thing, thing, *unstructured.UnstructuredList]{
					ChildType: sample(),
					DesiredChild: func(context.Context, thing) (thing, error) {
						child := content("Part")
						child.Object["data"] = value
						return child, nil
					},
					MergeBeforeUpdate: func(current, desired thing) {
						current.Object["spec"] = content("Part").Object["spec"]
						current.Object["data"] = desired.Object["data"]
					},
					ReflectChildStatusOnParent: func(context.Context, thing, thing, error) {},
				},
			},
			Config: expect.Config(),
		}
		var err error
		for range 3 {
			err = neverPanics(t, "Reconcile", func() error {
				_, err := root.Reconcile(t.Context(), widgetRequest)
				return err
			})
		}
		return calls.calls, err
	}
	t.Run("that can be sent", func(t *testing.T) {
		calls, err := run(t, map[string]string{"a": "b"})
		if err != nil {
			t.Fatal(err)
		}
		// And nothing is found to differ from what was sent.
		if expected := []string{"patch Widget", "create Part", "update Widget/status"}; !slices.Equal(calls, expected) {
			t.Errorf("called %v, expected %v", calls, expected)
		}
	})
	t.Run("that cannot be sent", func(t *testing.T) {
		calls, err := run(t, make(chan int))
		if err == nil || !strings.Contains(err.Error(), "Widget default/gadget cannot be sent") {
			t.Errorf("the error is %v, want that Widget default/gadget cannot be sent", err)
		}
		if len(calls) != 0 {
			t.Errorf("the calls are %v, want none", calls)
		}
	})
}
