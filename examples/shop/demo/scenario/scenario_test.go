package scenario_test

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	v1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
	"github.com/espalier-dev/espalier/examples/shop/demo/scenario"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
	"github.com/espalier-dev/espalier/internal/testenv/demo/demotest"
)

var plane = controlplanetest.Shared{Options: controlplane.Options{GarbageCollection: true, NamespaceDeletion: true}}

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard()) // a killed replica logs that it loses its Lease
	os.Exit(plane.Main(m))
}

var objects = demotest.Objects{Parts: []string{"demo-shop", "shop-operator"}, Kinds: []schema.GroupVersionKind{
	v1.GroupVersion.WithKind("Shop"),
	corev1.SchemeGroupVersion.WithKind("Namespace"),
	apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"),
	rbacv1.SchemeGroupVersion.WithKind("ClusterRole"),
	rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
}}

// TestScenario plays the scenario as in the demo, and as in the demo on a cluster that cannot call the sharder.
func TestScenario(t *testing.T) {
	controlplanetest.SkipIfShort(t)
	for name, calls := range map[string]bool{"with the webhook of the sharder": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			options, err := demo.NewOptions(plane.Environment(t), scenario.OperatorUser)
			if err != nil {
				t.Fatal(err)
			}
			options.Webhooks = calls
			demotest.Play(t, scenario.Open, options, objects, func(*demo.Scenario) {})
		})
	}
}
