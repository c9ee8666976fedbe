package testing

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/testing/internal/objects"
)

// Until says when a row has made enough requests. The zero value is after one.
type Until struct{ rest bool }

// Rest lets a row make request after request until one changes nothing, returns no error and asks for no other. A delay
// that a result asks for passes at once: the time of the row moves. Three requests that change nothing and ask for the
// same delay are taken for rest. Between requests garbage is collected, and the client sees all that there is. There
// must be rest within 20 requests.
//
// The expectations are about all requests together, and the result is that of the last one. An error is retried, unless
// the row expects one: then it ends the row. A node gets the resource and an empty stash for each request; the status
// that it leaves in memory is stored, as a root would, and this is no call of the row.
func Rest() Until { return Until{rest: true} }

const (
	// requestsToRest is how many requests a row may make until it is at rest.
	requestsToRest = 20
	// polls is how many requests in a row that change nothing and ask for the same delay are taken for rest.
	polls = 3
)

// request makes one request.
type request func(ctx context.Context) (reconcilers.Result, error)

// requests makes the requests of a row, and returns the outcome of the last one. The error says that they go on.
func (r *caseRun) requests(
	until Until, endsByError bool, ctx context.Context, make request,
) (result reconcilers.Result, err, unrest error) {
	if !until.rest {
		result, err = make(ctx)
		return result, err, nil
	}
	quiet, delay := 0, time.Duration(0)
	for range requestsToRest {
		before := r.revision()
		result, err = make(at(ctx, r.clock.now()))
		if err != nil && endsByError {
			return result, err, nil
		}
		if quiet++; result.RequeueAfter != delay {
			quiet, delay = 1, result.RequeueAfter
		}
		switch moved := r.settle() || r.revision() != before; {
		case moved || !isQuiet(result, err):
			quiet = 0
		case delay == 0 || quiet == polls:
			return result, err, nil
		}
		r.clock.pass(result.RequeueAfter)
	}
	return result, err, fmt.Errorf("there is no rest after %d requests", requestsToRest)
}

// isQuiet reports whether an outcome asks for no other request, but for a later one.
func isQuiet(result reconcile.Result, err error) bool {
	//lint:ignore SA1019 Code under test may still set it.
	return err == nil && (!result.Requeue || result.RequeueAfter > 0)
}

// storeStatus stores the status of a resource as code under test left it, unless it left it as it was.
func (c *ExpectConfig) storeStatus(ctx context.Context, before, after client.Object) error {
	if !hasStatus(after) {
		return nil
	}
	after = objects.Copy(after)
	after.SetResourceVersion(before.GetResourceVersion())
	patch := client.MergeFrom(before)
	raw, err := patch.Data(after)
	if err != nil {
		return err
	}
	members, _ := fromJSON(raw).(map[string]any)
	if _, changed := members["status"]; !changed {
		return nil
	}
	return client.IgnoreNotFound(c.made().client.Client.Status().Patch(ctx, after, patch))
}

// clusters are the faithful back ends of a row.
func (r *caseRun) clusters() []backend {
	var clusters []backend
	for _, c := range append(r.inOrder(), r.expect) {
		if b := c.made().backend; b.settle != nil {
			clusters = append(clusters, b)
		}
	}
	return clusters
}

// revision is higher after each change.
func (r *caseRun) revision() (sum int64) {
	for _, b := range r.clusters() {
		sum += b.revision()
	}
	return sum
}

// settle lets the control plane act and the caches see what there is. It reports whether a cache saw something new.
func (r *caseRun) settle() (seen bool) {
	for _, b := range r.clusters() {
		seen = b.settle() || seen
	}
	return seen
}

// clock is the time of a row.
type clock struct {
	at time.Time
	// virtual says that the time of the process passes too, at once.
	virtual bool
}

func (c *clock) now() time.Time { return c.at }

// pass lets time pass.
func (c *clock) pass(delay time.Duration) {
	c.at = c.at.Add(max(delay, 0))
	if c.virtual {
		time.Sleep(delay)
	}
}
