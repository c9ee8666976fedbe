package reconcilers_test

import (
	"context"
	"errors"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestChildSetReconcilerValidate(t *testing.T) {
	set := func(changes ...func(*configMapSet)) *configMapSet {
		node := reflectingSet(&trace{}, "a")
		for _, change := range changes {
			change(node)
		}
		return node
	}
	validationTests{
		"valid":                {node: set()},
		"valid, guarded":       {node: set(guardedSet)},
		"valid, in short form": {node: set(shortFormSet)},
		"no desired children": {
			node:    set(func(node *configMapSet) { node.DesiredChildren = nil }),
			shallow: `ChildSetReconciler "ConfigMapChildSetReconciler" must implement DesiredChildren`,
		},
		"no reflection": {
			node:    set(func(node *configMapSet) { node.ReflectChildrenStatusOnParent = nil }),
			shallow: `ChildSetReconciler "ConfigMapChildSetReconciler" must implement ReflectChildrenStatusOnParent or ReflectChildrenStatusOnParentWithError`,
		},
		"a finalizer, and nothing to know the children by": {
			node:    set(func(node *configMapSet) { node.Finalizer = ours }),
			shallow: `ChildSetReconciler "ConfigMapChildSetReconciler" must implement OurChild since owner references are not used`,
		},
		"no owner reference, and nothing to find the children by": {
			node:    set(guardedSet, func(node *configMapSet) { node.Finalizer, node.SkipOwnerReference, node.ListOptions = "", true, nil }),
			shallow: `ChildSetReconciler "ConfigMapChildSetReconciler" must implement ListOptions since owner references are not used`,
		},
		"no identity": {
			node:    set(func(node *configMapSet) { node.IdentifyChild = nil }),
			shallow: `ChildSetReconciler "ConfigMapChildSetReconciler" must implement IdentifyChild`,
		},
		"no manager": {
			node:    set(func(node *configMapSet) { node.ChildObjectManager = nil }),
			shallow: `ChildSetReconciler "ConfigMapChildSetReconciler" must implement MergeBeforeUpdate or ChildObjectManager`,
		},
		"a manager and the short form": {
			node:    set(func(node *configMapSet) { node.MergeBeforeUpdate = mergeConfigMap }),
			shallow: `ChildSetReconciler "ConfigMapChildSetReconciler" may not implement both ChildObjectManager and MergeBeforeUpdate or Sanitize`,
		},
		"an invalid manager": {
			node:      set(func(node *configMapSet) { node.Name, node.ChildObjectManager = "parts", &configMaps{Name: "m"} }),
			recursive: `ChildSetReconciler "parts" must have a valid ChildObjectManager: UpdatingObjectManager "m" must define MergeBeforeUpdate`,
		},
		"another list": {
			node: &reconcilers.ChildSetReconciler[*resources.Widget, *corev1.ConfigMap, *corev1.SecretList]{
				DesiredChildren: func(context.Context, *resources.Widget) ([]*corev1.ConfigMap, error) { return nil, nil },
				ReflectChildrenStatusOnParent: func(context.Context, *resources.Widget, reconcilers.ChildSetResult[*corev1.ConfigMap]) {
				},
				ChildObjectManager: &configMaps{MergeBeforeUpdate: mergeConfigMap},
				IdentifyChild:      func(child *corev1.ConfigMap) string { return child.Name },
			},
			shallow: `ChildSetReconciler "ConfigMapChildSetReconciler" must have a ChildListType of its ChildType: the items of *v1.SecretList are *v1.Secret, not *v1.ConfigMap`,
		},
		"an interface without an object": {
			node: &reconcilers.ChildSetReconciler[*resources.Widget, client.Object, client.ObjectList]{
				Name:            "parts",
				DesiredChildren: func(context.Context, *resources.Widget) ([]client.Object, error) { return nil, nil },
				ReflectChildrenStatusOnParent: func(context.Context, *resources.Widget, reconcilers.ChildSetResult[client.Object]) {
				},
				MergeBeforeUpdate: func(client.Object, client.Object) {},
				IdentifyChild:     func(child client.Object) string { return child.GetName() },
			},
			shallow: `ChildSetReconciler "parts" must define ChildType since none can be made of cacheapi.Object`,
		},
	}.run(t)
}

// The reasons of the API server are seen through the aggregate.
func TestChildSetResultAggregateError(t *testing.T) {
	taken := apierrs.NewAlreadyExists(configMapResource, "a")
	result := func(errs ...error) *reconcilers.ChildSetResult[*corev1.ConfigMap] {
		r := &reconcilers.ChildSetResult[*corev1.ConfigMap]{}
		for _, err := range errs {
			r.Children = append(r.Children, reconcilers.ChildSetPartialResult[*corev1.ConfigMap]{Err: err})
		}
		return r
	}
	for name, result := range map[string]*reconcilers.ChildSetResult[*corev1.ConfigMap]{"no child": result(), "no error": result(nil, nil)} {
		if err := result.AggregateError(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := result(nil, taken).AggregateError(); !apierrs.IsAlreadyExists(err) || err.Error() != taken.Error() {
		t.Errorf("one error gives %v, want %v", err, taken)
	}
	err := result(errBoom, taken, errBoom).AggregateError()
	if !apierrs.IsAlreadyExists(err) || !errors.Is(err, errBoom) {
		t.Errorf("several errors give %v, want %v and %v in it", err, taken, errBoom)
	}
	if expected := `[boom, configmaps "a" already exists]`; err.Error() != expected {
		t.Errorf("several errors read %s, expected %s", err, expected)
	}
}

func TestRetrieveKnownChildren(t *testing.T) {
	if known := reconcilers.RetrieveKnownChildren[*corev1.ConfigMap](t.Context()); known != nil {
		t.Errorf("outside a set there is %v, want none known", known)
	}
	for name, given := range map[string][]client.Object{"none": {widget}, "one": {widget, givenPart("a")}} {
		t.Run(name, func(t *testing.T) {
			var known []*corev1.ConfigMap
			node := reflectingSet(&trace{})
			node.DesiredChildren = func(ctx context.Context, _ *resources.Widget) ([]*corev1.ConfigMap, error) {
				known = reconcilers.RetrieveKnownChildren[*corev1.ConfigMap](ctx)
				for _, child := range known {
					// It is a copy: what is known is not changed by this.
					child.Data = map[string]string{"color": "green"}
				}
				if others := reconcilers.RetrieveKnownChildren[*corev1.Secret](ctx); others != nil {
					t.Errorf("of another type there is %v, want none known", others)
				}
				if len(known) == 0 {
					return nil, nil
				}
				return []*corev1.ConfigMap{part("a")}, nil
			}
			expect := expectWidget(given...)
			if _, err := node.Reconcile(testContext(t, expect.Config()), widget.Object()); err != nil {
				t.Fatal(err)
			}
			if known == nil || len(known) != len(given)-1 {
				t.Errorf("the known children are %v, want %d", known, len(given)-1)
			}
			expect.AssertExpectations(t)
		})
	}
}

// countedManager counts how often it is set up.
type countedManager struct {
	rtesting.StubObjectManager[*corev1.ConfigMap]
	setUps *int
}

func (m countedManager) SetupWithManager(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
	*m.setUps++
	return nil
}

func TestChildSetSetsItsManagerUpOnce(t *testing.T) {
	setUps := 0
	rtesting.SetupTests{
		"watches the children once": {
			ExpectWatches: []client.Object{&resources.Widget{}, &corev1.ConfigMap{}},
			Events: []rtesting.SetupEvent{
				{Updated: givenPart("a"), ExpectRequests: []reconcilers.Request{widgetRequest}},
				{Deleted: givenPart("b", ownerless)},
			},
		},
	}.Run(t, widgetScheme, func(_ *testing.T, _ *rtesting.SetupTestCase, c reconcilers.Config) rtesting.Setup {
		node := reflectingSet(&trace{})
		node.ChildObjectManager = countedManager{setUps: &setUps}
		return rtesting.SubReconcilerSetup[*resources.Widget](c, node)
	})
	if setUps != 1 {
		t.Errorf("the manager was set up %d times, want once", setUps)
	}
}
