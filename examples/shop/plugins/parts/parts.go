// Package parts has the parts of a shop that consist of what plugins say: its database and its queues. The operator
// does not know what these are.
package parts

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
	"github.com/espalier-dev/espalier/examples/shop/controller"
	"github.com/espalier-dev/espalier/plugins"
)

// Database has a plugin of the category database say what the shop needs, if it has a database.
func Database(host *plugins.Host) controller.Part {
	return plugins.Capability[*v1.Shop](host, "database", "").
		Creates(&appsv1.StatefulSet{}, &corev1.Service{}, &corev1.Secret{}).
		Reports(v1.DatabaseReady).
		Asks(func(_ context.Context, shop *v1.Shop) (typ, version string) {
			if shop.Spec.Database == nil {
				return "", ""
			}
			return shop.Spec.Database.Type, shop.Spec.Database.Version
		})
}

// Queue has a plugin of the category queue say what the shop needs, if it has queues.
func Queue(host *plugins.Host) controller.Part {
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
