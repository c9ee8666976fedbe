package reconcilers_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/feature/gate"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func desiredMeter(name string) func(context.Context, *resources.Widget) (*meter, error) {
	return func(_ context.Context, w *resources.Widget) (*meter, error) {
		return &meter{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name + name},
			Spec:       map[string]string{"of": name},
		}, nil
	}
}

// reports fails unless these conditions of a Widget have these reasons soon.
func (o *meterOperator) reports(t *testing.T, w *resources.Widget, want map[string]string) {
	t.Helper()
	eventually(t, fmt.Sprintf("Widget %s does not report %v", w.Name, want), func(ctx context.Context) error {
		now := &resources.Widget{}
		if err := o.live.Get(ctx, client.ObjectKeyFromObject(w), now); err != nil {
			return err
		}
		for conditionType, reason := range want {
			found := reconcilers.GetCondition(now, conditionType)
			if found == nil || found.Reason != reason {
				return fmt.Errorf("it reports %v", now.Status.Conditions)
			}
		}
		return nil
	})
}

// In the short form each kind is optional: one that the cluster does not serve stops only its node, and none if its gate
// is off, if it may be missing, or if it is to be absent.
func TestTheShortFormGoesOnWithoutAKind(t *testing.T) {
	t.Parallel()
	off := func(context.Context, *resources.Widget) gate.Gate { return gate.When(false) }
	each := func(ctx context.Context, w *resources.Widget) ([]*meter, error) {
		one, err := desiredMeter("-each")(ctx, w)
		return []*meter{one}, err
	}
	key := func(_ context.Context, w *resources.Widget) types.NamespacedName {
		return types.NamespacedName{Namespace: w.Namespace, Name: w.Name + "-one"}
	}
	configMap := func(_ context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name}}, nil
	}
	o := startMeterOperator(t, meterKind("short"), plane.Config(t), espalier.Steps(
		espalier.Owns("Off", desiredMeter("-off")).Labeled().Gate(off).Reports("Off"),
		espalier.Owns[*resources.Widget, *meter]("Old", nil).Labeled().Absent().Reports("Old"),
		espalier.Owns("Ignored", desiredMeter("-other")).ReadOnly().Optional().Reports("Ignored"),
		espalier.Owns("One", desiredMeter("-one")).Labeled().Reports("One"),
		espalier.OwnsEach("Each", each).Labeled().Reports("Each"),
		espalier.Reads("Read", stash.New[*meter]("test.espalier.dev/read"), key).Optional().Reports("Read"),
		espalier.Owns("Map", configMap).Reports("Map"),
	))
	w := o.widget(t, "short", "")
	for range 2 {
		o.reports(t, w, map[string]string{
			"Off": "NotDesired", "Old": "NotDesired", "Ignored": "NotFound", "One": "KindNotServed", "Each": "KindNotServed",
			"Read": "KindNotServed", "Map": "Ready",
		})
		o.install(t)
		o.reports(t, w, map[string]string{
			"Off": "NotDesired", "Old": "NotDesired", "Ignored": "NotFound", "One": "Ready", "Each": "Ready",
			"Read": "Found", "Map": "Ready",
		})
		o.uninstall(t)
	}
}

// A new name is a new object, and the old one goes when the new one is ready.
func TestOwnsRenamesOnAnAPIServer(t *testing.T) {
	t.Parallel()
	o := startMeterOperator(t, meterKind("renames"), plane.Config(t), espalier.Steps(
		espalier.Owns("Config", func(_ context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
			name := w.Name + "-" + w.Spec.Fields["meter"]
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}}, nil
		}).Labeled().Reports("Config"),
		espalier.Owns("Data", func(_ context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
			name := w.Name + "-data-" + w.Spec.Fields["meter"]
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}}, nil
		}).Labeled().CreateOnly().Reports("Data"),
	))
	w := o.widget(t, "named", "a")
	o.reports(t, w, map[string]string{"Config": "Ready", "Data": "Ready"})
	o.owns(t, w, "named-a", "named-data-a")

	base := w.DeepCopyObject().(*resources.Widget)
	w.Spec.Fields = map[string]string{"meter": "b"}
	if err := o.live.Patch(t.Context(), w, client.MergeFrom(base)); err != nil {
		t.Fatal(err)
	}
	o.reports(t, w, map[string]string{"Config": "Ready", "Data": "NameChanged"})
	o.owns(t, w, "named-b", "named-data-a")
}

// owns fails unless the ConfigMaps that a Widget owns have these names soon.
func (o *meterOperator) owns(t *testing.T, w *resources.Widget, want ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("Widget %s does not own %v", w.Name, want), func(ctx context.Context) error {
		list := &corev1.ConfigMapList{}
		if err := o.live.List(ctx, list, client.InNamespace(w.Namespace)); err != nil {
			return err
		}
		var names []string
		for i := range list.Items {
			if metav1.IsControlledBy(&list.Items[i], w) {
				names = append(names, list.Items[i].Name)
			}
		}
		if fmt.Sprint(names) != fmt.Sprint(want) {
			return fmt.Errorf("it owns %v", names)
		}
		return nil
	})
}
