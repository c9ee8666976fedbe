package testing_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
)

// beside is a suite of a case that must fail and another that must still run.
func beside(tc cmCase) func(t *testing.T) {
	tc.Name = "first"
	if tc.Resource == nil {
		tc.Resource = settings.Object()
	}
	if tc.Metadata == nil {
		tc.Metadata = does(nothing)
	}
	return func(t *testing.T) {
		rtesting.SubReconcilerTestSuite[*corev1.ConfigMap]{
			tc, {Name: "second", Resource: settings.Object(), Metadata: does(nothing)},
		}.Run(t, scheme, func(_ *testing.T, tc *cmCase, _ reconcilers.Config) reconcilers.SubReconciler[*corev1.ConfigMap] {
			return tc.Metadata["node"].(reconcilers.SubReconciler[*corev1.ConfigMap])
		})
	}
}

// besideWhole is beside for a root.
func besideWhole(tc rtesting.ReconcilerTestCase, factory rtesting.ReconcilerFactory) func(t *testing.T) {
	tc.Name = "first"
	return func(t *testing.T) {
		rtesting.ReconcilerTestSuite{tc}.Run(t, scheme, factory)
		rtesting.ReconcilerTestSuite{{Name: "second", Request: request}}.Run(t, scheme, newCopier)
	}
}

const secondRuns = "PASS: " + "%s/second"

func panics(context.Context, *corev1.ConfigMap) error {
	(&corev1.ConfigMap{}).Data["a"] = "b"
	return nil
}

func init() {
	terminating := settings.With(func(c *corev1.ConfigMap) {
		c.Name, c.DeletionTimestamp = "leaving", new(metav1.NewTime(time.Now()))
	})
	for name, failing := range map[string]scenario{
		"given twice": {
			run:      beside(cmCase{GivenObjects: []client.Object{pod, changed.With(func(c *corev1.ConfigMap) { c.Name = "a" }), pod}}),
			want:     []string{"GivenObjects[2] and GivenObjects[0] are the same object, Pod default/", secondRuns},
			unwanted: []string{"goroutine"},
		},
		"resource given again": {
			run: beside(cmCase{GivenObjects: []client.Object{settings}}),
			want: []string{
				"Resource and GivenObjects[0] are the same object, ConfigMap default/settings: the row gives the Resource by itself",
				secondRuns,
			},
		},
		"given twice to the reader of a whole": {
			run:  besideWhole(rtesting.ReconcilerTestCase{APIGivenObjects: []client.Object{settings, settings}}, newCopier),
			want: []string{"APIGivenObjects[1] and APIGivenObjects[0] are the same object, ConfigMap default/settings", secondRuns},
		},
		"given twice elsewhere": {
			run: beside(cmCase{AdditionalConfigs: map[string]rtesting.ExpectConfig{
				"elsewhere": {GivenObjects: []client.Object{settings, settings}},
			}}),
			want: []string{`GivenObjects[1] and GivenObjects[0] are the same object, ConfigMap default/settings for config "elsewhere"`, secondRuns},
		},
		"given twice to a config made by hand": {
			run: func(t *testing.T) {
				t.Run("first", func(t *testing.T) {
					c := rtesting.ExpectConfig{Scheme: scheme, GivenObjects: []client.Object{pod, pod}}
					if err := c.Config().Get(t.Context(), request.NamespacedName, settings.Object()); err != nil {
						t.Log("get: ", err)
					}
					if err := c.Config().APIReader.List(t.Context(), &corev1.ConfigMapList{}); err != nil {
						t.Log("list: ", err)
					}
					c.AssertExpectations(t)
				})
				t.Run("second", func(*testing.T) {})
			},
			want: []string{
				"get:  GivenObjects[1] and GivenObjects[0] are the same object, Pod default/",
				"list:  GivenObjects[1] and GivenObjects[0] are the same object, Pod default/",
				"row_failing_test.go:89: GivenObjects[1] and GivenObjects[0] are the same object, Pod default/", secondRuns,
			},
			unwanted: []string{"goroutine"},
		},
		"given to a config made by hand, of a kind that is unknown": {
			run: func(t *testing.T) {
				t.Run("first", func(t *testing.T) {
					c := rtesting.ExpectConfig{Scheme: scheme, GivenObjects: []client.Object{&stranger{}}, UseFake: true}
					c.AssertExpectations(t)
				})
				t.Run("second", func(*testing.T) {})
			},
			want:     []string{"GivenObjects[0]: ", "stranger", secondRuns},
			unwanted: []string{"goroutine"},
		},
		"given twice to a set-up": {
			run:  setsUp(setupCase{GivenObjects: []client.Object{pod, pod}}),
			want: []string{"GivenObjects[1] and GivenObjects[0] are the same object"},
		},
		"given nil": {
			run:  beside(cmCase{GivenObjects: []client.Object{pod, nil}}),
			want: []string{"GivenObjects[1] is nil", secondRuns},
		},
		"given without a finalizer": {
			run: beside(cmCase{GivenObjects: []client.Object{terminating}}),
			want: []string{
				"GivenObjects[0], ConfigMap default/leaving, has a deletion timestamp and no finalizer: an API server has no such object",
				secondRuns,
			},
		},
		"given of an unknown type": {
			run: beside(cmCase{GivenObjects: []client.Object{&unregistered{}}}),
			want: []string{
				"GivenObjects[0]: the type *testing_test.unregistered is not in the scheme of the table",
				"call AddToScheme of the package github.com/espalier-dev/espalier/testing_test", secondRuns,
			},
		},
		"status of an unknown type": {
			run:  beside(cmCase{StatusSubResourceTypes: []client.Object{&unregistered{}}}),
			want: []string{"StatusSubResourceTypes[0]: the type *testing_test.unregistered is not in the scheme", secondRuns},
		},
		"no scheme": {
			run:  func(t *testing.T) { rtesting.ReconcilerTests{"first": {}}.Run(t, nil, newCopier) },
			want: []string{"the table needs a scheme", "FAIL: " + "%s/first"},
		},
		"panic": {
			run: beside(cmCase{Metadata: does(panics)}),
			want: []string{
				"the row panicked: assignment to entry in nil map\n", "testing_test.panics\n", "row_failing_test.go:",
				"testing_test.node[...].Reconcile\n", secondRuns,
			},
			unwanted: []string{"goroutine", "testing.tRunner", "runtime.gopanic", "SubReconcilerTestCase"},
		},
		"panic of a whole": {
			run: besideWhole(rtesting.ReconcilerTestCase{}, func(*testing.T, *rtesting.ReconcilerTestCase, reconcilers.Config) reconcile.Reconciler {
				return reconcile.Func(func(context.Context, reconcilers.Request) (reconcilers.Result, error) { panic(errOops) })
			}),
			want: []string{"the row panicked: oops\n", "row_failing_test.go:", secondRuns},
		},
		"panic of a node below a root": {
			run: besideWhole(rtesting.ReconcilerTestCase{
				Request:      reconcilers.Request{NamespacedName: client.ObjectKeyFromObject(settings.Object())},
				GivenObjects: []client.Object{settings},
				ShouldErr:    true,
			}, func(_ *testing.T, _ *rtesting.ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler {
				return &reconcilers.ResourceReconciler[*corev1.ConfigMap]{Config: c, Reconciler: &reconcilers.SyncReconciler[*corev1.ConfigMap]{Sync: panics}}
			}),
			want: []string{
				"the row panicked: assignment to entry in nil map\n", "testing_test.panics\n", "row_failing_test.go:", secondRuns,
			},
			unwanted: []string{"ShouldErr"},
		},
		"panic of a webhook factory": {
			run: func(t *testing.T) {
				rtesting.AdmissionWebhookTestSuite{{Name: "first"}, {Name: "second", Metadata: map[string]any{"a": ""}}}.RunWithContext(t, scheme,
					func(_ *testing.T, _ context.Context, tc *rtesting.AdmissionWebhookTestCase, _ reconcilers.Config) (*admission.Webhook, error) {
						return nil, errorOf(tc.Metadata["a"].(string))
					})
			},
			want: []string{"the row panicked: interface conversion: interface {} is nil, not string", "Webhook factory failed: \n"},
		},
		"panic of a set-up": {
			run:  setsUp(setupCase{Metadata: watches(func(context.Context, *reconcilers.Builder) { panic("oops") })}),
			want: []string{"the row panicked: oops\n"},
		},
		"panic of Prepare": {
			run:  beside(cmCase{Prepare: func(*testing.T, context.Context, *cmCase) (context.Context, error) { panic("oops") }}),
			want: []string{"the row panicked: oops\n", secondRuns},
		},
		"nothing to reconcile with": {
			run: func(t *testing.T) {
				rtesting.SubReconcilerTestSuite[*corev1.ConfigMap]{{Name: "first", Resource: settings.Object()}}.Run(t, scheme,
					func(*testing.T, *cmCase, reconcilers.Config) reconcilers.SubReconciler[*corev1.ConfigMap] { return nil })
			},
			want:     []string{"the factory returned no sub-reconciler"},
			unwanted: []string{"panicked"},
		},
		"nothing to reconcile with as a whole": {
			run: besideWhole(rtesting.ReconcilerTestCase{}, func(*testing.T, *rtesting.ReconcilerTestCase, reconcilers.Config) reconcile.Reconciler {
				return nil
			}),
			want:     []string{"the factory returned no reconciler", secondRuns},
			unwanted: []string{"panicked"},
		},
	} {
		scenarios[name] = failing
	}
}

// errorOf is an error with a text.
type errorOf string

func (e errorOf) Error() string { return string(e) }
