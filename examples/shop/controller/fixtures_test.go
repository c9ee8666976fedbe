package controller_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
	"github.com/espalier-dev/espalier/examples/shop/controller"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
)

// Short names for what all tables are made of.
type (
	object = client.Object
	tests  = rtesting.NodeTests[*v1.Shop]
	node   = reconcilers.SubReconciler[*v1.Shop]
)

var scheme = mustScheme()

func mustScheme() *runtime.Scheme {
	s, err := controller.NewScheme()
	if err != nil {
		panic(err)
	}
	return s
}

// run runs a table with the node that make returns, anew for each case.
func run(t *testing.T, table tests, make func() node) {
	t.Helper()
	table.RunNode(t, scheme, make)
}

var shop = rtesting.NewFixture(&v1.Shop{
	ObjectMeta: metav1.ObjectMeta{Namespace: "market", Name: "web", UID: "web-uid", Generation: 1},
	Spec:       v1.ShopSpec{Image: "shop:1", Replicas: 2},
})

func terminating(s *v1.Shop) {
	s.DeletionTimestamp = &metav1.Time{Time: metav1.Unix(2000, 0).Time}
	s.Finalizers = []string{finalizer}
}

// is makes a condition of the shop say so.
func is(condition string, status metav1.ConditionStatus, reason, message string) func(*v1.Shop) {
	return func(s *v1.Shop) {
		reconcilers.SetCondition(context.Background(), s, metav1.Condition{
			Type: condition, Status: status, Reason: reason, Message: message,
		})
	}
}

// childMeta is the metadata of an object that the shop owns.
func childMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: "market",
		Name:      name,
		Labels:    map[string]string{"app.kubernetes.io/name": "shop", "app.kubernetes.io/instance": "web"},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "shop.example.com/v1", Kind: "Shop", Name: "web", UID: "web-uid",
			Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
		}},
	}
}

// normal is an event about the shop.
func normal(reason, message string) []rtesting.Event {
	return []rtesting.Event{rtesting.NewEvent(shop, scheme, corev1.EventTypeNormal, reason, "%s", message)}
}
