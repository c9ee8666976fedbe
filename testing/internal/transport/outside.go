package transport

import (
	"context"
	"fmt"
	"net/http"

	"github.com/espalier-dev/espalier/internal/fault"
)

var _ fault.Caller = &Client{}

// Do implements [fault.Caller]: a call of something outside of the cluster is a request of the actor.
func (c *Client) Do(asked context.Context, name string, do func() error) error {
	if err := asked.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(asked)
	x := &exchange{client: c, network: c.network, asked: asked, ctx: ctx, cancel: cancel, entry: &Entry{}}
	x.call = fault.Call{Actor: c.actor, Verb: fault.Outside, Path: name}
	err := c.network.begin(x)
	if err == nil {
		err = x.doOutside(do)
	}
	x.end(err)
	cancel(err)
	return err
}

// doOutside has the plan decide about a call, and makes it.
func (x *exchange) doOutside(do func() error) error {
	// An actor that is cut off from the server calls what is outside. One that stands still calls nothing.
	if h := x.held(); h != nil && h.frozen {
		if err := x.leave(); err != nil {
			return err
		}
	}
	if err := x.wait(x.decision.There); err != nil {
		return err
	}
	struck := x.decision.Fault
	x.logArrival(struck)
	err := x.meetOutside(struck, do)
	if err != nil {
		x.logAnswer(0, err)
		return err
	}
	x.logAnswer(http.StatusOK, nil)
	if err := x.after(struck); err != nil {
		x.logAnswer(http.StatusOK, err)
		return fmt.Errorf("%s: the answer is lost: %w", x.call.Path, err)
	}
	return nil
}

// meetOutside is what a call meets: a fault that has no effect, or what is called.
func (x *exchange) meetOutside(struck fault.Fault, do func() error) error {
	switch struck.Kind {
	case fault.DiesBefore:
		x.client.Kill()
		return errDead
	case fault.Fails:
		return fmt.Errorf("%s: %w", x.call.Path, fault.ErrFails)
	case fault.UserDeletes:
		x.userDeletes(struck.Delay)
	}
	return do()
}
