package testing_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"
	rtesting "github.com/espalier-dev/espalier/testing"
)

type cmHarness = rtesting.ObjectManagerReconcilerTestHarness[*corev1.ConfigMap]

var (
	actualKey  = rtesting.ObjectManagerReconcilerTestHarnessActualStasher[*corev1.ConfigMap]().Key()
	desiredKey = rtesting.ObjectManagerReconcilerTestHarnessDesiredStasher[*corev1.ConfigMap]().Key()
	resultKey  = rtesting.ObjectManagerReconcilerTestHarnessResultStasher[*corev1.ConfigMap]().Key()
)

func managed(actual, desired any) map[stash.Key]any {
	return map[stash.Key]any{actualKey: actual, desiredKey: desired}
}

func result(obj any) map[stash.Key]any { return map[stash.Key]any{resultKey: obj} }

func TestStubObjectManager(t *testing.T) {
	stored := settings.With(func(c *corev1.ConfigMap) {
		c.CreationTimestamp, c.ResourceVersion = metav1.Unix(1, 0), "999"
		c.Labels, c.Annotations = map[string]string{"a": "b"}, map[string]string{"c": "d"}
		c.Finalizers = []string{"example.com/hold"}
	})
	desired := settings.With(func(c *corev1.ConfigMap) {
		c.Labels, c.Data, c.Immutable = map[string]string{"a": "z"}, map[string]string{"l": "w"}, new(true)
	})
	updated := stored.With(func(c *corev1.ConfigMap) {
		c.Labels, c.Annotations = map[string]string{"a": "z"}, nil
		c.Data, c.Immutable = map[string]string{"l": "w"}, new(true)
	})
	cases := map[string]rtesting.SubReconcilerTestCase[client.Object]{
		"neither there nor wanted": {
			GivenStashedValues: managed(nil, (*corev1.ConfigMap)(nil)), ExpectStashedValues: result(nil),
		},
		"unwanted": {
			GivenStashedValues: managed(stored.Object(), nil), ExpectStashedValues: result(nil),
			ExpectDeletes: []rtesting.DeleteRef{deleteRef},
		},
		"unwanted and on its way": {
			GivenStashedValues: managed(stored.With(func(c *corev1.ConfigMap) {
				c.DeletionTimestamp = new(metav1.Unix(2, 0))
			}).Object(), nil),
			ExpectStashedValues: result(nil),
		},
		"absent": {
			GivenStashedValues: managed(nil, desired.Object()), ExpectStashedValues: result(desired.Object()),
			ExpectCreates: []client.Object{desired},
		},
		"in sync": {
			GivenStashedValues: managed(stored.Object(), stored.Object()), ExpectStashedValues: result(stored.Object()),
		},
		"out of sync": {
			GivenStashedValues: managed(stored.Object(), desired.Object()), ExpectStashedValues: result(updated.Object()),
			ExpectUpdates: []client.Object{updated},
		},
		"fails": {
			GivenStashedValues: managed(nil, desired.Object()), ExpectStashedValues: result(nil),
			WithReactors:  []rtesting.ReactionFunc{rtesting.InduceFailure("create", "ConfigMap", rtesting.InduceFailureOpts{Error: errOops})},
			ExpectCreates: []client.Object{desired},
			ExpectedErr:   errOops,
		},
		"not stashed": {GivenStashedValues: managed(nil, nil), ShouldPanic: true, Prepare: func(
			_ *testing.T, _ context.Context, tc *rtesting.SubReconcilerTestCase[client.Object],
		) (context.Context, error) {
			tc.GivenStashedValues = nil
			return nil, nil
		}},
	}
	tests := rtesting.SubReconcilerTests[client.Object]{}
	for name, tc := range cases {
		tc.Resource = pod.Object()
		tests[name] = tc
	}
	tests.Run(t, scheme, func(
		*testing.T, *rtesting.SubReconcilerTestCase[client.Object], reconcilers.Config,
	) reconcilers.SubReconciler[client.Object] {
		return &cmHarness{ObjectManager: &rtesting.StubObjectManager[*corev1.ConfigMap]{}}
	})
}

func TestStashKeysOfTheObjectManagerHarness(t *testing.T) {
	for key, want := range map[stash.Key]stash.Key{
		actualKey:  "reconciler.io/object-manager-reconciler-test-harness-actual",
		desiredKey: "reconciler.io/object-manager-reconciler-test-harness-desired",
		resultKey:  "reconciler.io/object-manager-reconciler-test-harness-result",
	} {
		if key != want {
			t.Errorf("want %s, got %s", want, key)
		}
	}
}

// invalidManager is an object manager that does not validate.
type invalidManager struct {
	rtesting.StubObjectManager[*corev1.ConfigMap]
}

func (invalidManager) Validate(context.Context) error { return errOops }

func TestObjectManagersAreValidated(t *testing.T) {
	for name, tc := range map[string]struct {
		harness cmHarness
		want    string
	}{
		"missing": {cmHarness{}, "ObjectManagerReconcilerTestHarness must implement ObjectManager"},
		"invalid": {cmHarness{ObjectManager: invalidManager{}}, "oops"},
	} {
		_, reconciling := tc.harness.Reconcile(t.Context(), pod.Object())
		for _, err := range []error{
			tc.harness.Validate(t.Context()), tc.harness.SetupWithManager(t.Context(), nil, nil), reconciling,
		} {
			if err == nil || err.Error() != tc.want {
				t.Errorf("%s: want %q, got %v", name, tc.want, err)
			}
		}
	}
	valid := cmHarness{ObjectManager: rtesting.StubObjectManager[*corev1.ConfigMap]{}}
	if err := errors.Join(valid.Validate(t.Context()), valid.SetupWithManager(t.Context(), nil, nil)); err != nil {
		t.Error(err)
	}
}

// Outside of the harness an object manager, or a client that nothing can be given to, is an error and not a panic.
func TestTheObjectManagerHarnessNeedsATestClient(t *testing.T) {
	ctx := stash.WithContext(t.Context())
	for key, value := range managed(settings.Object(), nil) {
		stash.StoreValue(ctx, key, value)
	}
	harness := cmHarness{ObjectManager: rtesting.StubObjectManager[*corev1.ConfigMap]{}}
	if _, err := harness.Reconcile(ctx, pod.Object()); err == nil {
		t.Error("there is no config")
	}
	c := newExpectConfig().Config()
	c.Client = client.NewNamespacedClient(c.Client, "default")
	if _, err := harness.Reconcile(reconcilers.StashConfig(ctx, c), pod.Object()); err == nil {
		t.Error("nothing can be given")
	}
	if _, err := harness.ObjectManager.Manage(t.Context(), nil, nil, settings.Object()); err == nil {
		t.Error("there is no config")
	}
}
