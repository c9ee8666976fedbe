package transport

import (
	"context"
	"net/http"
	"time"

	"github.com/espalier-dev/espalier/testing/simulation/faults"
)

// exchange is a request and its answer.
type exchange struct {
	client  *Client
	network *Network
	// request is sent to the server.
	request *http.Request
	// asked is the context of the client, ctx ends also with the connection, and cancel breaks it.
	asked  context.Context
	ctx    context.Context
	cancel context.CancelCauseFunc

	call     faults.Call
	decision faults.Decision
	// entry belongs to the lock of the network once it is in the log.
	entry *Entry
	cut   *time.Timer
}

// do takes the request to the server and brings the answer back.
func (x *exchange) do() (*http.Response, error) {
	if err := x.wait(x.decision.There); err != nil {
		x.closeBody()
		err = x.notice(err)
		if err != errDead {
			x.logArrival(faults.Fault{})
			x.logAnswer(0, err)
		}
		return nil, err
	}
	fault := x.decision.Fault
	x.logArrival(fault)
	response, err := x.meet(fault)
	if err != nil {
		x.logAnswer(0, err)
		return nil, err
	}
	x.logAnswer(response.StatusCode, nil)
	x.open(response)
	if err := x.after(fault); err != nil {
		_ = response.Body.Close()
		err = x.notice(err)
		x.logAnswer(response.StatusCode, err)
		return nil, err
	}
	return response, nil
}

// meet is what the request meets: a fault that has no effect, or the server.
func (x *exchange) meet(fault faults.Fault) (*http.Response, error) {
	switch fault.Sort {
	case faults.Refuses:
		x.closeBody()
		return nil, errRefused
	case faults.Restarts:
		x.closeBody()
		x.network.Restart(fault.Delay)
		return nil, errRefused
	case faults.DiesBefore:
		x.closeBody()
		x.client.Kill()
		return nil, errDead
	case faults.Conflicts:
		x.interfere()
		x.closeBody()
		return x.refusal(fault), nil
	case faults.Fails, faults.Throttles, faults.Expires:
		x.closeBody()
		return x.refusal(fault), nil
	}
	server := x.network.serving()
	if server == nil {
		x.closeBody()
		return nil, errRefused
	}
	response, err := server.RoundTrip(x.request)
	if err != nil {
		return nil, x.failure(err)
	}
	return response, nil
}

// after is what happens before the answer has arrived.
func (x *exchange) after(fault faults.Fault) error {
	switch fault.Sort {
	case faults.LosesAnswer:
		return errReset
	case faults.DiesAfter:
		x.client.Kill()
		return errDead
	case faults.CutsWatch:
		x.cut = time.AfterFunc(fault.Delay, func() { x.cancel(errReset) })
	}
	return x.wait(x.decision.Back)
}

// notice waits until the client notices that the connection is broken. This takes as long as an answer, so that clients
// do not all go on in the same moment after a restart, in an order that no seed decides.
func (x *exchange) notice(broken error) error {
	if broken != errReset || x.decision.Back <= 0 {
		return broken
	}
	timer := time.NewTimer(x.decision.Back)
	defer timer.Stop()
	select {
	case <-timer.C:
		return broken
	case <-x.client.died:
		return errDead
	case <-x.asked.Done():
		return x.asked.Err()
	}
}

// wait waits unless the connection is broken.
func (x *exchange) wait(d time.Duration) error {
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-x.ctx.Done():
		}
	}
	return x.broken()
}

// broken returns why the connection is broken, or nil if it is not or the exchange has ended. A process that dies gives
// up its requests, too: that it is dead goes before.
func (x *exchange) broken() error {
	select {
	case <-x.client.died:
		return errDead
	default:
	}
	if cause := context.Cause(x.ctx); cause == errReset || cause == errDead {
		return cause
	}
	return x.asked.Err()
}

// failure returns why the connection is broken if it is, or the error that shows it.
func (x *exchange) failure(err error) error {
	if broken := x.broken(); broken != nil {
		return broken
	}
	return err
}

// end ends the exchange. Only the first end counts.
func (x *exchange) end(err error) {
	if !x.network.end(x) {
		return
	}
	if x.cut != nil {
		x.cut.Stop()
	}
	x.cancel(context.Canceled)
	if x.call.Verb == faults.Watch && err == errReset && x.entry.Status != 0 {
		x.logEnd(err)
	}
}

func (x *exchange) closeBody() {
	if x.request.Body != nil {
		_ = x.request.Body.Close()
	}
}
