package espalier_test

import (
	"context"
	"fmt"
	"time"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/objects"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
)

// A tree has fields of its root, and options of its controller: four workers, and retries after ten minutes at most.
func ExampleFor() {
	root := espalier.For[*resources.Widget](reconcilers.Config{})
	root.Setup = func(_ context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
		bldr.WithOptions(controller.Options{
			MaxConcurrentReconciles: 4,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcilers.Request](
				100*time.Millisecond, 10*time.Minute),
		})
		return nil
	}
	fmt.Println(root.Validate(context.Background()))
	// Output: <nil>
}

// The application needs a password that somebody else stores in a secret. It is deployed as soon as the secret is
// there. The settings do not wait for that.
func ExampleYield() {
	password := stash.New[string]("example.com/password")
	name := func(w *resources.Widget) string { return w.Name }

	secret := espalier.Owns("Secret", func(_ context.Context, w *resources.Widget) (*corev1.Secret, error) {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "database"}}, nil
	}).ReadOnly()
	settings := func(context.Context, *resources.Widget) (map[string]string, error) {
		return map[string]string{"color": "blue"}, nil
	}
	workload := func(ctx context.Context, w *resources.Widget) (*objects.Workload, error) {
		return &objects.Workload{
			Name: w.Name, Image: "gadget:1", Port: 8080,
			Env: []corev1.EnvVar{{Name: "PASSWORD_LENGTH", Value: fmt.Sprint(len(password.RetrieveOrEmpty(ctx)))}},
		}, nil
	}

	root := espalier.For(reconcilers.Config{},
		espalier.Yield(secret, password, func(live *corev1.Secret) (string, error) {
			if len(live.Data["password"]) == 0 {
				return "", espalier.NotReady("NoPassword", "the secret has no password")
			}
			return string(live.Data["password"]), nil
		}),
		espalier.Owns("Settings", objects.ConfigMap(name, settings)),
		espalier.Owns("Deployment", objects.Deployment(workload)).Needs(password).After("Settings"),
		espalier.Owns("Service", objects.Service(workload)).After("Deployment").Auxiliary(),
	)
	fmt.Println(root.Validate(context.Background()))
	fmt.Print(reconcilers.Describe(root))

	// A function of a node can be tested alone.
	ctx := stash.WithContext(context.Background())
	password.Store(ctx, "secret")
	desired, _ := objects.Deployment(workload)(ctx, &resources.Widget{})
	fmt.Println(desired.Spec.Template.Spec.Containers[0].Env[0].Value)
	// Output:
	// <nil>
	// ResourceReconciler "Widget" Widget
	// └─ List
	//    ├─ Owns "Secret" Secret ReadOnly, yields "example.com/password"
	//    ├─ Owns "Settings" ConfigMap
	//    ├─ Owns "Deployment" Deployment, needs "example.com/password", after "Settings"
	//    └─ Owns "Service" Service Auxiliary, after "Deployment"
	// 6
}
