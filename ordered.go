package espalier

import (
	"context"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Ordered has the words by which a node says what it needs. Self is the node, which each of them returns.
//
// A node that says nothing needs each node before it in its list: an error of one stops it. A node that says what it
// needs is stopped only by that, and by a halt. In all cases an earlier node that adds a finalizer, or is a literal of
// package reconcilers, has to succeed. See [reconcilers.List].
type Ordered[Self any] struct {
	self Self
	rules
	// condition is the type of the condition that the node reports; empty for none.
	condition string
}

// report has the condition of the node say something.
func (o *Ordered[Self]) report(ctx context.Context, resource client.Object, condition metav1.Condition) {
	if o.condition == "" {
		return
	}
	condition.Type = o.condition
	reconcilers.ReportCondition(ctx, resource, condition)
}

// waitingFor returns the condition of a node that waits for what a text says.
func waitingFor(text string) metav1.Condition {
	return metav1.Condition{Status: metav1.ConditionUnknown, Reason: ReasonWaiting, Message: text}
}

// Keyed is a [stash.Stasher] of any type.
type Keyed interface {
	Key() stash.Key
}

// Needs has the node wait until all values are in the stash: until the nodes that read them, or [Yield] them, have
// stored them. It may be used several times. An object that exists is suspended and resumed without the values.
func (o *Ordered[Self]) Needs(values ...Keyed) Self {
	o.use(needsData)
	o.order.Needs = append(o.order.Needs, o.keysOf(needsData, values)...)
	return o.self
}

// After has the node wait until the nodes of those names are done: until they have run without an error, and their
// objects are ready, unchecked, or not desired. A name stands for a node before this one in the same list. To wait for
// a node of a list around it, put After on the [When] around this one. A feature and an [Each] are put into a When that
// always holds. It may be used several times.
func (o *Ordered[Self]) After(names ...string) Self {
	o.use(isAfter)
	o.order.After = append(o.order.After, names...)
	return o.self
}

// Independent says that the node needs no other.
func (o *Ordered[Self]) Independent() Self {
	o.use(independent)
	return o.self
}

func (r *rules) yields(value Keyed) {
	r.use(yieldsData)
	r.order.Yields = append(r.order.Yields, r.keysOf(yieldsData, []Keyed{value})...)
}

// keysOf returns the keys of values. A nil value is noted as one that is missing.
func (r *rules) keysOf(s switchName, values []Keyed) []stash.Key {
	var keys []stash.Key
	for _, value := range values {
		if gotype.IsNil(value) {
			r.missing = append(r.missing, s)
			continue
		}
		keys = append(keys, value.Key())
	}
	return keys
}

// orderOf returns what the node needs and yields.
func (r *rules) orderOf() *reconcilers.Order {
	order := r.order
	order.Declared = r.has(needsData) || r.has(isAfter) || r.has(independent)
	return &order
}
