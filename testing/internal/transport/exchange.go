package transport

import (
	"context"
	"net/http"
	"time"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/internal/plan"
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

	call     fault.Call
	decision plan.Decision
	// entry belongs to the lock of the network once it is in the log.
	entry *Entry
	cut   *time.Timer
}

// do takes the request to the server and brings the answer back.
func (x *exchange) do() (*http.Response, error) {
	if err := x.travel(); err != nil {
		x.closeBody()
		err = x.notice(err)
		if err != errDead {
			x.logArrival(fault.Fault{})
			x.logAnswer(0, err)
		}
		return nil, err
	}
	struck := x.decision.Fault
	x.logArrival(struck)
	response, err := x.meet(struck)
	if err != nil {
		x.logAnswer(0, err)
		return nil, err
	}
	x.logAnswer(response.StatusCode, nil)
	x.open(response)
	if err := x.after(struck); err != nil {
		_ = response.Body.Close()
		err = x.notice(err)
		x.logAnswer(response.StatusCode, err)
		return nil, err
	}
	return response, nil
}

// travel takes the request to the server.
func (x *exchange) travel() error {
	if err := x.leave(); err != nil {
		return err
	}
	if err := x.wait(x.decision.There); err != nil {
		return err
	}
	if h := x.held(); h != nil && h.frozen {
		return nil // what was sent arrives
	}
	return x.leave()
}

// meet is what the request meets: a fault that has no effect, or the server.
func (x *exchange) meet(struck fault.Fault) (*http.Response, error) {
	switch struck.Kind {
	case fault.Refuses:
		x.closeBody()
		return nil, errRefused
	case fault.Restarts:
		x.closeBody()
		x.network.Restart(struck.Delay)
		return nil, errRefused
	case fault.DiesBefore:
		x.closeBody()
		x.client.Kill()
		return nil, errDead
	case fault.Conflicts:
		if !x.interfere(written) {
			x.closeBody()
			return x.refusal(struck), nil
		}
	case fault.UserDeletes:
		x.userDeletes(struck.Delay)
	case fault.Fails, fault.Throttles, fault.Expires:
		x.closeBody()
		return x.refusal(struck), nil
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
	if struck.Kind == fault.Conflicts && !x.interfere(unwritten) && x.network.options.Lost != nil {
		x.network.options.Lost(*x.entry)
	}
	return response, nil
}

// userDeletes has the user delete the resource now, or after a delay.
func (x *exchange) userDeletes(delay time.Duration) {
	switch deletes, e := x.network.options.UserDeletes, *x.entry; {
	case deletes == nil:
	case delay > 0:
		time.AfterFunc(delay, func() { deletes(e) })
	default:
		deletes(e)
	}
}

// after is what happens before the answer has arrived.
func (x *exchange) after(struck fault.Fault) error {
	switch struck.Kind {
	case fault.LosesAnswer:
		return errReset
	case fault.DiesAfter:
		x.client.Kill()
		return errDead
	case fault.CutsWatch:
		x.cut = time.AfterFunc(struck.Delay, func() { x.cancel(errReset) })
	}
	if err := x.wait(x.decision.Back); err != nil && x.held() == nil {
		return err
	}
	if err := x.pass(); err != nil {
		return err
	}
	return x.broken()
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
	if x.call.Verb == fault.Watch && err == errReset && x.entry.Status != 0 {
		x.logEnd(err)
	}
}

func (x *exchange) closeBody() {
	if x.request.Body != nil {
		_ = x.request.Body.Close()
	}
}
