package component_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/reconcilers"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// left notes which objects are left.
type left struct {
	writesOf
	names []string
}

func (l *left) Note(_ context.Context, _ *reconcilers.Node, fact any) {
	if held, is := fact.(reconcilers.Held); is && held.Kind == reconcilers.HeldLeft {
		l.names = append(l.names, held.Object.Name)
	}
}

// TestObjectsThatAreLeft: an object that has lost its marks and is not desired any more stays. An event and the
// observers say so once. One that is left on purpose is not mentioned.
func TestObjectsThatAreLeft(t *testing.T) {
	strip := func(o *corev1.ConfigMap) {
		o.Labels, o.Annotations, o.ManagedFields = nil, nil, []metav1.ManagedFieldsEntry{{}}
	}
	takeOver := func(o *corev1.ConfigMap) {
		strip(o)
		o.Annotations = map[string]string{"other.example.com/owner-id": "Shop/north/corner/uid"}
	}
	const why = "Warning Left: Not deleted: ConfigMap default/roof "
	tests := map[string]struct {
		change    func(*corev1.ConfigMap)
		keeps     bool
		deleting  bool
		wantEvent string
	}{
		"stripped":       {change: strip, wantEvent: why + "(its owner label was removed)"},
		"taken over":     {change: takeOver, wantEvent: why + "(it belongs to Shop north/corner)"},
		"with the whole": {change: strip, deleting: true, wantEvent: why + "(its owner label was removed)"},
		"kept":           {change: strip, keeps: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			house, walls, roof := newHouse()
			if test.keeps {
				roof.Annotations[componentPrefix+"/delete-policy"] = "orphan"
				house.SetObjects(walls, roof)
			}
			deployed := rollOut(t, house, 0)
			o, told := newOperated(t, assembling(), deployed.Object(), deployed.Objects()), &left{}
			o.root.Config = o.root.Config.WithObserver(told)
			o.untilIdle(t)
			live := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: roof.Name}}
			o.change(t, live, func() { test.change(live) })
			if test.deleting {
				if err := o.client.Delete(t.Context(), o.house(t)); err != nil {
					t.Fatal(err)
				}
			} else {
				dropped := o.house(t)
				dropped.SetObjects(walls)
				dropped.Generation++
				if err := o.client.Update(t.Context(), dropped); err != nil {
					t.Fatal(err)
				}
			}
			for range 4 {
				if _, err := o.reconcile(t, 10*time.Minute); err != nil {
					t.Fatal(err)
				}
			}
			o.get(t, roof.Name, live)
			isOther := func(e string) bool { return !strings.Contains(e, " Left: ") }
			events := slices.DeleteFunc(slices.Clone(o.events), isOther)
			var want eventTexts
			var names []string
			if test.wantEvent != "" {
				want, names = eventTexts{test.wantEvent}, []string{roof.Name}
			}
			if !slices.Equal(events, want) || !slices.Equal(told.names, names) {
				t.Errorf("the events are %q and the observers hear of %v, want %q and %v",
					events, told.names, want, names)
			}
		})
	}
}
