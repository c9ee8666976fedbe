package controller_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/tenant/controller"
	"github.com/espalier-dev/espalier/examples/tenant/directory"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
)

var unavailable = isUnknown(v1alpha1.Registered, "DirectoryUnavailable", "the directory does not answer; it is asked again")

func TestOutage(t *testing.T) {
	listed := tenant.With(isTrue(v1alpha1.Registered, "Succeeded"))
	for name, tc := range map[string]struct {
		rtesting.SubReconcilerTestCase[*v1alpha1.Tenant]
		interval time.Duration
		result   reconcilers.Result
		err      error
	}{
		"the directory answers": {
			result: reconcilers.Result{RequeueAfter: time.Hour},
			SubReconcilerTestCase: rtesting.SubReconcilerTestCase[*v1alpha1.Tenant]{
				Resource:       listed.Object(),
				ExpectedResult: reconcilers.Result{RequeueAfter: time.Hour},
			},
		},
		"it does not": {
			result: reconcilers.Result{RequeueAfter: time.Hour},
			err:    fmt.Errorf("unable: %w", directory.ErrUnavailable),
			SubReconcilerTestCase: rtesting.SubReconcilerTestCase[*v1alpha1.Tenant]{
				Resource:       listed.Object(),
				ExpectResource: tenant.With(unavailable).Object(),
				ExpectedResult: reconcilers.Result{RequeueAfter: 30 * time.Second},
			},
		},
		"it does not, and is asked again soon": {
			interval: time.Second,
			err:      directory.ErrUnavailable,
			SubReconcilerTestCase: rtesting.SubReconcilerTestCase[*v1alpha1.Tenant]{
				Resource:       listed.Object(),
				ExpectResource: tenant.With(unavailable).Object(),
				ExpectedResult: reconcilers.Result{RequeueAfter: time.Second},
			},
		},
		"something else fails": {
			result: reconcilers.Result{RequeueAfter: time.Hour},
			err:    errBroken,
			SubReconcilerTestCase: rtesting.SubReconcilerTestCase[*v1alpha1.Tenant]{
				Resource:       listed.Object(),
				ExpectedResult: reconcilers.Result{RequeueAfter: time.Hour},
				ShouldErr:      true,
				Verify:         isBroken,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, tests{"": tc.SubReconcilerTestCase}, func() node {
				return controller.Outage(tc.interval, outcome(tc.result, tc.err))
			})
		})
	}
}
