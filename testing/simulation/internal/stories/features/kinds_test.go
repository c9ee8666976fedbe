package features_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/test/features"
	"github.com/espalier-dev/espalier/testing/simulation"
	"github.com/espalier-dev/espalier/testing/simulation/internal/stories"
)

func certificate(name string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(features.CertificateKind)
	obj.SetNamespace("default")
	obj.SetName(name)
	return obj
}

// certificateTree has two nodes for certificates. A field of the spec says whether there is one.
func certificateTree(config reconcilers.Config) *reconcilers.ResourceReconciler[*resources.Widget] {
	node := func(name string) reconcilers.SubReconciler[*resources.Widget] {
		return espalier.Owns(name, func(_ context.Context, w *resources.Widget) (*unstructured.Unstructured, error) {
			if w.Spec.Fields[name] == "" {
				return nil, nil
			}
			return certificate(strings.ToLower(name)), nil
		}).Type(certificate("")).Labeled().Reports(name)
	}
	return espalier.For(config, espalier.When("First", func(_ context.Context, w *resources.Widget) bool {
		return w.Spec.Fields["First"] != ""
	}, node("First")), espalier.When("Second", func(_ context.Context, w *resources.Widget) bool {
		return w.Spec.Fields["Second"] != ""
	}, node("Second")))
}

// noDoubt says that no condition says that a cache does not sync, once the cache of certificates has: the first
// certificate is there then. Before that, an API server may restart for longer than a read waits.
func noDoubt() simulation.Invariant {
	return simulation.Invariant{Name: "the caches sync", Check: func(w simulation.Write, s simulation.State) error {
		after := &resources.Widget{}
		if w.Kind.Kind != "Widget" || !w.After(after) || !s.Get(certificate("first")) {
			return nil
		}
		for _, c := range after.Status.Conditions {
			if strings.Contains(c.Message, "does not sync") {
				return fmt.Errorf("the condition %s says: %s", c.Type, c.Message)
			}
		}
		return nil
	}}
}

// TestAKindThatIsNeededLater has a second node need a kind long after the first.
func TestAKindThatIsNeededLater(t *testing.T) {
	scheme := resources.NewScheme()
	options := simulation.Options{
		Operator: func(ctx context.Context, mgr ctrl.Manager) error {
			return certificateTree(espalier.NewConfig(mgr)).SetupWithManager(ctx, mgr)
		},
		Scheme:      scheme,
		Definitions: []*apiextensionsv1.CustomResourceDefinition{resources.CRD(), certificates()},
		Always:      []simulation.Invariant{noDoubt()},
	}
	simulation.RunSeeds(t, options, func(w *simulation.World) {
		widget := &resources.Widget{ObjectMeta: stories.Named("default", "a")}
		widget.Spec.Fields = map[string]string{"First": "yes"}
		w.Create(widget)
		w.Rest()
		w.Update(widget, func() { widget.Spec.Fields["Second"] = "yes" })
		w.Rest()
		if !w.Exists(certificate("second")) {
			w.Error("the second certificate was not created")
		}
		w.Idle(time.Hour)
	})
}
