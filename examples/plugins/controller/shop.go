// Package controller gives each shop what it is to have. [New] returns the tree. The operator does not know what a
// database and a queue consist of: plugins say so.
package controller

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier"
	v1 "github.com/espalier-dev/espalier/examples/plugins/api/v1"
	"github.com/espalier-dev/espalier/plugins"
	"github.com/espalier-dev/espalier/reconcilers"
)

// New returns the root of the tree. The host has the plugins.
func New(config reconcilers.Config, host *plugins.Host) *reconcilers.ResourceReconciler[*v1.Shop] {
	return espalier.For(config, Front(), Database(host), Queue(host))
}

// node is a part of the tree. Each can be tested alone.
type node = reconcilers.SubReconciler[*v1.Shop]

// Front is the Service by which people reach the shop. It is the operator's own. Plugins give Services, too, so that it
// needs labels to be told apart.
func Front() node {
	return espalier.Owns("Front", func(_ context.Context, shop *v1.Shop) (*corev1.Service, error) {
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: shop.Name}}
		service.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: 80}}
		service.Spec.Selector = map[string]string{"shop": shop.Name}
		return service, nil
	}).Labeled().Reports(v1.FrontReady)
}

// Database has a plugin of the category database say what the shop needs.
func Database(host *plugins.Host) node {
	return plugins.Capability[*v1.Shop](host, "database", "").
		Creates(&appsv1.StatefulSet{}, &corev1.Service{}, &corev1.Secret{}).
		Reports(v1.DatabaseReady).
		Asks(func(_ context.Context, shop *v1.Shop) (typ, version string) {
			return shop.Spec.Database.Type, shop.Spec.Database.Version
		})
}

// Queue has a plugin of the category queue say what the shop needs, if it has queues.
func Queue(host *plugins.Host) node {
	return plugins.Capability[*v1.Shop](host, "queue", "").
		Creates(&corev1.ConfigMap{}, &corev1.Service{}).
		Reports(v1.QueueReady).
		Asks(func(_ context.Context, shop *v1.Shop) (typ, version string) {
			if shop.Spec.Queue == nil {
				return "", ""
			}
			return shop.Spec.Queue.Type, ""
		})
}
