package testing_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
)

type widgetCase = rtesting.SubReconcilerTestCase[*resources.Widget]

// desiring is a child node of the widget that desires the settings, changed by the functions.
func desiring(changes ...func(*widgetChild)) *widgetChild {
	node := &widgetChild{
		Name: "Settings",
		DesiredChild: func(_ context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
			return settings.With(func(c *corev1.ConfigMap) { c.Data["k"] = "w" }).Object(), nil
		},
		MergeBeforeUpdate:          func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
		ReflectChildStatusOnParent: func(context.Context, *resources.Widget, *corev1.ConfigMap, error) {},
	}
	for _, change := range changes {
		change(node)
	}
	return node
}

// childSuite is a suite with one row for a child node.
func childSuite(tc widgetCase, changes ...func(*widgetChild)) func(t *testing.T) {
	tc.Resource = widget.Object()
	return func(t *testing.T) {
		rtesting.SubReconcilerTests[*resources.Widget]{"case": tc}.Run(t, widgets,
			func(*testing.T, *widgetCase, reconcilers.Config) reconcilers.SubReconciler[*resources.Widget] {
				return desiring(changes...)
			})
	}
}

// requested is a suite with one row for a root that does nothing.
func requested(tc rtesting.ReconcilerTestCase) func(t *testing.T) {
	return func(t *testing.T) { rtesting.ReconcilerTests{"case": tc}.Run(t, widgets, reconcilesNothing) }
}

func reconcilesNothing(_ *testing.T, _ *rtesting.ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler {
	return &reconcilers.ResourceReconciler[*resources.Widget]{
		Config: c, SkipStatusUpdate: true,
		Reconciler: &reconcilers.SyncReconciler[*resources.Widget]{
			Sync: func(context.Context, *resources.Widget) error { return nil },
		},
	}
}

const mark = "give it as rtesting.WithController("

func init() {
	updates := []client.Object{owned.With(func(c *corev1.ConfigMap) { c.Data["k"] = "w" })}
	stranger := owned.With(func(c *corev1.ConfigMap) { c.OwnerReferences[0].UID = "two" })
	generated := settings.With(func(c *corev1.ConfigMap) { c.Name = "settings-x7z" })
	for name, failing := range map[string]scenario{
		"child without an owner": {
			run: childSuite(widgetCase{GivenObjects: []client.Object{pod, settings}, ExpectUpdates: updates}),
			want: []string{
				"GivenObjects[1], ConfigMap default/settings, has the name of an object that is created, " +
					"but Widget default/gadget does not control it: if it is to be found, " + mark,
			},
		},
		"child of another owner": {
			run: childSuite(widgetCase{GivenObjects: []client.Object{stranger}, ExpectUpdates: updates}),
			want: []string{
				"GivenObjects[0], ConfigMap default/settings, has the name of an object that is created, " +
					`but is controlled by Widget gadget of UID "two", not by Widget gadget of UID "one"`, mark,
			},
		},
		"generated child without an owner": {
			run: childSuite(widgetCase{GivenObjects: []client.Object{generated}}, func(r *widgetChild) {
				r.DesiredChild = func(context.Context, *resources.Widget) (*corev1.ConfigMap, error) {
					return settings.With(func(c *corev1.ConfigMap) { c.Name, c.GenerateName = "", "settings-" }).Object(), nil
				}
			}),
			want: []string{"GivenObjects[0], ConfigMap default/settings-x7z, has the name of an object that is created", mark},
		},
		"child that is not recognised": {
			run: childSuite(widgetCase{GivenObjects: []client.Object{settings}}, func(r *widgetChild) {
				r.SkipOwnerReference = true
				r.ListOptions = func(context.Context, *resources.Widget) []client.ListOption { return nil }
				r.OurChild = func(*resources.Widget, *corev1.ConfigMap) bool { return false }
			}),
			want: []string{
				"GivenObjects[0], ConfigMap default/settings, exists, but is created again: " +
					"the code does not find it, or does not see it as its own (labels, OurChild, ListOptions)",
			},
			unwanted: []string{mark},
		},
		"child with its owner": {
			run:      childSuite(widgetCase{GivenObjects: []client.Object{owned}}),
			want:     []string{"Unexpected Update observed"},
			unwanted: []string{"GivenObjects[0]"},
		},
		"request for nothing": {
			run: requested(rtesting.ReconcilerTestCase{Request: requestFor("default", "gagdet"), GivenObjects: []client.Object{pod, widget}}),
			want: []string{
				"the request is for Widget default/gagdet, which is not given; given is Widget default/gadget. The row expects nothing, so it tests nothing. ",
				"Correct the Request, or set ExpectOrder to []string{}",
			},
		},
		"empty request": {
			run:  requested(rtesting.ReconcilerTestCase{GivenObjects: []client.Object{widget}}),
			want: []string{"the Request is empty; given is Widget default/gadget."},
		},
		"request for nothing, with expectations": {
			run: requested(rtesting.ReconcilerTestCase{Request: gadget, ExpectCreates: []client.Object{settings}}),
			want: []string{
				"ExpectCreates[0] not observed", "the request is for Widget default/gadget, which is not given",
			},
			unwanted: []string{"tests nothing", "; given"},
		},
		"object of another namespace": {
			run: one(cmCase{
				ShouldErr: true, GivenObjects: []client.Object{settings.With(func(c *corev1.ConfigMap) { c.Namespace, c.Name = "other", "a" })},
				Metadata: does(func(ctx context.Context, _ *corev1.ConfigMap) error {
					return client.IgnoreNotFound(reconcilers.RetrieveConfigOrDie(ctx).Get(ctx, key("default", "a"), &corev1.ConfigMap{}))
				}),
			}),
			want: []string{"ConfigMap default/a was read and is not given; given is ConfigMap other/a"},
		},
		"object of the other reader": {
			run: one(cmCase{
				ShouldErr: true, GivenObjects: []client.Object{pod},
				Metadata: does(func(ctx context.Context, _ *corev1.ConfigMap) error {
					return client.IgnoreNotFound(reconcilers.RetrieveConfigOrDie(ctx).APIReader.Get(ctx, key("default", "web"), &corev1.Pod{}))
				}),
			}),
			want: []string{"Pod default/web was read with the APIReader, which has the APIGivenObjects only; it is among the GivenObjects"},
		},
		"failure that no call meets": {
			run: one(cmCase{
				ShouldErr: true, WithReactors: []rtesting.ReactionFunc{rtesting.InduceFailure("list", "ConfigMap")},
				Metadata: does(func(ctx context.Context, _ *corev1.ConfigMap) error {
					c := reconcilers.RetrieveConfigOrDie(ctx)
					if err := c.Get(ctx, key("default", "settings"), &corev1.ConfigMap{}); err != nil {
						return err
					}
					return c.List(ctx, &corev1.ConfigMapList{})
				}),
			}),
			want: []string{"Note: no reactor made a call fail; the calls were: get ConfigMap, list ConfigMapList\n"},
		},
		"failure that is swallowed": {
			run: one(cmCase{
				ShouldErr: true, WithReactors: []rtesting.ReactionFunc{rtesting.InduceFailure("list", "ConfigMapList")},
				Metadata: does(func(ctx context.Context, _ *corev1.ConfigMap) error {
					_ = reconcilers.RetrieveConfigOrDie(ctx).List(ctx, &corev1.ConfigMapList{})
					return nil
				}),
			}),
			want:     []string{"ShouldErr true"},
			unwanted: []string{"no reactor"},
		},
		"type that the scheme lacks": {
			run: one(cmCase{Metadata: does(func(ctx context.Context, _ *corev1.ConfigMap) error {
				return reconcilers.RetrieveConfigOrDie(ctx).Get(ctx, key("default", "web"), &unregistered{})
			})}),
			want: []string{
				"the kind of *testing_test.unregistered is neither in the scheme nor set on the object: call AddToScheme of the package " +
					"github.com/espalier-dev/espalier/testing_test",
			},
		},
		"expectation of a type that the scheme lacks": {
			run: one(cmCase{ExpectUpdates: []client.Object{settings, &unregistered{}}}),
			want: []string{
				"ExpectUpdates[1]: the type *testing_test.unregistered is not in the scheme of the table: call AddToScheme of the package",
			},
		},
	} {
		scenarios[name] = failing
	}
}

func key(namespace, name string) client.ObjectKey { return requestFor(namespace, name).NamespacedName }

// Rows that mean that nothing is there pass.
func TestRequestsForNothing(t *testing.T) {
	rtesting.ReconcilerTests{
		"nothing is given":             {Request: gadget},
		"no other of the type":         {Request: gadget, GivenObjects: []client.Object{pod, settings}},
		"the row says so":              {Request: requestFor("", "x"), GivenObjects: []client.Object{widget}, ExpectOrder: []string{}},
		"the row verifies":             {Request: requestFor("", "x"), GivenObjects: []client.Object{widget}, Verify: func(*testing.T, reconcilers.Result, error) {}},
		"it is given":                  {Request: gadget, GivenObjects: []client.Object{widget}},
		"it is given and on its way":   {Request: gadget, GivenObjects: []client.Object{leavingWidget}},
		"another config expects a lot": {Request: requestFor("", "x"), GivenObjects: []client.Object{widget}, AdditionalConfigs: map[string]rtesting.ExpectConfig{"a": {ExpectOrder: []string{}}}},
	}.Run(t, widgets, reconcilesNothing)
}

var leavingWidget = widget.With(func(w *resources.Widget) {
	w.DeletionTimestamp, w.Finalizers = new(metav1.Now()), []string{"example.com/x"}
})

func TestWithController(t *testing.T) {
	marked := rtesting.WithController(settings, widget, widgets)
	if !metav1.IsControlledBy(marked, widget.Object()) || len(settings.Object().OwnerReferences) > 0 {
		t.Errorf("the owners are %v", marked.GetOwnerReferences())
	}
	again := rtesting.WithController(marked, widget, widgets)
	if len(again.GetOwnerReferences()) != 1 {
		t.Errorf("marked twice, the owners are %v", again.GetOwnerReferences())
	}
	rtesting.SubReconcilerTests[*resources.Widget]{"found": {
		Resource: widget.Object(), GivenObjects: []client.Object{marked},
		ExpectUpdates: []client.Object{rtesting.WithController(settings.With(func(c *corev1.ConfigMap) { c.Data["k"] = "w" }), widget, widgets)},
		ExpectEvents: []rtesting.Event{
			rtesting.NewEvent(widget, widgets, corev1.EventTypeNormal, "Updated", `Updated ConfigMap "settings"`),
		},
	}}.Run(t, widgets, func(*testing.T, *widgetCase, reconcilers.Config) reconcilers.SubReconciler[*resources.Widget] {
		return desiring()
	})
}
