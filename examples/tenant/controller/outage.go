package controller

import (
	"cmp"
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/tenant/directory"
	"github.com/espalier-dev/espalier/reconcilers"
)

// outageInterval is how often a directory is asked again that does not answer, unless an option says otherwise.
const outageInterval = 30 * time.Second

// Outage runs a node that needs the directory. While the directory does not answer, the status says so, and the node is
// tried again after the interval. The operator can do nothing about an outage, so it is no failure of the request.
//
// Outage must be around the node that has the finalizer. Inside of that node it would hide the error of the clean-up,
// and the entry would stay.
func Outage(interval time.Duration, try node) node {
	interval = cmp.Or(interval, outageInterval)
	return &reconcilers.TryCatch[*v1alpha1.Tenant]{
		Name: "Outage",
		Try:  try,
		Catch: func(
			ctx context.Context, tenant *v1alpha1.Tenant, result reconcilers.Result, err error,
		) (reconcilers.Result, error) {
			if !errors.Is(err, directory.ErrUnavailable) {
				return result, err
			}
			reconcilers.SetCondition(ctx, tenant, metav1.Condition{
				Type: v1alpha1.Registered, Status: metav1.ConditionUnknown, Reason: "DirectoryUnavailable",
				Message: directory.ErrUnavailable.Error() + "; it is asked again",
			})
			return reconcilers.AggregateResults(result, reconcilers.Result{RequeueAfter: interval}), nil
		},
	}
}
