package testing_test

import (
	"context"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
)

// create creates an object with the config of the request.
func create(obj client.Object) map[string]any {
	return does(func(ctx context.Context, _ *corev1.ConfigMap) error {
		return reconcilers.RetrieveConfigOrDie(ctx).Create(ctx, obj.DeepCopyObject().(client.Object))
	})
}

// patched compares in a way of its own.
type patched struct{ rtesting.Differ }

func (patched) Event(expected, actual rtesting.Event) string {
	if expected.Reason == actual.Reason {
		return ""
	}
	return "-\t" + expected.Reason + "\n+\t" + actual.Reason
}

func init() {
	other := settings.With(func(c *corev1.ConfigMap) { c.Name, c.Data = "other", map[string]string{"k": "w"} })
	for name, failing := range map[string]scenario{
		// What differs comes first, with the line of the row, then the details.
		"report": {
			run: func(t *testing.T) {
				cmTests{
					"a row": {
						Resource:      settings.Object(),
						ExpectCreates: []client.Object{other.With(func(c *corev1.ConfigMap) { c.Data["k"] = "v" })},
						ExpectEvents:  []rtesting.Event{rtesting.NewEvent(settings, scheme, "Normal", "Made", "made it")},
						Metadata:      create(other),
					},
				}.Run(t, scheme, nodeOf)
			},
			want: []string{`report_failing_test.go:45: row at report_failing_test.go:39: ExpectCreates[0] differs: ConfigMap default/other
  field:Data["k"]
  expected: "v"
  seen: "w"
ExpectEvents[0] not observed: Normal Made on ConfigMap default/settings: "made it"
  expected: 1 Event
  seen: no Event

ExpectCreates[0] differs (-expected, +actual):
`, "To expect it, set ExpectCreates[0] to:\n"},
			unwanted: []string{"v1.ConfigMap{TypeMeta:"},
		},
		"a row that cannot be found": {
			run: func(t *testing.T) {
				cmTests{"a " + settings.GetName(): {Resource: settings.Object(), Metadata: create(other)}}.Run(t, scheme, nodeOf)
			},
			want: []string{"report_failing_test.go:61: Unexpected Create observed: ConfigMap default/other"},
		},
		"a row that cannot be updated": {
			args: []string{"-rtesting.update"},
			run: func(t *testing.T) {
				cmTests{"a " + settings.GetName(): {Resource: settings.Object(), Metadata: create(other)}}.Run(t, scheme, nodeOf)
			},
			want: []string{
				`The row is not updated: no row has that name as a constant: "a settings". Paste the literals below.`,
				"Unexpected Create observed: ConfigMap default/other", "To expect it, add to ExpectCreates:",
			},
		},
		"a Differ of the test": {
			run: one(cmCase{
				Differ:       patched{rtesting.DefaultDiffer},
				ExpectEvents: []rtesting.Event{{Reason: "One"}},
				Metadata: does(func(ctx context.Context, c *corev1.ConfigMap) error {
					reconcilers.RetrieveConfigOrDie(ctx).Recorder.Event(c, "Normal", "Two", "")
					return nil
				}),
			}),
			want: []string{"differs: One on : \"\"\n  expected: One\n  seen: Two\n"},
		},
		"logs": {
			run: one(cmCase{ShouldErr: true, Metadata: does(func(ctx context.Context, c *corev1.ConfigMap) error {
				logr.FromContextOrDiscard(ctx).WithValues("given", c).Info("seen", "object", other, "number", 1)
				return nil
			})}),
			want: []string{
				`report_failing_test.go:88: "level"=0 "msg"="seen" "given"="ConfigMap default/settings" "object"="ConfigMap default/other" "number"=1`,
			},
		},
	} {
		scenarios[name] = failing
	}
}

func nodeOf(_ *testing.T, tc *cmCase, _ reconcilers.Config) reconcilers.SubReconciler[*corev1.ConfigMap] {
	return tc.Metadata["node"].(reconcilers.SubReconciler[*corev1.ConfigMap])
}
