package testing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/testing/internal/check"
	"github.com/espalier-dev/espalier/testing/internal/objects"
	"github.com/espalier-dev/espalier/testing/internal/replay"
	"github.com/espalier-dev/espalier/testing/internal/run"
)

// Until says when a row has made enough requests. The zero value is after one.
type Until struct{ rest bool }

// Rest lets a row make request after request until one changes nothing, returns no error and asks for no other. A delay
// that a result asks for passes at once: the time of the row moves. Three requests that change nothing and ask for the
// same delay, or to be made again, are taken for rest, and so is a terminal error. Between requests garbage is
// collected, and the client sees all that there is. There must be rest within 20 requests.
//
// The expectations are about all requests together, and the result is that of the last one. An error is retried, unless
// the row expects one: then it ends the row. A quiet error of a node, such as that of one that halts, only asks for
// another request, as its root does then. A node gets the resource and an empty stash for each request; the status that
// it leaves in memory is stored, as a root would, and this is no call of the row. No request is made for a resource
// that is gone.
func Rest() Until { return Until{rest: true} }

// requestsToRest is how many requests a row may make until it is at rest.
const requestsToRest = 20

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
	var pace replay.Rest
	for range requestsToRest {
		before := r.revision()
		result, err = make(run.At(ctx, r.clock.Now()))
		if err != nil && endsByError && !isHandled(err) {
			return result, err, nil
		}
		moved := r.settle() || r.revision() != before
		outcome := outcomeOfRoot(result, err)
		outcome.Moved = moved
		rest, delay := pace.After(outcome)
		if rest {
			return result, err, nil
		}
		r.clock.Pass(delay)
	}
	return result, err, fmt.Errorf("there is no rest after %d requests", requestsToRest)
}

// isHandled reports whether an error of a node is none of its root.
func isHandled(err error) bool { return errors.Is(err, reconcilers.ErrQuiet) }

// outcomeOfRoot returns what a root makes of the outcome of its tree: a quiet error asks for another request, and a
// durable one for none. Those of a root stay as they are.
func outcomeOfRoot(result reconcile.Result, err error) replay.Outcome {
	if !isHandled(err) {
		return replay.Outcome{Result: queued(result), Err: err}
	}
	//lint:ignore SA1019 That is what a root returns.
	result.Requeue = !errors.Is(err, reconcilers.ErrDurable)
	return replay.Outcome{Result: queued(result)}
}

// backOff is how long a request waits that asks to be made again without a delay, for a queue of controller-runtime. It
// is any delay: how long the queue waits depends on what happened before.
const backOff = time.Second

// queued returns a result with the delay that a queue adds.
func queued(result reconcile.Result) reconcile.Result {
	//lint:ignore SA1019 Code under test may still set it.
	if result.Requeue && result.RequeueAfter == 0 {
		result.RequeueAfter = backOff
	}
	return result
}

// storeStatus stores the status of a resource as code under test left it, unless it left it as it was.
func (c *ExpectConfig) storeStatus(ctx context.Context, before, after client.Object) error {
	if !objects.HasStatus(after) {
		return nil
	}
	after = objects.Copy(after)
	after.SetResourceVersion(before.GetResourceVersion())
	patch := client.MergeFrom(before)
	raw, err := patch.Data(after)
	if err != nil {
		return err
	}
	members, _ := check.FromJSON(raw).(map[string]any)
	if _, changed := members["status"]; !changed {
		return nil
	}
	return client.IgnoreNotFound(c.made().Client.Client.Status().Patch(ctx, after, patch))
}

// clusters are the API servers of a row.
func (r *caseRun) clusters() []run.Server {
	var clusters []run.Server
	for _, c := range r.all() {
		if b := c.made().Server; b.Settle != nil {
			clusters = append(clusters, b)
		}
	}
	return clusters
}

// revision is higher after each change.
func (r *caseRun) revision() (sum int64) {
	for _, b := range r.clusters() {
		sum += b.Revision()
	}
	return sum
}

// settle lets the control plane act and the caches see what there is. It reports whether a cache saw something new.
func (r *caseRun) settle() (seen bool) {
	for _, b := range r.clusters() {
		seen = b.Settle() || seen
	}
	return seen
}
