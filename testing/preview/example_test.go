package preview_test

import (
	"fmt"
	"testing"

	"github.com/espalier-dev/espalier/edit"
	"github.com/espalier-dev/espalier/feature/gate"

	"github.com/espalier-dev/espalier/testing/preview"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Shop is what the objects depend on.
type Shop struct {
	Version string
	Tracing bool
}

// baseline is the Deployment of the newest version.
func baseline() *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "web", Image: "shop", Env: []corev1.EnvVar{{Name: "PORT", Value: "8080"}},
				}}},
			},
		},
	}
}

// changes are what differs from the baseline.
func changes(shop Shop) []edit.Change[*appsv1.Deployment] {
	return []edit.Change[*appsv1.Deployment]{
		edit.ForPods[*appsv1.Deployment]("old-port", gate.Version(shop.Version, "< 2"), ensureEnv("PORT", "80")),
		edit.ForPods[*appsv1.Deployment]("tracing", gate.When(shop.Tracing), ensureEnv("TRACING", "true")),
		{Name: "version", Edit: func(deployment *appsv1.Deployment) error {
			metav1.SetMetaDataLabel(&deployment.ObjectMeta, "app.kubernetes.io/version", shop.Version)
			return nil
		}},
	}
}

// ensureEnv returns a function that gives the container web an environment variable.
func ensureEnv(name, value string) func(*corev1.PodTemplateSpec) error {
	return func(pods *corev1.PodTemplateSpec) error {
		return edit.Container(pods, "web", func(web *corev1.Container) error {
			return edit.EnsureEnv(web, corev1.EnvVar{Name: name, Value: value})
		})
	}
}

// objects are what is deployed.
func objects(shop Shop) ([]client.Object, error) {
	deployment, err := edit.Apply(baseline(), changes(shop)...)
	if err != nil {
		return nil, err
	}
	return []client.Object{deployment}, nil
}

func TestShop(t *testing.T) {
	cases := preview.Matrix(Shop{},
		preview.Axis[Shop]{
			"v1":   func(shop *Shop) { shop.Version = "1.9.0" },
			"v2":   func(shop *Shop) { shop.Version = "2.0.0" },
			"v2rc": func(shop *Shop) { shop.Version = "2.0.0-rc.1" },
		},
		preview.Axis[Shop]{
			"plain":  nil,
			"traced": func(shop *Shop) { shop.Tracing = true },
		},
	)
	preview.Golden(t, preview.Config[Shop]{Dir: "testdata/shop", Render: objects, Cases: cases})
	preview.Changes(t, cases, changes)
}

func Example() {
	shop := Shop{Version: "1.9.0", Tracing: true}
	enabled, _ := edit.Enabled(changes(shop)...)
	deployed, err := objects(shop)
	if err != nil {
		fmt.Println(err)
		return
	}
	text, _ := preview.Text(deployed, nil)
	fmt.Printf("%v\n%s", enabled, text)
	// Output:
	// [old-port tracing version]
	// apiVersion: apps/v1
	// kind: Deployment
	// metadata:
	//   labels:
	//     app.kubernetes.io/version: 1.9.0
	//   name: web
	//   namespace: shop
	// spec:
	//   selector:
	//     matchLabels:
	//       app: web
	//   strategy: {}
	//   template:
	//     metadata:
	//       labels:
	//         app: web
	//     spec:
	//       containers:
	//       - env:
	//         - name: PORT
	//           value: "80"
	//         - name: TRACING
	//           value: "true"
	//         image: shop
	//         name: web
	//         resources: {}
}
