package features

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/edit"
	"github.com/espalier-dev/espalier/feature"
	"github.com/espalier-dev/espalier/feature/gate"
	"github.com/espalier-dev/espalier/objects"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"
)

// New returns the root. The condition Healthy sums up the features.
func New(config reconcilers.Config) *reconcilers.ResourceReconciler[*App] {
	return espalier.For(config, &feature.Features[*App]{
		Condition: "Healthy",
		Features: []*feature.Feature[*App]{
			Infrastructure(), Backend(), Client(), Batch(), Certificate(), Frontend(),
		},
	})
}

// grace is how long a feature may take.
const grace = 5 * time.Minute

func suspended(_ context.Context, app *App) (bool, error) { return app.Spec.Suspended, nil }

func named(suffix string) func(*App) string {
	return func(app *App) string { return app.Name + "-" + suffix }
}

// Infrastructure is what the backend waits for.
func Infrastructure() *feature.Feature[*App] {
	return &feature.Feature[*App]{
		Name:       "Infrastructure",
		Reconciler: espalier.Owns("Settings", objects.ConfigMap(named("settings"), settings)).Labeled(),
	}
}

func settings(_ context.Context, app *App) (map[string]string, error) {
	return map[string]string{"version": app.Spec.Version}, nil
}

// Backend is not rolled out before the infrastructure is ready.
func Backend() *feature.Feature[*App] {
	return &feature.Feature[*App]{
		Name: "Backend", GracePeriod: grace, Suspended: suspended,
		Prerequisites: []feature.Prerequisite[*App]{feature.DependsOn[*App]("InfrastructureReady")},
		Reconciler: espalier.Owns("Backend", func(_ context.Context, app *App) (*appsv1.Deployment, error) {
			return deployment(app, "backend"), nil
		}).Labeled(),
	}
}

// endpoint is where the database answers, and password is what it asks for.
var (
	endpoint = stash.New[string]("apps.example.com/endpoint")
	password = stash.New[*corev1.Secret]("apps.example.com/password")
)

// Client waits for what others write: the endpoint into its database, and the Secret of a user, which has to be filled.
func Client() *feature.Feature[*App] {
	return &feature.Feature[*App]{
		Name: "Client", GracePeriod: grace, Suspended: suspended,
		Reconciler: espalier.Steps(
			espalier.Yield(espalier.Owns("Password", passwordOf).ReadOnly(), password,
				func(live *corev1.Secret) (*corev1.Secret, error) { return live, nil }),
			espalier.Yield(
				espalier.Owns("Database", objects.ConfigMap(named("database"), settings)).Labeled().Independent(),
				endpoint, endpointOf),
			espalier.Owns("Client", client).Labeled().Needs(endpoint, password).Guard(filled),
		),
	}
}

func passwordOf(_ context.Context, app *App) (*corev1.Secret, error) {
	return &corev1.Secret{ObjectMeta: meta(app, "password")}, nil
}

// endpointOf takes the endpoint from the annotation that the database writes.
func endpointOf(live *corev1.ConfigMap) (string, error) {
	if live.Annotations["endpoint"] == "" {
		return "", espalier.NotReady("NoEndpoint", "the database has no endpoint yet")
	}
	return live.Annotations["endpoint"], nil
}

// filled waits until the Secret has a password.
func filled(ctx context.Context, _ *App) (string, error) {
	if secret := password.RetrieveOrEmpty(ctx); secret != nil && len(secret.Data["password"]) == 0 {
		return "the Secret " + secret.Name + " has no password", nil
	}
	return "", nil
}

func client(ctx context.Context, app *App) (*appsv1.Deployment, error) {
	d := deployment(app, "client")
	hash, err := objects.DataHash(password.RetrieveOrEmpty(ctx))
	if err != nil {
		return nil, err
	}
	return d, edit.PodTemplate(d, func(pods *corev1.PodTemplateSpec) error {
		pods.Annotations = map[string]string{"password": hash}
		return edit.Container(pods, "app", func(c *corev1.Container) error {
			return edit.EnsureEnv(c, corev1.EnvVar{Name: "ENDPOINT", Value: endpoint.RetrieveOrEmpty(ctx)})
		})
	})
}

// Batch is healthy once its Deployment says that it has worked. That it works is no fault, however long it takes.
func Batch() *feature.Feature[*App] {
	return &feature.Feature[*App]{
		Name: "Batch", GracePeriod: grace, Suspended: suspended,
		Reconciler: espalier.Owns("Batch", func(_ context.Context, app *App) (*appsv1.Deployment, error) {
			return deployment(app, "batch"), nil
		}).Labeled().Health(worked),
	}
}

func worked(live *appsv1.Deployment) apis.Health {
	if live.Annotations["worked"] == "" {
		return apis.Health{State: apis.StateCreating, Message: "it has not worked yet"}
	}
	return apis.Health{State: apis.StateHealthy}
}

// CertificateKind is a type that another operator brings.
var CertificateKind = schema.GroupVersionKind{Group: "certs.example.com", Version: "v1", Kind: "Certificate"}

// Certificate is an object of that type, which the operator does not know in Go. It is healthy if it says Issued.
func Certificate() *feature.Feature[*App] {
	sample := &unstructured.Unstructured{}
	sample.SetGroupVersionKind(CertificateKind)
	return &feature.Feature[*App]{
		Name: "Certificate", GracePeriod: grace,
		Gate: func(_ context.Context, app *App) gate.Gate { return gate.When(app.Spec.Domain != "") },
		Reconciler: espalier.Owns("Certificate", func(_ context.Context, app *App) (*unstructured.Unstructured, error) {
			c := sample.DeepCopy()
			c.SetNamespace(app.Namespace)
			c.SetName(app.Name)
			return c, unstructured.SetNestedField(c.Object, app.Spec.Domain, "spec", "domain")
		}).Type(sample).Health(issued),
	}
}

func issued(live *unstructured.Unstructured) apis.Health {
	if state, _, _ := unstructured.NestedString(live.Object, "status", "state"); state != "Issued" {
		return apis.Health{State: apis.StateOperationPending, Grade: apis.StateDegraded, Message: "it is not issued"}
	}
	return apis.Health{State: apis.StateOperational}
}

// Frontend differs by version and by what is switched on.
func Frontend() *feature.Feature[*App] {
	return &feature.Feature[*App]{
		Name: "Frontend", GracePeriod: grace, Suspended: suspended,
		Reconciler: espalier.Steps(
			espalier.Owns("Frontend", DesiredFrontend).Labeled(),
			espalier.Owns("Metrics", objects.ConfigMap(named("metrics"), settings)).Labeled().Gate(metrics),
		),
	}
}

func metrics(_ context.Context, app *App) gate.Gate {
	return gate.All(gate.When(app.Spec.Metrics), gate.Version(app.Spec.Version, ">= 1.5"))
}

// DesiredFrontend returns the Deployment of the frontend.
func DesiredFrontend(ctx context.Context, app *App) (*appsv1.Deployment, error) {
	return edit.Apply(deployment(app, "frontend"), changes(ctx, app)...)
}

// changes walk back to older versions first.
func changes(ctx context.Context, app *App) []edit.Change[*appsv1.Deployment] {
	env := func(name, value string) func(*corev1.PodTemplateSpec) error {
		return func(pods *corev1.PodTemplateSpec) error {
			return edit.Container(pods, "app", func(c *corev1.Container) error {
				return edit.EnsureEnv(c, corev1.EnvVar{Name: name, Value: value})
			})
		}
	}
	return []edit.Change[*appsv1.Deployment]{
		edit.ForPods[*appsv1.Deployment]("old-port", gate.Version(app.Spec.Version, "< 2"), env("PORT", "80")),
		edit.ForPods[*appsv1.Deployment]("metrics", metrics(ctx, app), env("METRICS", "true")),
		edit.ForPods[*appsv1.Deployment]("tracing", gate.When(app.Spec.Tracing),
			func(pods *corev1.PodTemplateSpec) error {
				tracing := corev1.Container{Name: "tracing", Image: "tracing:1"}
				pods.Spec.Containers = append(pods.Spec.Containers, tracing)
				return nil
			}),
	}
}

// deployment is the baseline of all, as the newest version needs it.
func deployment(app *App, part string) *appsv1.Deployment {
	labels := map[string]string{"app": app.Name, "part": part}
	d := &appsv1.Deployment{ObjectMeta: meta(app, part)}
	d.Spec.Replicas = new(int32(1))
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = labels
	d.Spec.Template.Spec.Containers = []corev1.Container{{
		Name: "app", Image: "app:" + app.Spec.Version, Env: []corev1.EnvVar{{Name: "PORT", Value: "8080"}},
	}}
	return d
}

func meta(app *App, suffix string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: app.Namespace, Name: named(suffix)(app)}
}
