package page_test

import (
	"context"
	"errors"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/page"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/testing/fake"
	"github.com/espalier-dev/espalier/tracker"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// ownsConfigMap is a node with a ConfigMap of the name of the resource.
func ownsConfigMap(name string) *espalier.Child[widget, *corev1.ConfigMap] {
	return espalier.Owns(name, func(_ context.Context, r widget) (*corev1.ConfigMap, error) {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name}}, nil
	})
}

// ownsDeployment is a node with a Deployment that does not become available.
func ownsDeployment(name string) *espalier.Child[widget, *appsv1.Deployment] {
	return espalier.Owns(name, func(_ context.Context, r widget) (*appsv1.Deployment, error) {
		labels := map[string]string{"app": r.Name}
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name},
			Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "server", Image: "server"}}},
				},
			},
		}, nil
	})
}

// newRefusingWorld is a root with two children. The API server refuses a ConfigMap with an error.
func newRefusingWorld(t *testing.T, refuse func() error, given ...client.Object) *world {
	w := newWorld(t, page.Options{}, "w")
	scheme := resources.NewScheme()
	given = append(given, &resources.Widget{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "w", UID: "w", Generation: 1,
	}})
	w.client = interceptor.NewClient(
		fake.NewClientBuilder().WithScheme(scheme).WithObjects(given...).
			WithStatusSubresource(&resources.Widget{}).Build(),
		interceptor.Funcs{Create: func(
			ctx context.Context, c client.WithWatch, object client.Object, o ...client.CreateOption,
		) error {
			if object.GetObjectKind().GroupVersionKind().Kind == "ConfigMap" && refuse() != nil {
				return refuse()
			}
			return c.Create(ctx, object, o...)
		}})
	w.config = reconcilers.Config{Client: w.client, APIReader: w.client, Tracker: tracker.New(scheme, 0)}.
		WithObserver(w.page)
	w.root = espalier.For(w.config,
		ownsDeployment("Server").Reports("ServerReady"), ownsConfigMap("Settings").Reports("SettingsReady"))
	w.root.Name, w.root.ControllerName = "root", "widgets"
	return w
}

// Point 16: a child that the API server refuses is an error, although the node returns none, and it is named before a
// child that is in progress.
func TestARefusedChildIsAnError(t *testing.T) {
	kind, foreign := schema.GroupResource{Resource: "configmaps"}, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "w", UID: "other"},
	}
	for name, step := range map[string]struct {
		refuse     error
		given      []client.Object
		state, why string
		class      string
	}{
		"Forbidden": {refuse: apierrs.NewForbidden(kind, "w", errors.New("no right")), state: "Error",
			class: "Forbidden",
			why:   `Ready is False (Forbidden): SettingsReady: configmaps "w" is forbidden: no right`},
		"Invalid": {refuse: apierrs.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "w", nil), state: "Error",
			class: "Terminal", why: `Ready is False (Invalid): SettingsReady: ConfigMap "w" is invalid`},
		"AlreadyExists": {given: []client.Object{foreign}, state: "Error", class: "NotOurs",
			why: `Ready is False (AlreadyExists): SettingsReady: configmaps "w" already exists`},
		"nothing is refused": {state: "Waiting",
			why: "Ready is False (InProgress): ServerReady: Deployment default/w: 0 of 1 replica available"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newRefusingWorld(t, func() error { return step.refuse }, step.given...)
			w.settle(t, "w")
			v := w.page.Resource("widgets", keyOf("w"))
			if v.State != step.state {
				t.Errorf("the resource is %s, want %s", v.State, step.state)
			}
			if v.Why != step.why {
				t.Errorf("the page says %q, want %q", v.Why, step.why)
			}
			if last := v.Tree.Last; last.Class != step.class {
				t.Errorf("the class of the root is %q, want %q", last.Class, step.class)
			}
			if rows := w.page.List("widgets", "", step.state, 1).Rows; len(rows) != 1 {
				t.Errorf("%d resources are found by the state %s, want 1", len(rows), step.state)
			}
		})
	}
}
