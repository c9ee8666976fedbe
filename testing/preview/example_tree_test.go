package preview_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/edit"
	"github.com/espalier-dev/espalier/feature/gate"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	"github.com/espalier-dev/espalier/testing/preview"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// shopOf returns what a Widget asks for.
func shopOf(widget *resources.Widget) Shop {
	return Shop{Version: widget.Spec.Fields["version"], Tracing: widget.Spec.Fields["tracing"] == "true"}
}

// root keeps the Deployment of [baseline] when the license is there, and what a version has beside it.
func root(config reconcilers.Config) *reconcilers.ResourceReconciler[*resources.Widget] {
	named := func(name string, data map[string]string) func(
		context.Context, *resources.Widget,
	) (*corev1.ConfigMap, error) {
		return func(_ context.Context, widget *resources.Widget) (*corev1.ConfigMap, error) {
			return &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: widget.Namespace, Name: name}, Data: data,
			}, nil
		}
	}
	license := func(_ context.Context, widget *resources.Widget) (*corev1.Secret, error) {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: widget.Namespace, Name: "license"}}, nil
	}
	deployment := func(_ context.Context, widget *resources.Widget) (*appsv1.Deployment, error) {
		return edit.Apply(baseline(), changes(shopOf(widget))...)
	}
	since2 := func(_ context.Context, widget *resources.Widget) gate.Gate {
		return gate.Version(widget.Spec.Fields["version"], ">= 2")
	}
	catalog := named("catalog", map[string]string{"items": "12"})
	return espalier.For(config,
		espalier.Owns("License", license).ReadOnly(),
		espalier.Owns("Legacy", named("legacy", nil)).Labeled().Absent(),
		espalier.Owns("Deployment", deployment).After("License"),
		espalier.Owns("Catalog", catalog).Labeled().Gate(since2).After("Deployment"),
	)
}

// rollout has a resource that asks for a shop, and the license.
func rollout(shop Shop) rtesting.Rollout[*resources.Widget] {
	widget := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	widget.Spec.Fields = map[string]string{"version": shop.Version, "tracing": fmt.Sprint(shop.Tracing)}
	license := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "license"}}
	return rtesting.Rollout[*resources.Widget]{
		Scheme: resources.NewScheme(), Resource: widget, GivenObjects: []client.Object{license},
	}
}

// deployed returns the objects that the tree keeps for a shop.
func deployed(shop Shop) ([]client.Object, error) { return preview.Tree(root, rollout(shop)) }

// A version matrix has one golden file for each version.
func TestVersions(t *testing.T) {
	version := func(version string) func(*Shop) { return func(shop *Shop) { shop.Version = version } }
	preview.Golden(t, preview.Config[Shop]{
		Dir: "testdata/versions", Render: deployed,
		Cases: preview.Matrix(Shop{}, preview.Axis[Shop]{"v1": version("1.9.0"), "v2": version("2.0.0")}),
	})
}

func ExampleTree() {
	for _, version := range []string{"1.9.0", "2.0.0"} {
		objects, err := deployed(Shop{Version: version})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("version", version)
		for _, object := range objects {
			fmt.Println("-", object.GetObjectKind().GroupVersionKind().Kind, object.GetName())
		}
	}
	// Output:
	// version 1.9.0
	// - Deployment web
	// version 2.0.0
	// - ConfigMap catalog
	// - Deployment web
}
