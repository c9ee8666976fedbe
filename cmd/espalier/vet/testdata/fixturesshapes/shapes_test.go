package fixturesshapes

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
)

var (
	scheme = runtime.NewScheme()
	shop   = &v1.Shop{ObjectMeta: metav1.ObjectMeta{Name: "corner", Labels: map[string]string{}}}
	secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "corner"}}
	copies = rtesting.NewFixture(shop)
)

// Helpers that change what they get, with a type parameter or without.
func scaled(s *v1.Shop, replicas int32) *v1.Shop {
	s.Spec.Replicas = replicas
	return s
}

func labeled[T client.Object](object T, labels map[string]string) T {
	object.SetLabels(labels)
	return object
}

func base() *v1.Shop { return shop }

func TestHelpers(t *testing.T) {
	rtesting.NodeTests[*v1.Shop]{
		"scaled":  {Resource: scaled(shop, 3)},                                                      // want `.`
		"labeled": {Resource: shop.DeepCopy(), GivenObjects: []client.Object{labeled(secret, nil)}}, // want `.`
		"plain":   {Resource: shop},
	}.RunNode(t, scheme, Node)
}

// Functions of a row.
func TestFunctions(t *testing.T) {
	given := &corev1.ConfigMap{Data: map[string]string{}}
	rows := rtesting.SubReconcilerTests[*v1.Shop]{
		"prepared": {
			Resource:     shop,
			GivenObjects: []client.Object{given},
			Prepare: func(
				_ *testing.T, ctx context.Context, _ *rtesting.SubReconcilerTestCase[*v1.Shop],
			) (context.Context, error) {
				shop.Labels["prepared"] = "true" // want `.`
				return ctx, nil
			},
		},
		"cleaned up": {
			Resource:     shop,
			GivenObjects: []client.Object{given},
			CleanUp: func(*testing.T, context.Context, *rtesting.SubReconcilerTestCase[*v1.Shop]) error {
				given.Data["a"] = "b" // want `.`
				return nil
			},
			Verify: func(*testing.T, reconcilers.Result, error) {
				delete(given.Data, "a") // want `.`
			},
		},
	}
	rows["added"] = rtesting.SubReconcilerTestCase[*v1.Shop]{
		Resource: func() *v1.Shop {
			s := base()
			s.Spec.Image = "nginx" // want `.`
			return s
		}(),
	}
	rows.Run(t, scheme, func(
		*testing.T, *rtesting.SubReconcilerTestCase[*v1.Shop], reconcilers.Config,
	) reconcilers.SubReconciler[*v1.Shop] {
		return Node()
	})
}

// Rows of a root, and of a suite.
func TestRoots(t *testing.T) {
	rtesting.RootTests{
		"a change": {
			GivenObjects: []client.Object{func() client.Object {
				secret.Data = map[string][]byte{"a": nil} // want `.`
				return secret
			}()},
			ExpectUpdates: []client.Object{secret},
		},
	}.Run(t, scheme, nil)

	rtesting.ReconcilerTestSuite{{
		Name:         "a list",
		GivenObjects: []client.Object{scaled(shop.DeepCopy(), 2), shop},
		ExpectUpdates: []client.Object{func() *v1.Shop {
			shop.Spec.Replicas++ // want `.`
			return shop
		}()},
	}}.Run(t, scheme, func(*testing.T, *rtesting.ReconcilerTestCase, reconcilers.Config) reconcile.Reconciler {
		return nil
	})
}

// Near misses.

// A helper that gets copies only, and one that makes them.
func renamed(s *v1.Shop, name string) *v1.Shop {
	s.Name = name
	return s
}

func resized(s *v1.Shop) *v1.Shop {
	s = s.DeepCopy()
	s.Spec.Replicas = 7
	return s
}

func fresh(change func(*v1.Shop)) *v1.Shop {
	s := &v1.Shop{}
	change(s)
	return s
}

func TestCopies(t *testing.T) {
	rtesting.NodeTests[*v1.Shop]{
		"renamed": {Resource: renamed(shop.DeepCopy(), "other")},
		"resized": {Resource: resized(shop)},
		"fresh":   {Resource: fresh(func(s *v1.Shop) { s.Spec.Image = "nginx" })},
		"fixture": {Resource: copies.With(func(s *v1.Shop) { s.Spec.Host = "example.com" }).Object()},
		"object": {Resource: func() *v1.Shop {
			s := copies.Object()
			s.Spec.Host = "example.com"
			return s
		}()},
		"local": {Resource: func() *v1.Shop {
			s := &v1.Shop{}
			s.Labels = map[string]string{"a": "b"}
			copied := *shop
			copied.Name = "copied"
			return &copied
		}()},
		"child": {GivenObjects: []client.Object{rtesting.WithController(secret, shop, scheme)}},
		"own": {
			Resource: shop.DeepCopy(),
			Prepare: func(
				_ *testing.T, ctx context.Context, tc *rtesting.SubReconcilerTestCase[*v1.Shop],
			) (context.Context, error) {
				tc.Resource.Spec.Replicas = 2
				return ctx, nil
			},
		},
	}.RunNode(t, scheme, Node)
}

// Limits: what a function of another package changes is not known.
func TestForeign(t *testing.T) {
	rtesting.NodeTests[*v1.Shop]{
		"owned": {Resource: shop, GivenObjects: []client.Object{func() client.Object {
			if err := controllerutil.SetControllerReference(shop, secret, scheme); err != nil {
				t.Fatal(err)
			}
			return secret
		}()}},
	}.RunNode(t, scheme, Node)
}

// A value that no row shares.
func TestCounted(t *testing.T) {
	calls := 0
	rtesting.NodeTests[*v1.Shop]{
		"counted": {
			Resource: shop,
			Verify:   func(*testing.T, reconcilers.Result, error) { calls++ },
		},
	}.RunNode(t, scheme, Node)
}

// A test without rows may change what is its own.
func TestAlone(t *testing.T) {
	own := shop.DeepCopy()
	own.Spec.Replicas = 3
	if _, err := Node().Reconcile(t.Context(), own); err != nil {
		t.Error(err)
	}
}
