package plugins

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/espalier-dev/espalier/plugins/internal/protocol"

	"k8s.io/apimachinery/pkg/types"
)

// call is a call that is under way, or has ended.
type call struct {
	asked  digest
	cancel context.CancelFunc
	done   chan struct{}
	// left is true if no request waits for the answer any more, so that the resource has to be woken.
	left atomic.Bool
	// response and err are the answer, once done is closed.
	response *protocol.DependentsResponse
	err      error
}

// start asks a plugin in the background, and wakes the resource if nobody has waited for the answer.
func (n *Node[Type]) start(
	plugin found, request *protocol.DependentsRequest, asked digest, from types.NamespacedName,
) *call {
	ctx, cancel := context.WithCancel(context.Background())
	c := &call{asked: asked, cancel: cancel, done: make(chan struct{})}
	n.pending.Add(1)
	go func() {
		c.response, c.err = plugin.caller.Dependents(ctx, request)
		n.pending.Add(-1)
		close(c.done)
		if c.left.Load() {
			n.awake.wake(from)
		}
	}()
	return c
}

// await waits for the answer for some time. It reports whether there is one.
func (c *call) await(ctx context.Context, patient time.Duration) bool {
	if patient > 0 {
		timer := time.NewTimer(patient)
		defer timer.Stop()
		select {
		case <-c.done:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	c.left.Store(true)
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}
