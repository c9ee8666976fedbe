package reconcilers_test

import (
	"context"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
)

// Below, "a" is needed by "b" and "c", which are independent of each other.
func TestListOnDeletion(t *testing.T) {
	terminating := terminatingWidget.Object()
	finalizer := terminating.Finalizers[0]
	tree := func(a, b, c *orderly) widgetNode {
		b.order = reconcilers.Order{Declared: true, After: []string{"a"}}
		c.order = b.order
		return list(a, b, c)
	}
	changed := func(err error, changes ...func(*orderly)) func(*trace) widgetNode {
		return func(c *trace) widgetNode {
			return tree(c.orderly("a", nil), c.orderly("b", nil), c.orderly("c", err, changes...))
		}
	}
	deleted := func(node func(*trace) widgetNode, result reconcilers.Result, calls ...string) nodeTest {
		return nodeTest{node: node, calls: calls, widgetCase: widgetCase{Resource: terminating, ExpectedResult: result}}
	}
	nodeTests{
		"in reverse order":                        deleted(changed(nil), nothing, "c", "b", "a"),
		"waits for one that asks to come back":    deleted(changed(nil, asksForMore), minute, "c", "b"),
		"waits for one that is not done":          deleted(changed(nil, notDone), nothing, "c", "b"),
		"waits for one whose finalizer is there":  deleted(changed(nil, finalizes(finalizer)), nothing, "c", "b"),
		"does not wait for another finalizer":     deleted(changed(nil, finalizes("example.com/none")), nothing, "c", "b", "a"),
		"does not ask what a node waits for then": deleted(changed(nil, needs("x")), nothing, "c", "b", "a"),
		"waits for one that fails": {
			node: changed(errBoom), calls: []string{"c", "b"},
			widgetCase: widgetCase{Resource: terminating, ExpectedErr: errBoom},
		},
		"stops at a halt": {
			node: changed(reconcilers.ErrHaltSubReconcilers), calls: []string{"c"},
			widgetCase: widgetCase{Resource: terminating, ExpectedErr: reconcilers.ErrHaltSubReconcilers},
		},
		"errors are joined": {
			node: func(c *trace) widgetNode {
				return tree(c.orderly("a", nil), c.orderly("b", errOther), c.orderly("c", errBoom))
			},
			calls: []string{"c", "b"},
			widgetCase: widgetCase{Resource: terminating, ShouldErr: true, Verify: func(
				t *testing.T, result reconcilers.Result, err error,
			) {
				returns(errOther)(t, result, err)
				returns(errBoom)(t, result, err)
			}},
		},
		"one that declares nothing needs all before it": deleted(func(c *trace) widgetNode {
			return list(c.orderly("a", nil, independent), c.orderly("b", nil, notDone), c.orderly("c", nil, independent))
		}, nothing, "c", "b"),
		"one that others cannot do without cleans up last": deleted(func(c *trace) widgetNode {
			return list(c.orderly("a", nil, independent), c.step("b", nothing, nil), c.orderly("c", nil, independent, notDone),
				c.orderly("d", nil, independent))
		}, nothing, "d", "c"),
		"an edge between branches": deleted(func(c *trace) widgetNode {
			return list(list(c.orderly("a", nil, yields("x"))), c.orderly("b", nil),
				list(c.orderly("c", nil, needs("x"), notDone), c.orderly("d", nil, independent)))
		}, nothing, "d", "c"),
		"in order if nothing is declared": deleted(func(c *trace) widgetNode {
			return list(c.orderly("a", nil), list(c.orderly("b", nil), c.orderly("c", nil, independent)), c.orderly("d", nil))
		}, nothing, "a", "c", "b", "d"),
	}.run(t)
}

// Withdraw is a deletion.
func TestListOnWithdraw(t *testing.T) {
	calls := &trace{}
	node := list(calls.orderly("a", nil), calls.orderly("b", nil, after("a")))
	ctx := reconcilers.WithSupervisor(testContext(t, expectWidget().Config()), withdrawing{})
	if _, err := node.Reconcile(ctx, widget.Object()); err != nil {
		t.Fatal(err)
	}
	calls.compare(t, []string{"b", "a"})
}

type withdrawing struct{ reconcilers.Supervisor }

func (withdrawing) Supervision() reconcilers.Supervision { return reconcilers.Withdraw }

func TestListValidate(t *testing.T) {
	valid := &widgetSync{Sync: func(context.Context, *resources.Widget) error { return nil }}
	const missing = `SyncReconciler "SyncReconciler" must implement Sync or SyncWithResult`
	validationTests{
		"empty": {node: list()},
		"valid": {node: list(valid, valid)},
		"invalid, nested": {
			node:      list(valid, list(valid, &widgetSync{})),
			recursive: "List must have a valid Nodes[1]: List must have a valid Nodes[1]: " + missing,
		},
	}.run(t)
	const text = "List must have a valid Nodes[0]: must not be nil"
	for _, resource := range []*resources.Widget{widget.Object(), terminatingWidget.Object()} {
		_, err := list(nil, (&trace{}).orderly("a", nil, independent)).Reconcile(t.Context(), resource)
		checkError(t, "for a missing node", err, text)
	}
	checkError(t, "at set-up", list(nil).SetupWithManager(t.Context(), nil, nil), text)
}

func TestListSetup(t *testing.T) {
	calls := &trace{}
	trees := setUpErrors{
		"in order": {tree: list(calls.orderly("a", nil), calls.orderly("b", nil, after("a")))},
		"a later node": {
			tree: list(calls.orderly("a", nil, after("b")), calls.orderly("b", nil)),
			err: `ResourceReconciler "WidgetResourceReconciler" must not have WidgetResourceReconciler/0/a after ` +
				`WidgetResourceReconciler/1/b, which runs later in the list at WidgetResourceReconciler: ` +
				`put WidgetResourceReconciler/1/b before WidgetResourceReconciler/0/a`,
		},
		"a value that nobody yields": {
			tree: list(calls.orderly("a", nil), list(calls.orderly("b", nil, needs("x")))),
			err: `ResourceReconciler "WidgetResourceReconciler" must have a node before WidgetResourceReconciler/1/0/b ` +
				`that yields "x", which no node does`,
		},
		"a value that a node of the peer may store":        {tree: list(calls.step("a", nothing, nil), calls.orderly("b", nil, needs("x")))},
		"a value that a node of the peer may store, above": {tree: &widgetAdvice{Reconciler: calls.orderly("b", nil, needs("x"))}},
		"a Sequence stores nothing": {
			tree: widgetSequence{calls.orderly("b", nil, needs("x"))},
			err: `ResourceReconciler "WidgetResourceReconciler" must have a node before WidgetResourceReconciler/0/b ` +
				`that yields "x", which no node does`,
		},
		"a Sequence has no names": {
			tree: widgetSequence{calls.orderly("a", nil), calls.orderly("b", nil, after("a"))},
			err: `ResourceReconciler "WidgetResourceReconciler" must have WidgetResourceReconciler/1/b after a node of ` +
				`its own list, not after "a": to wait for a node of a list around it, put it into a When that does`,
		},
	}
	trees.run(t)
}

func TestListDescribe(t *testing.T) {
	calls := &trace{}
	for name, test := range map[string]struct {
		node *widgetList
		want string
	}{
		"nothing declared": {
			node: list(calls.orderly("a", nil), list(calls.orderly("b", nil))),
			want: "Sequence\n├─ orderly \"a\"\n└─ Sequence\n   └─ orderly \"b\"\n",
		},
		"declared inside": {
			node: list(calls.orderly("a", nil), list(calls.orderly("b", nil, independent))),
			want: "Sequence\n├─ orderly \"a\"\n└─ List\n   └─ orderly \"b\"\n",
		},
		"lifted": {
			node: list(calls.orderly("a", nil, yields("x")), list(calls.orderly("b", nil, needs("x")))),
			want: "List\n├─ orderly \"a\"\n└─ List\n   └─ orderly \"b\"\n",
		},
	} {
		if got := reconcilers.Describe(test.node).String(); got != test.want {
			t.Errorf("%s: it is described as\n%s, want\n%s", name, got, test.want)
		}
	}
}
