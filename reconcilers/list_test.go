package reconcilers_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"
)

type widgetList = reconcilers.List[*resources.Widget]

func list(nodes ...widgetNode) *widgetList { return &widgetList{Nodes: nodes} }

// traceKey is the key of the trace of a request, for nodes of several requests at once.
type traceKey struct{}

// orderly is a node with an order. It records what it waits for, or else does what its step does.
type orderly struct {
	step
	order reconcilers.Order
	// waits has the node call NotDone.
	waits bool
	// finalizers are those that it describes.
	finalizers []string
}

func (n *orderly) Reconcile(ctx context.Context, w *resources.Widget) (reconcilers.Result, error) {
	ctx = reconcilers.Enter(ctx, n.name)
	calls := n.calls
	if calls == nil {
		calls = ctx.Value(traceKey{}).(*trace)
	}
	if unmet := reconcilers.Unmet(ctx, &n.order); unmet != "" && !reconcilers.CleansUp(ctx, w) {
		calls.add("%s: %s", n.name, unmet)
		reconcilers.NotDone(ctx)
		return nothing, nil
	}
	if n.waits {
		reconcilers.NotDone(ctx)
	}
	for _, key := range n.order.Yields {
		stash.StoreValue(ctx, key, true)
	}
	calls.add("%s", n.name)
	return n.result, n.err
}

func (n *orderly) Describe() reconcilers.Description {
	return reconcilers.Description{Kind: "orderly", Name: n.name, Order: &n.order, Finalizers: n.finalizers}
}

// orderly returns a node that declares nothing and is no barrier.
func (c *trace) orderly(name string, err error, changes ...func(*orderly)) *orderly {
	n := &orderly{step: step{name: name, calls: c, err: err}}
	for _, change := range changes {
		change(n)
	}
	return n
}

func independent(n *orderly) { n.order.Declared = true }
func notDone(n *orderly)     { n.waits = true }
func asksForMore(n *orderly) { n.result = minute }
func finalizes(finalizer string) func(*orderly) {
	return func(n *orderly) { n.finalizers = []string{finalizer} }
}
func after(names ...string) func(*orderly) {
	return func(n *orderly) { n.order.Declared, n.order.After = true, names }
}
func needs(keys ...stash.Key) func(*orderly) {
	return func(n *orderly) { n.order.Declared, n.order.Needs = true, keys }
}
func yields(keys ...stash.Key) func(*orderly) {
	return func(n *orderly) { n.order.Yields = keys }
}

// group is a node around others, as a feature is.
type group struct {
	widgetNode
	name string
}

func (g group) Reconcile(ctx context.Context, w *resources.Widget) (reconcilers.Result, error) {
	return g.widgetNode.Reconcile(reconcilers.Enter(ctx, g.name), w)
}

func (g group) Describe() reconcilers.Description {
	return reconcilers.Description{
		Kind: "group", Name: g.name, Order: &reconcilers.Order{},
		Nodes: []reconcilers.Description{reconcilers.Describe(g.widgetNode)},
	}
}

var errOther = errors.New("other")

func TestList(t *testing.T) {
	failing := func(err error, calls []string, nodes func(*trace) widgetNode) nodeTest {
		return nodeTest{node: nodes, calls: calls, widgetCase: widgetCase{ShouldErr: true, Verify: returns(err)}}
	}
	nodeTests{
		"nil":   {node: func(*trace) widgetNode { return list() }, calls: []string{}},
		"empty": {node: func(*trace) widgetNode { return &widgetList{Nodes: []widgetNode{}} }, calls: []string{}},
		"an independent node runs after an error, others do not": failing(errBoom, []string{"a", "c", "e"}, func(c *trace) widgetNode {
			return list(c.orderly("a", errBoom), c.orderly("b", nil), c.orderly("c", nil, independent),
				c.orderly("d", nil), c.orderly("e", nil, independent))
		}),
		"nothing runs after an error of a node of the peer": failing(errBoom, []string{"a", "b"}, func(c *trace) widgetNode {
			return list(c.orderly("a", nil), c.step("b", nothing, errBoom), c.orderly("c", nil, independent))
		}),
		"nothing runs after an error of a node with a finalizer": failing(errBoom, []string{"a"}, func(c *trace) widgetNode {
			return list(c.orderly("a", errBoom, finalizes("example.com/a")), c.orderly("b", nil, independent))
		}),
		"nothing runs after an error of a list with a node of the peer": failing(errBoom, []string{"a", "c"}, func(c *trace) widgetNode {
			return list(list(c.orderly("a", errBoom), c.step("b", nothing, nil), c.orderly("c", nil, independent)),
				c.orderly("d", nil, independent))
		}),
		"nothing runs after a halt": failing(reconcilers.ErrHaltSubReconcilers, []string{"a"}, func(c *trace) widgetNode {
			return list(c.orderly("a", reconcilers.ErrHaltSubReconcilers, independent), c.orderly("b", nil, independent))
		}),
		"nothing runs after a list with an error and a halt": failing(errBoom, []string{"a", "b"}, func(c *trace) widgetNode {
			halts := c.orderly("b", reconcilers.ErrHaltSubReconcilers, independent)
			return list(list(list(c.orderly("a", errBoom), halts)), c.orderly("c", nil, independent))
		}),
		"others run after two errors, one for good": failing(errBoom, []string{"a", "b", "c"}, func(c *trace) widgetNode {
			durable := c.orderly("b", reconcilers.ErrDurable, independent)
			return list(list(c.orderly("a", errBoom), durable), c.orderly("c", nil, independent))
		}),
		"an independent node runs after an error that no retry mends": failing(reconcilers.ErrDurable, []string{"a", "c"}, func(c *trace) widgetNode {
			return list(c.orderly("a", reconcilers.ErrDurable), c.orderly("b", nil), c.orderly("c", nil, independent))
		}),
		"an independent node runs after a list that failed": failing(errBoom, []string{"a", "c"}, func(c *trace) widgetNode {
			return list(list(c.orderly("a", errBoom), c.orderly("b", nil)), c.orderly("c", nil, independent))
		}),
		"a node that is after one that failed waits": failing(errBoom, []string{"a", `b: waiting for "a"`, `c: waiting for "b"`, "d"}, func(c *trace) widgetNode {
			return list(c.orderly("a", errBoom), c.orderly("b", nil, after("a")), c.orderly("c", nil, after("b")), c.orderly("d", nil, independent))
		}),
		"a node that is after one that did not run waits": failing(errBoom, []string{"a", `c: waiting for "b"`}, func(c *trace) widgetNode {
			return list(c.orderly("a", errBoom), c.orderly("b", nil), c.orderly("c", nil, after("b")))
		}),
		"a node that is after one that is not done waits": {
			node: func(c *trace) widgetNode {
				return list(c.orderly("a", nil, notDone), c.orderly("b", nil, after("a")), c.orderly("c", nil))
			},
			calls: []string{"a", `b: waiting for "a"`, "c"},
		},
		"a node that is after one that is done runs": {
			node: func(c *trace) widgetNode {
				return list(c.orderly("z", nil, notDone), c.orderly("a", nil), c.orderly("b", nil, after("a")))
			},
			calls: []string{"z", "a", "b"},
		},
		"a group is not done if a node in it is not": {
			node: func(c *trace) widgetNode {
				return list(group{list(c.orderly("a", nil, notDone), c.orderly("b", nil)), "group"},
					c.orderly("c", nil, after("group")), c.orderly("d", nil, after("c")))
			},
			calls: []string{"a", "b", `c: waiting for "group"`, `d: waiting for "c"`},
		},
		"a name is that of a sibling first": {
			node: func(c *trace) widgetNode {
				return list(c.orderly("a", nil, notDone), list(c.orderly("a", nil), c.orderly("b", nil, after("a"))))
			},
			calls: []string{"a", "a", "b"},
		},
		"a value is there, or not": {
			node: func(c *trace) widgetNode {
				return list(c.orderly("a", nil, yields("x")), list(c.orderly("b", nil, needs("x")), c.orderly("c", nil, needs("x", "y"))),
					c.orderly("d", nil, after("b"), func(n *orderly) { n.order.Needs = []stash.Key{"y", "z"}; n.order.After = []string{"e"} }),
					c.orderly("e", nil))
			},
			calls: []string{"a", "b", `c: waiting for data "y"`, `d: waiting for data "y", "z", waiting for "e"`, "e"},
		},
		"errors are joined": {
			node: func(c *trace) widgetNode {
				return list(c.orderly("a", errBoom, asksForMore), c.orderly("b", errOther, independent), c.orderly("c", nil, independent, asksForMore))
			},
			calls: []string{"a", "b", "c"},
			widgetCase: widgetCase{ShouldErr: true, Verify: func(t *testing.T, result reconcilers.Result, err error) {
				returnsBoth(errBoom, minute)(t, result, err)
				returns(errOther)(t, result, err)
			}},
		},
		"a quiet error is dropped beside another": {
			node: func(c *trace) widgetNode {
				return list(c.orderly("a", errQuiet), c.orderly("b", errBoom, independent))
			},
			calls:      []string{"a", "b"},
			widgetCase: widgetCase{ShouldErr: true, ExpectedErr: errBoom},
		},
	}.run(t)
}

// Requests for many resources at once do not see each other.
func TestListIsConcurrent(t *testing.T) {
	node := list(&orderly{step: step{name: "a"}, waits: true}, &orderly{step: step{name: "b"}, order: reconcilers.Order{
		Declared: true, After: []string{"a"},
	}})
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			calls := &trace{}
			ctx := context.WithValue(testContext(t, expectWidget().Config()), traceKey{}, calls)
			if _, err := node.Reconcile(ctx, widget.Object()); err != nil {
				t.Error(err)
			}
			calls.compare(t, []string{"a", `b: waiting for "a"`})
		})
	}
	group.Wait()
}
