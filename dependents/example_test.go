package dependents_test

import (
	"context"
	"fmt"

	"github.com/espalier-dev/espalier/dependents"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The application needs a password that somebody else stores in a secret. It is deployed as soon as the secret is
// there. The settings do not wait for that.
func ExampleSet() {
	password := dependents.NewCell[string]("password")

	secret := dependents.Of("secret", func(_ context.Context, w *resources.Widget) (*corev1.Secret, error) {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "database"}}, nil
	}).ReadOnly()
	dependents.Yield(secret, password, func(live *corev1.Secret) (string, error) {
		if len(live.Data["password"]) == 0 {
			return "", fmt.Errorf("the secret has no password")
		}
		return string(live.Data["password"]), nil
	})

	name := func(w *resources.Widget) string { return w.Name }
	settings := dependents.ConfigMap("settings", name,
		func(context.Context, *resources.Widget) (map[string]string, error) {
			return map[string]string{"color": "blue"}, nil
		})

	deployment, service := dependents.DeploymentWithService("app",
		func(ctx context.Context, w *resources.Widget) (*dependents.Workload, error) {
			value, _ := dependents.Value(ctx, password)
			return &dependents.Workload{
				Name: w.Name, Image: "gadget:1", Port: 8080,
				Env: []corev1.EnvVar{{Name: "PASSWORD_LENGTH", Value: fmt.Sprint(len(value))}},
			}, nil
		})
	deployment.Needs(password).After("settings")
	service.After("app").Auxiliary()

	set := &dependents.Set[*resources.Widget]{
		Name:       "Dependents",
		Condition:  "DependentsReady",
		Dependents: []dependents.Node[*resources.Widget]{service, deployment, settings, secret},
	}
	fmt.Println(set.Validate(context.Background()))
	fmt.Print(set.Graph())

	// A function of a dependent can be tested alone.
	ctx := dependents.WithValue(context.Background(), password, "secret")
	fmt.Println(dependents.Value(ctx, password))
	// Output:
	// <nil>
	// settings     ConfigMap
	// secret       Secret ReadOnly, yields "password"
	// app          Deployment, needs "password", after "settings"
	// app-service  Service Auxiliary, after "app"
	// secret true
}
