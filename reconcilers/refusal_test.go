package reconcilers_test

import (
	"context"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	rtime "github.com/espalier-dev/espalier/time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A write that was refused as invalid is sent again only after something that may change the answer has changed.
func TestRefusedWriteIsNotSentAgain(t *testing.T) {
	invalid := apierrs.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "gadget",
		field.ErrorList{field.Invalid(field.NewPath("data"), "", "field is immutable")})
	managers := map[string]func() reconcilers.ObjectManager[*corev1.ConfigMap]{
		"updated": func() reconcilers.ObjectManager[*corev1.ConfigMap] {
			return &configMaps{MergeBeforeUpdate: mergeConfigMap}
		},
		"applied": func() reconcilers.ObjectManager[*corev1.ConfigMap] { return &configMapManager{FieldManager: "widgets"} },
	}
	for name, manager := range managers {
		for _, exists := range []bool{true, false} {
			t.Run(name+map[bool]string{true: "", false: ", created"}[exists], func(t *testing.T) {
				refused, color, reflected := 0, "red", error(nil)
				lenient := false
				refuse := func(action rtesting.Action) (bool, runtime.Object, error) {
					verb := action.GetVerb()
					if lenient || action.GetResource().Resource != "ConfigMap" || verb == "get" || verb == "list" {
						return false, nil, nil
					}
					refused++
					return true, nil, invalid
				}
				given := []client.Object{steadyWidget}
				if exists {
					given = append(given, givenConfigMap.With(func(c *corev1.ConfigMap) { c.ResourceVersion = "7" }))
				}
				expect := expectWidget(given...)
				expect.WithReactors = []rtesting.ReactionFunc{refuse}
				config := expect.Config()
				recorder := record.NewFakeRecorder(100)
				config.Recorder = recorder
				node := changedChild(desires(func(child *corev1.ConfigMap) (*corev1.ConfigMap, error) {
					child.Data["color"] = color
					return child, nil
				}))(&trace{}).(*configMapNode)
				node.ReflectChildStatusOnParent = func(_ context.Context, _ *resources.Widget, _ *corev1.ConfigMap, err error) { reflected = err }
				node.ChildObjectManager = manager()
				root := &widgetRoot{Reconciler: node, Config: config}
				now := requestTime
				steps := func(what string, sent, events int) {
					t.Helper()
					refused = 0
					for range 5 {
						reflected = nil
						now = now.Add(time.Second)
						result, err := root.Reconcile(rtime.StashNow(t.Context(), now), widgetRequest)
						if err != nil || result != nothing || !apierrs.IsInvalid(reflected) {
							t.Errorf("%s: it returned %+v, %v and reflected %v, want %+v, nil and an invalid object",
								what, result, err, reflected, nothing)
						}
					}
					if refused != sent {
						t.Errorf("%s: %d writes were sent, want %d", what, refused, sent)
					}
					if n := len(recorder.Events); n != events {
						t.Errorf("%s: %d events have been recorded, want %d", what, n, events)
					}
				}
				steps("at first", 1, 1)
				color = "green"
				steps("something else is desired", 1, 2)
				events := 2
				if exists {
					lenient = true
					child := &corev1.ConfigMap{}
					if err := config.Get(t.Context(), widgetKey, child); err != nil {
						t.Fatal(err)
					}
					child.Labels = map[string]string{"changed": "true"}
					if err := config.Update(t.Context(), child); err != nil {
						t.Fatal(err)
					}
					lenient = false
					events++
					steps("the object was changed", 1, events)
				}
				now = now.Add(10*time.Minute - 10*time.Second)
				steps("just before ten minutes", 0, events)
				steps("after ten minutes", 1, events+1)
			})
		}
	}
}
