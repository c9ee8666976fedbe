package testing_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-dev/espalier/reconcilers"
)

// A row runs in a bubble of testing/synctest, where delays pass at once.
func TestARowRunsInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tc := cmCase{Resource: settings.Object(), Metadata: does(func(ctx context.Context, _ *corev1.ConfigMap) error {
			select {
			case <-time.After(time.Hour):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})}
		tc.Run(t, scheme, func(_ *testing.T, tc *cmCase, _ reconcilers.Config) reconcilers.SubReconciler[*corev1.ConfigMap] {
			return tc.Metadata["node"].(reconcilers.SubReconciler[*corev1.ConfigMap])
		})
	})
}
