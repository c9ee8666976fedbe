package reconcilers

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/espalier-dev/espalier/internal/branching"
	"github.com/espalier-dev/espalier/internal/conditionlog"
	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/stash"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// branchPlace is where the nodes of a branch find what the branches of a request have in common.
type branchPlace struct {
	// order are the indexes of the branches around it and its own, outermost first.
	order []int
	// resource is the copy of the branch.
	resource client.Object
	// finalizers are those of the resource, for all branches.
	finalizers *branchFinalizers
	// patched is the last patch of the branch itself.
	patched finalizersPatch
	// conditions are those that were set in the branch, outside of a root.
	conditions conditionlog.Log
	// events are those of the branch.
	events *branchEvents
}

// parallelBranch is one node of a [Parallel] in a request, with what it works on.
type parallelBranch[Type client.Object] struct {
	path     nodePath
	ctx      context.Context
	node     SubReconciler[Type]
	resource Type
	state    *requestState
	item     *item
	place    *branchPlace

	result Result
	err    error
	// ended is how it ended.
	ended branchEnd
	// panicked is the value of a panic.
	panicked any
}

// branchEnd says how a branch ended.
type branchEnd int

const (
	// hasExited is a branch that called runtime.Goexit, as tests do when they fail, or that did not run because of
	// that.
	hasExited branchEnd = iota
	hasReturned
	hasPanicked
)

// parallelRun is a run of a [Parallel] in a request.
type parallelRun[Type client.Object] struct {
	ctx      context.Context
	resource Type
	// hasStash is true if the context has a stash, and reads is the digest of reads before the branches.
	hasStash bool
	reads    uint64
	branches []parallelBranch[Type]
}

func newParallelRun[Type client.Object](
	ctx context.Context, nodes []SubReconciler[Type], resource Type,
) *parallelRun[Type] {
	s := contextOf(ctx)
	r := &parallelRun[Type]{ctx: ctx, resource: resource, branches: make([]parallelBranch[Type], len(nodes))}
	r.hasStash = stash.Check(ctx) == nil
	if s.state != nil {
		r.reads = s.state.reads
	}
	place := branchPlace{finalizers: newBranchFinalizers(resource)}
	if s.branch != nil {
		place.finalizers, place.order = s.branch.finalizers, s.branch.order
	}
	parent := pathOf(ctx)
	for i, node := range nodes {
		b := &r.branches[i]
		b.path = nodePath{Context: ctx, name: strconv.Itoa(i), parent: parent, place: placeIndex}
		b.node, b.resource = node, copyOf(resource)
		b.state, b.item = s.state.branch(), s.item.branch()
		b.place = &branchPlace{
			order: append(place.order[:len(place.order):len(place.order)], i), finalizers: place.finalizers,
			resource: b.resource, events: &branchEvents{},
		}
		b.place.conditions.Branch(conditionlog.Of(ctx))
		b.enter(s, resource)
		if r.hasStash {
			b.ctx = stash.WithCopy(b.ctx)
		}
	}
	return r
}

// enter makes the context of a branch. What it has for itself takes the place of what is in s. Resource is what the
// branch has a copy of.
func (b *parallelBranch[Type]) enter(s *treeContext, resource client.Object) {
	own := *s
	own.Context = &b.path
	own.state, own.item, own.branch = b.state, b.item, b.place
	own.changeConfigs(b.place.events.config)
	if original, isCast := s.behindCast(resource); isCast {
		own.casts = &castFrame{object: b.resource, original: copyOf(original), outer: s.casts}
	}
	b.ctx = &own
}

// all runs the branches, up to limit at the same time.
func (r *parallelRun[Type]) all(limit int) {
	inOrder := RetrieveAdmissionResponse(r.ctx) != nil || branching.IsInOrder(r.ctx)
	if limit == 1 || inOrder {
		for i := range r.branches {
			r.branches[i].run()
		}
		return
	}
	pace := branching.PaceOf(r.ctx)
	var order []int
	if pace != nil {
		order = pace.Order(RetrieveRequest(r.ctx).String()+" "+RetrievePath(r.ctx), len(r.branches))
	}
	var begun atomic.Int64
	var running sync.WaitGroup
	for worker := range min(limit, len(r.branches)) {
		running.Go(func() {
			if pace != nil {
				pace.Wait(worker)
			}
			r.next(&begun, order)
		})
	}
	running.Wait()
}

// next runs the next branches until all have begun. Order has their indexes; nil is the order of the nodes.
func (r *parallelRun[Type]) next(begun *atomic.Int64, order []int) {
	for {
		i := int(begun.Add(1)) - 1
		if i >= len(r.branches) {
			return
		}
		if order != nil {
			i = order[i]
		}
		r.branches[i].run()
	}
}

// run runs the node. A panic ends at the branch, because no caller of the goroutine could recover it.
func (b *parallelBranch[Type]) run() {
	defer func() {
		if b.ended == hasExited {
			if b.panicked = recover(); b.panicked != nil {
				b.ended = hasPanicked
			}
		}
	}()
	switch {
	case gotype.IsNil(b.node):
		index := b.place.order[len(b.place.order)-1]
		b.err = nilElement("Parallel", "Nodes", index)
	case b.ctx.Err() != nil:
		b.err = fmt.Errorf("the request ended before the node began: %w", context.Cause(b.ctx))
	default:
		b.result, b.err = ReconcileNested(b.ctx, b.node, b.resource)
	}
	recordUnlocated(b.ctx, b.err)
	b.ended = hasReturned
}

// leave has the caller of a [Parallel] panic, or exit, if a branch did.
func (r *parallelRun[Type]) leave() {
	for i := range r.branches {
		switch b := &r.branches[i]; b.ended {
		case hasPanicked:
			panic(b.panicked)
		case hasExited:
			runtime.Goexit()
		}
	}
}
