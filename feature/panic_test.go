package feature_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	gates "github.com/espalier-dev/espalier/feature/gate"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestPanics: a feature is not ready if one of its functions panics, or a node below it.
func TestPanics(t *testing.T) {
	healthy := reports("ConfigMap a Healthy")
	table := rtesting.RootTests{}
	roots := map[string]*featureOf{}
	for name, test := range map[string]struct {
		change func(f *featureOf)
		at     string
		record edit
	}{
		"nested node": {
			func(f *featureOf) { f.Reconciler = careless{} }, "Till/careless",
			since(apis.FeatureProgressing, later, true),
		},
		"gate": {
			func(f *featureOf) { f.Gate = func(context.Context, *Shop) gates.Gate { panic("no data") } }, "Till", nil,
		},
		"suspended": {
			func(f *featureOf) { f.Suspended = func(context.Context, *Shop) (bool, error) { panic("no data") } }, "Till", nil,
		},
		"health": {
			func(f *featureOf) {
				f.Health = map[schema.GroupKind]func(client.Object) apis.Health{
					{Kind: "ConfigMap"}: func(client.Object) apis.Health { panic("no data") },
				}
				f.Reconciler = observing{}
			}, "Till", nil,
		},
	} {
		said := "ShopResourceReconciler/" + test.at + ": panicked: no data"
		ready := []edit{healthy, was(apis.FeatureHealthy, true), is("TillReady", metav1.ConditionTrue, apis.StateHealthy, "")}
		becomes := append(ready, is("TillReady", metav1.ConditionFalse, apis.StateError, said))
		if test.record != nil {
			becomes = append(becomes, test.record, is("CashReady", metav1.ConditionFalse, apis.StateError, said))
		}
		becomes = append(becomes, func(s *Shop) {
			for i := range s.Status.Conditions {
				s.Status.Conditions[i].ObservedGeneration = s.Generation
			}
			slices.SortFunc(s.Status.Conditions, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
		})
		roots[name] = till(scripted{})
		test.change(roots[name])
		table[name] = rtesting.ReconcilerTestCase{
			Now: later, Request: reconcilers.Request{NamespacedName: client.ObjectKeyFromObject(shop.Object())},
			GivenObjects:        []client.Object{shop.With(ready...)},
			ExpectStatusUpdates: []client.Object{shop.With(becomes...)},
			ExpectEvents:        []rtesting.Event{rtesting.NewEvent(shop, scheme, "Normal", "StatusUpdated", "Updated status")},
			ExpectedErr:         errors.New(said),
		}
	}
	table.Run(t, scheme, func(
		_ *testing.T, row *rtesting.ReconcilerTestCase, c reconcilers.Config,
	) reconcile.Reconciler {
		return &reconcilers.ResourceReconciler[*Shop]{Reconciler: roots[row.Name], Config: c}
	})
}

// careless panics.
type careless struct{ scripted }

func (careless) Reconcile(context.Context, *Shop) (reconcilers.Result, error) { panic("no data") }

func (careless) Describe() reconcilers.Description {
	return reconcilers.Description{Kind: "careless", Name: "careless", Conditions: []string{"CashReady"}}
}

// observing reports a ConfigMap that is there.
type observing struct{ scripted }

func (observing) Reconcile(ctx context.Context, shop *Shop) (reconcilers.Result, error) {
	kind := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	reconcilers.SupervisorOf(ctx).Observe(reconcilers.ObservedObject{Kind: kind, Name: "a", Object: shop})
	return reconcilers.Result{}, nil
}
