package page

import (
	"context"

	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/reconcilers"
	rtime "github.com/espalier-dev/espalier/time"

	"k8s.io/apimachinery/pkg/types"
)

// requestKey is the key of the request on a context. Each page has its own.
type requestKey struct{ of *Page }

func (p *Page) requestOf(ctx context.Context) *request {
	r, _ := ctx.Value(requestKey{p}).(*request)
	return r
}

// Start implements [reconcilers.Observer].
func (p *Page) Start(ctx context.Context, node *reconcilers.Node) context.Context {
	if node.Root == node {
		root := p.recorder.root(node)
		if node.Kind == "AdmissionWebhookAdapter" {
			// It gets objects that may never exist, under names that anybody chooses.
			return context.WithValue(ctx, requestKey{p}, (*request)(nil))
		}
		r := newRequest(root, p.recorder.resource(root, reconcilers.RetrieveRequest(ctx).NamespacedName),
			rtime.RetrieveNow(ctx))
		r.start(node)
		return context.WithValue(ctx, requestKey{p}, r)
	}
	if r := p.requestOf(ctx); r != nil {
		r.start(node)
	}
	return ctx
}

// End implements [reconcilers.Observer].
func (p *Page) End(ctx context.Context, node *reconcilers.Node, outcome reconcilers.Outcome) {
	r := p.requestOf(ctx)
	if r == nil {
		return
	}
	r.end(ctx, node, outcome)
	if node.Root != node {
		return
	}
	if r.forgotten {
		p.drop(r.root, r.resource.key)
		r.abandon(p.recorder)
	} else {
		r.finish(p.recorder, outcome)
	}
	p.streams.publish(topic{root: r.root.id, resource: r.resource.key})
}

// Note implements [reconcilers.Observer].
func (p *Page) Note(ctx context.Context, node *reconcilers.Node, fact any) {
	switch fact := fact.(type) {
	case reconcilers.WatchFailed:
		p.watches.note(fact, p.now())
		p.streams.publish(topic{})
		return
	case reconcilers.SetUp:
		p.recorder.root(node).setUp(ctx, fact)
		return
	case reconcilers.Forgotten:
		if r := p.requestOf(ctx); r != nil {
			r.forget()
			return
		}
		p.forget(node, reconcilers.RetrieveRequest(ctx))
		return
	}
	r := p.requestOf(ctx)
	if r == nil {
		return
	}
	switch fact := fact.(type) {
	case reconcilers.Woken:
		r.woken(fact)
	case reconcilers.Write:
		r.wrote(node, fact)
	case reconcilers.Held:
		r.held(node, fact)
	case component.Watching:
		r.root.watches(fact)
	case component.Progress:
		r.progressed(ctx, node, fact, p.recorder)
	}
}

// forget drops a resource that is gone while no request for it runs.
func (p *Page) forget(node *reconcilers.Node, request reconcilers.Request) {
	root := p.recorder.root(node)
	p.drop(root, request.NamespacedName)
	p.streams.publish(topic{root: root.id, resource: request.NamespacedName})
}

func (p *Page) drop(root *rootRecord, key types.NamespacedName) {
	p.recorder.forget(root, key)
	p.plans.forget(root.id, key)
}
