package transport

import "github.com/espalier-dev/espalier/testing/internal/plan"

// hold keeps what passes between an actor and the server.
type hold struct {
	// frozen has the process stand still, so that it does not notice either that it gives a request up.
	frozen bool
	// lifted is closed when the hold ends.
	lifted chan struct{}
}

// Hold keeps requests and answers of actors, and events of their watches, until Lift is called for them. Requests that
// begin meanwhile, and fail when it ends, do not reach the server. Nor do those that are on their way, unless the actor
// is frozen: what a process has sent before it stands still arrives. A frozen actor does not give up requests.
// A call that is [plan.Locked] fails at once.
func (n *Network) Hold(frozen bool, actors ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, actor := range actors {
		n.lift(actor)
		n.holds[actor] = &hold{frozen: frozen, lifted: make(chan struct{})}
	}
}

// Lift ends what Hold began. What was kept goes on: answers and events arrive.
func (n *Network) Lift(actors ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, actor := range actors {
		n.lift(actor)
	}
}

// lift ends the hold of an actor. The lock is held.
func (n *Network) lift(actor string) {
	if held := n.holds[actor]; held != nil {
		close(held.lifted)
		delete(n.holds, actor)
	}
}

// held returns the hold of the exchange's actor, or nil.
func (x *exchange) held() *hold {
	x.network.mu.Lock()
	defer x.network.mu.Unlock()
	return x.network.holds[x.call.Actor]
}

// leave fails if the actor is held, when that ends: the request is lost.
func (x *exchange) leave() error {
	if x.held() == nil {
		return nil
	}
	if plan.Locked(x.call) {
		// After a reset clients wait and try again.
		return errRefused
	}
	if err := x.pass(); err != nil {
		return err
	}
	return errReset
}

// pass waits while the actor is held. Answers to calls that are [plan.Locked] arrive.
func (x *exchange) pass() error {
	if plan.Locked(x.call) {
		return nil
	}
	for h := x.held(); h != nil; h = x.held() {
		given := x.ctx.Done()
		if h.frozen {
			given = nil
		}
		select {
		case <-h.lifted:
		case <-given:
			return x.broken()
		case <-x.client.died:
			return errDead
		}
	}
	return nil
}
