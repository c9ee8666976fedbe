package reconcilers_test

import (
	"context"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// namedChild is a child of the given name in the tree, with changes.
func namedChild(name string, changes ...func(*configMapNode)) *configMapNode {
	node := changedChild(changes...)(&trace{}).(*configMapNode)
	node.Name = name
	return node
}

func labelsChildren(node *configMapNode) { node.LabelChildren = true }

func saysOurs(node *configMapNode) {
	node.OurChild = func(*resources.Widget, *corev1.ConfigMap) bool { return true }
}

// setUpErrors are trees by name, each with the error of the set-up of its root. It is empty for none.
type setUpErrors map[string]struct {
	tree widgetNode
	err  string
}

func (trees setUpErrors) run(t *testing.T) {
	for name, test := range trees {
		t.Run(name, func(t *testing.T) {
			row := rtesting.SetupTestCase{ShouldErr: test.err != ""}
			row.Verify = func(t *testing.T, err error) {
				if err != nil && err.Error() != test.err {
					t.Errorf("returned %q, want %q", err, test.err)
				}
			}
			if test.err == "" {
				row.ExpectWatches = watchedBy(test.tree)
			}
			row.Run(t, widgetScheme, func(_ *testing.T, _ *rtesting.SetupTestCase, c reconcilers.Config) rtesting.Setup {
				return rtesting.SubReconcilerSetup(c, test.tree)
			})
		})
	}
}

// watchedBy returns an object of each type that a root with the tree watches.
func watchedBy(tree widgetNode) []client.Object {
	watched := []client.Object{&resources.Widget{}}
	seen := map[string]bool{}
	reconcilers.Describe(tree).Walk(func(_ string, d reconcilers.Description) {
		owns := d.Kind == "ChildReconciler" || d.Kind == "ChildSetReconciler"
		if owns && !seen[d.Detail] {
			seen[d.Detail] = true
			watched = append(watched, d.Uses[0].Object)
		}
	})
	return watched
}

func TestSetupRefusesChildrenThatCannotBeToldApart(t *testing.T) {
	const root = `ResourceReconciler "WidgetResourceReconciler" `
	always := func(context.Context, *resources.Widget) bool { return true }
	branches := func(then, otherwise widgetNode) *widgetIfThen {
		return &widgetIfThen{If: always, Then: then, Else: otherwise}
	}
	replaced := func(name string, nested widgetNode) widgetNode {
		return &reconcilers.WithConfig[*resources.Widget]{
			Name:       name,
			Config:     func(_ context.Context, c reconcilers.Config) (reconcilers.Config, error) { return c, nil },
			Reconciler: nested,
		}
	}
	secrets := &reconcilers.ChildReconciler[*resources.Widget, *corev1.Secret, *corev1.SecretList]{
		DesiredChild:               func(context.Context, *resources.Widget) (*corev1.Secret, error) { return nil, nil },
		MergeBeforeUpdate:          func(_, _ *corev1.Secret) {},
		ReflectChildStatusOnParent: func(context.Context, *resources.Widget, *corev1.Secret, error) {},
	}
	untyped := &unstructured.Unstructured{}
	untyped.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	same := namedChild("same")
	setUpErrors{
		"one of a type": {tree: widgetSequence{namedChild("a"), secrets}},
		"two of a type": {
			tree: widgetSequence{namedChild("a"), namedChild("b")},
			err: root + "must tell the children of WidgetResourceReconciler/0/a and WidgetResourceReconciler/1/b apart, " +
				"which are both of kind ConfigMap: set LabelChildren (Labeled in the short form) or OurChild on both",
		},
		"a child and a set": {
			tree: widgetSequence{namedChild("a"), &widgetFinalizer{Finalizer: ours, Reconciler: changedSet(nil)(&trace{})}},
			err: root + "must tell the children of WidgetResourceReconciler/0/a and " +
				"WidgetResourceReconciler/1/WithFinalizer/ConfigMapChildSetReconciler apart, " +
				"which are both of kind ConfigMap: set LabelChildren (Labeled in the short form) or OurChild on both",
		},
		"one chooses":   {tree: widgetSequence{namedChild("a"), namedChild("b", saysOurs)}},
		"both choose":   {tree: widgetSequence{namedChild("a", saysOurs), namedChild("b", saysOurs)}},
		"list options":  {tree: widgetSequence{namedChild("a"), namedChild("b", func(node *configMapNode) { node.ListOptions = inNamespace })}},
		"both label":    {tree: widgetSequence{namedChild("a", labelsChildren), namedChild("b", labelsChildren)}},
		"not owned":     {tree: widgetSequence{namedChild("a"), namedChild("b", withoutOwner)}},
		"the same node": {tree: widgetSequence{same, same}},
		"one labels": {
			tree: widgetSequence{namedChild("a"), namedChild("b", labelsChildren)},
			err: root + "must tell the children of WidgetResourceReconciler/0/a and WidgetResourceReconciler/1/b apart, " +
				"which are both of kind ConfigMap: set LabelChildren (Labeled in the short form) or OurChild on both",
		},
		"labels of one name": {
			tree: widgetSequence{namedChild("a", labelsChildren), namedChild("a", labelsChildren)},
			err: root + "must have different names for WidgetResourceReconciler/0/a and WidgetResourceReconciler/1/a, " +
				`which both label children of kind ConfigMap with "a"`,
		},
		"branches": {tree: branches(widgetSequence{namedChild("a")}, namedChild("b"))},
		"branches of branches": {
			tree: branches(branches(namedChild("a"), namedChild("b")), widgetSequence{namedChild("c")}),
		},
		"in one branch": {
			tree: branches(widgetSequence{namedChild("a"), namedChild("b")}, nil),
			err: root + "must tell the children of WidgetResourceReconciler/IfThen/0/a and WidgetResourceReconciler/IfThen/1/b " +
				"apart, which are both of kind ConfigMap: set LabelChildren (Labeled in the short form) or OurChild on both",
		},
		"branches of two conditions": {
			tree: widgetSequence{branches(namedChild("a"), calledNothing), branches(calledNothing, namedChild("b"))},
			err: root + "must tell the children of WidgetResourceReconciler/0/IfThen/a and WidgetResourceReconciler/1/IfThen/b " +
				"apart, which are both of kind ConfigMap: set LabelChildren (Labeled in the short form) or OurChild on both",
		},
		"another config": {tree: widgetSequence{namedChild("a"), replaced("other", namedChild("b"))}},
		"another config of each": {
			tree: widgetSequence{replaced("one", namedChild("a")), replaced("other", namedChild("b"))},
		},
		"in one other config": {
			tree: replaced("other", widgetSequence{namedChild("a"), namedChild("b")}),
			err: root + "must tell the children of WidgetResourceReconciler/other/0/a and WidgetResourceReconciler/other/1/b " +
				"apart, which are both of kind ConfigMap: set LabelChildren (Labeled in the short form) or OurChild on both",
		},
		"below a cast": {
			tree: widgetSequence{namedChild("a"), &reconcilers.CastResource[*resources.Widget, *resources.Widget]{
				Reconciler: namedChild("b"),
			}},
			err: root + "must tell the children of WidgetResourceReconciler/0/a and " +
				"WidgetResourceReconciler/1/WidgetCastResource/b apart, " +
				"which are both of kind ConfigMap: set LabelChildren (Labeled in the short form) or OurChild on both",
		},
		"another Go type": {
			tree: widgetSequence{namedChild("a"), &reconcilers.ChildReconciler[
				*resources.Widget, *unstructured.Unstructured, *unstructured.UnstructuredList,
			]{
				Name: "b", ChildType: untyped,
				DesiredChild:               func(context.Context, *resources.Widget) (*unstructured.Unstructured, error) { return nil, nil },
				MergeBeforeUpdate:          func(_, _ *unstructured.Unstructured) {},
				ReflectChildStatusOnParent: func(context.Context, *resources.Widget, *unstructured.Unstructured, error) {},
			}},
			err: root + "must tell the children of WidgetResourceReconciler/0/a and WidgetResourceReconciler/1/b apart, " +
				"which are both of kind ConfigMap: set LabelChildren (Labeled in the short form) or OurChild on both",
		},
		"in a loop": {tree: &reconcilers.ForEach[*resources.Widget, string]{
			Items:      func(context.Context, *resources.Widget) ([]string, error) { return nil, nil },
			Reconciler: namedChild("a"),
		}},
		"no label value": {
			tree: namedChild("a name", labelsChildren),
			err: root + `must have a valid Reconciler: ChildReconciler "a name" must have a Name that can be the value of a ` +
				"label, since LabelChildren is set: a valid label must be an empty string or consist of alphanumeric " +
				"characters, '-', '_' or '.', and must start and end with an alphanumeric character " +
				"(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is " +
				"'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
		},
	}.run(t)
}

var calledNothing = &widgetSync{Sync: func(context.Context, *resources.Widget) error { return nil }}

func inNamespace(_ context.Context, w *resources.Widget) []client.ListOption {
	return []client.ListOption{client.InNamespace(w.Namespace)}
}

// A root in which two nodes count one object as their child fails instead of changing the object in turn. A node that
// only reflects the object, and a resource that goes, are no danger.
func TestTwoNodesWithOneChildAreAnError(t *testing.T) {
	red := func(child *corev1.ConfigMap) (*corev1.ConfigMap, error) {
		child.Data = map[string]string{"color": "red"}
		return child, nil
	}
	steadyChild := configMap.With(func(child *corev1.ConfigMap) {
		child.UID, child.CreationTimestamp = "child-uid", givenConfigMap.Object().CreationTimestamp
	})
	const both = "WidgetResourceReconciler/b: ConfigMap default/gadget: the nodes WidgetResourceReconciler/0/a and " +
		"WidgetResourceReconciler/1/b both count ConfigMap default/gadget as their child: set LabelChildren (Labeled in the short form) or OurChild on both"
	for name, test := range map[string]struct {
		given []client.Object
		tree  widgetNode
		calls []string
		err   string
	}{
		"there already": {
			given: []client.Object{steadyWidget, steadyChild},
			tree:  widgetSequence{namedChild("a"), namedChild("b", desires(red))},
			err:   both,
		},
		"just created": {
			given: []client.Object{steadyWidget},
			tree:  widgetSequence{namedChild("a"), namedChild("b", desires(red))},
			calls: []string{"create ConfigMap"},
			err:   both,
		},
		"the other does not want it": {
			given: []client.Object{steadyWidget, steadyChild},
			tree:  widgetSequence{namedChild("a"), namedChild("b", desires(desiresNothing))},
			err:   strings.Replace(both, " default/gadget", "", 1),
		},
		"the other only reflects it": {
			given: []client.Object{steadyWidget, steadyChild},
			tree:  widgetSequence{namedChild("a"), namedChild("b", failsToDesire(reconcilers.OnlyReconcileChildStatus))},
		},
		"the resource goes": {
			given: []client.Object{widget.With(terminating(theirs)), steadyChild},
			tree:  widgetSequence{namedChild("a"), namedChild("b", desires(red))},
			calls: []string{"delete ConfigMap"},
		},
		"in a loop": {
			given: []client.Object{steadyWidget, steadyChild},
			tree: &reconcilers.ForEach[*resources.Widget, string]{
				Items:      func(context.Context, *resources.Widget) ([]string, error) { return []string{"a", "b"}, nil },
				Reconciler: namedChild("a"),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			calls := &trace{}
			expect := expectWidget(test.given...)
			expect.WithReactors = append(expect.WithReactors, calls.observe, assignUID)
			root := &widgetRoot{SkipStatusUpdate: true, Reconciler: test.tree, Config: expect.Config()}
			_, err := root.Reconcile(t.Context(), widgetRequest)
			if (err == nil) != (test.err == "") || err != nil && err.Error() != test.err {
				t.Errorf("returned %v, want %q", err, test.err)
			}
			if test.calls == nil {
				test.calls = []string{}
			}
			calls.compare(t, test.calls)
		})
	}
}

// Two finalizers of one name would be taken off for each other, and the API server wants a domain.
func TestSetupRefusesFinalizersOfOneName(t *testing.T) {
	const root = `ResourceReconciler "WidgetResourceReconciler" `
	guarded := func(finalizer string) widgetNode {
		return &widgetFinalizer{Finalizer: finalizer, Reconciler: calledNothing}
	}
	twice := func(one, other string) string {
		return root + "must have different finalizers at WidgetResourceReconciler/" + one + " and WidgetResourceReconciler/" + other +
			`, not "` + ours + `" for both: each would remove that of the other`
	}
	managed := changedSet(nil, guardedSet, func(node *configMapSet) {
		node.MergeBeforeUpdate, node.ChildObjectManager = nil, &configMaps{Finalizer: ours, MergeBeforeUpdate: mergeConfigMap}
	})(&trace{})
	setUpErrors{
		"two names": {tree: widgetSequence{guarded(ours), guarded(theirs)}},
		"two nodes": {tree: widgetSequence{guarded(ours), guarded(ours)}, err: twice("0/WithFinalizer", "1/WithFinalizer")},
		"nested": {
			tree: &widgetFinalizer{Finalizer: ours, Reconciler: guarded(ours)},
			err:  twice("WithFinalizer", "WithFinalizer/WithFinalizer"),
		},
		"of a child": {
			tree: widgetSequence{guarded(ours), guardedShortForm()(&trace{})},
			err:  twice("0/WithFinalizer", "1/ConfigMapChildReconciler"),
		},
		"of a set": {
			tree: widgetSequence{guarded(ours), changedSet(nil, guardedSet)(&trace{})},
			err:  twice("0/WithFinalizer", "1/ConfigMapChildSetReconciler"),
		},
		"of a set and its manager": {
			tree: managed,
			err:  root + `must not have the finalizer "` + ours + `" twice at WidgetResourceReconciler/ConfigMapChildSetReconciler`,
		},
		"branches": {tree: &widgetIfThen{
			If: func(context.Context, *resources.Widget) bool { return true }, Then: guarded(ours), Else: guarded(ours),
		}},
		// Custom resources may have it, and there are some that have.
		"no domain": {tree: guarded("cleanup.widgets.example.com")},
		"no name": {
			tree: guarded("clean up"),
			err: root + `must have a finalizer with a domain at WidgetResourceReconciler/WithFinalizer, ` +
				`such as "example.com/cleanup", not "clean up"`,
		},
	}.run(t)
}

// A finalizer without a domain is logged once, for a custom resource, and refused for a built-in kind.
func TestSetupWarnsOfAFinalizerWithoutADomain(t *testing.T) {
	var logged []string
	log := funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{})
	config := expectWidget().Config()
	ctx := logr.NewContext(testContext(t, config), log)
	nested := reconcilers.Sequence[*corev1.ConfigMap]{}
	embedded := reconcilers.Embed(config, &reconcilers.WithFinalizer[*corev1.ConfigMap]{Finalizer: "cleanup", Reconciler: nested})
	want := "must have a finalizer with a domain at Embedded/WithFinalizer, such as"
	if err := embedded.SetupWithManager(ctx, nil, nil); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("returned %v for a ConfigMap, want %s", err, want)
	}
	// Without a builder the set-up ends after the tree is checked.
	_ = reconcilers.Embed(config, &widgetFinalizer{Finalizer: "cleanup", Reconciler: calledNothing}).SetupWithManager(ctx, nil, nil)
	warnings := 0
	for _, line := range logged {
		if strings.Contains(line, `"a finalizer has no domain`) && strings.Contains(line, `"finalizer"="cleanup"`) {
			warnings++
		}
	}
	if warnings != 1 {
		t.Errorf("logged %q, want one warning of the finalizer", logged)
	}
}

// unknown is a type that the scheme of the tests does not have.
type unknown struct{ corev1.ConfigMap }

func (u *unknown) DeepCopyObject() runtime.Object { return &unknown{*u.DeepCopy()} }

// Without a kind there can be neither a watch nor an index of the children.
func TestSetupRefusesChildrenOfAnUnknownKind(t *testing.T) {
	untyped := func(version, kind string) widgetNode {
		child := &unstructured.Unstructured{}
		child.SetAPIVersion(version)
		child.SetKind(kind)
		return &reconcilers.ChildReconciler[*resources.Widget, *unstructured.Unstructured, *unstructured.UnstructuredList]{
			Name: "a", ChildType: child,
			DesiredChild:               func(context.Context, *resources.Widget) (*unstructured.Unstructured, error) { return nil, nil },
			MergeBeforeUpdate:          func(_, _ *unstructured.Unstructured) {},
			ReflectChildStatusOnParent: func(context.Context, *resources.Widget, *unstructured.Unstructured, error) {},
		}
	}
	const mustKnow = `ChildReconciler "a" must have a ChildType that the scheme knows, or with apiVersion and kind: `
	setUpErrors{
		"no version": {
			tree: untyped("", "ConfigMap"),
			err:  mustKnow + "Object 'apiVersion' is missing in 'unstructured object has no version'",
		},
		"no kind": {
			tree: untyped("v1", ""),
			err: `ResourceReconciler "WidgetResourceReconciler" must have a valid Reconciler: ` +
				`ChildReconciler "a" must define ChildType with apiVersion and kind since it is unstructured`,
		},
		"not in the scheme": {
			tree: &reconcilers.ChildReconciler[*resources.Widget, *unknown, client.ObjectList]{
				Name:                       "a",
				DesiredChild:               func(context.Context, *resources.Widget) (*unknown, error) { return nil, nil },
				MergeBeforeUpdate:          func(_, _ *unknown) {},
				ReflectChildStatusOnParent: func(context.Context, *resources.Widget, *unknown, error) {},
			},
			err: mustKnow + `no kind is registered for the type reconcilers_test.unknown in scheme "` + widgetScheme.Name() + `"`,
		},
	}.run(t)
}
