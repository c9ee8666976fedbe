package graph_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/espalier-dev/espalier/internal/graph"
)

// node is a node that declares what it needs.
func node(name string, changes ...func(*graph.Node)) graph.Node {
	n := graph.Node{Name: name, Declared: true}
	for _, change := range changes {
		change(&n)
	}
	return n
}

func after(names ...string) func(*graph.Node)     { return func(n *graph.Node) { n.After = names } }
func needs(keys ...string) func(*graph.Node)      { return func(n *graph.Node) { n.Needs = keys } }
func yields(keys ...string) func(*graph.Node)     { return func(n *graph.Node) { n.Yields = keys } }
func below(nodes ...graph.Node) func(*graph.Node) { return func(n *graph.Node) { n.Nodes = nodes } }

func undeclared(n *graph.Node)   { n.Declared = false }
func barrier(n *graph.Node)      { n.Barrier = true }
func storesAny(n *graph.Node)    { n.StoresAny = true }
func closed(n *graph.Node)       { n.Closed = true }
func alternatives(n *graph.Node) { n.Alternatives = true }

// list is a list that declares nothing.
func list(nodes ...graph.Node) graph.Node {
	return graph.Node{List: true, Nodes: nodes}
}

// rooted gives all nodes their paths.
func rooted(tree graph.Node) *graph.Node {
	var number func(n *graph.Node, path string)
	number = func(n *graph.Node, path string) {
		n.Path = path
		for i := range n.Nodes {
			segment := fmt.Sprint(path, "/", i)
			if name := n.Nodes[i].Name; name != "" {
				segment += "/" + name
			}
			number(&n.Nodes[i], segment)
		}
	}
	number(&tree, "Root")
	return &tree
}

func TestCheck(t *testing.T) {
	const ownList = `after a node of its own list, not after "a": to wait for a node of a list around it, ` +
		`put it into a When that does`
	tests := map[string]struct {
		tree graph.Node
		err  string
	}{
		"nothing":                      {tree: list()},
		"after a sibling":              {tree: list(node("a"), node("b", after("a")))},
		"after a sibling of its group": {tree: list(node("a"), node("group", below(node("b", after("a")))))},
		"after a sibling of its list": {
			tree: list(node("a"), list(node("b", after("a")))),
			err:  `must have Root/1/0/b ` + ownList,
		},
		"the nearest of a name counts": {
			tree: list(node("b"), list(node("a", after("b")), node("b"))),
			err: "must not have Root/1/0/a after Root/1/1/b, which runs later in the list at Root/1: " +
				"put Root/1/1/b before Root/1/0/a",
		},
		"after one that nobody is": {
			tree: list(list(node("a")), node("b", after("a"))),
			err:  `must have Root/1/b ` + ownList,
		},
		"after an element of what is no list": {
			tree: graph.Node{Nodes: []graph.Node{node("a"), node("b", after("a"))}},
			err:  `must have Root/1/b ` + ownList,
		},
		"after one of two": {
			tree: list(node("a"), node("a"), node("b", after("a"))),
			err:  `must have different names for Root/0/a and Root/1/a, so that Root/2/b can be after "a"`,
		},
		"two of a name that nobody is after": {tree: list(node("a"), node("a"), node("b"))},
		"after a later one": {
			tree: list(node("a", after("b")), node("b")),
			err:  "must not have Root/0/a after Root/1/b, which runs later in the list at Root: put Root/1/b before Root/0/a",
		},
		"after itself": {
			tree: list(node("a", after("a"))),
			err:  "must have Root/0/a after another node than Root/0/a, which is the same or runs it",
		},
		"after the node that runs it": {
			tree: list(node("a", below(node("b", after("a"))))),
			err:  "must have Root/0/a/0/b after another node than Root/0/a, which is the same or runs it",
		},
		"needs what an earlier one yields":         {tree: list(node("a", yields("x")), node("b", needs("x")))},
		"needs what another branch yields":         {tree: list(list(node("a", yields("x"))), list(node("b", needs("x"))))},
		"needs what the node around it yields":     {tree: list(node("a", yields("x"), below(node("b", needs("x")))))},
		"needs what an earlier and a later yields": {tree: list(node("a", yields("x")), node("b", needs("x")), node("c", yields("x")))},
		"needs what it also yields":                {tree: list(node("a", yields("x")), node("b", needs("x"), yields("x")))},
		"needs what a later one yields": {
			tree: list(list(node("b", needs("x"))), list(node("a", yields("x")))),
			err:  `must not have Root/0/0/b need "x" of Root/1/0/a, which runs later in the list at Root: put Root/1 before Root/0`,
		},
		"needs what the end of a node that is no list yields": {
			tree: graph.Node{Nodes: []graph.Node{node("b", needs("x")), node("a", yields("x"))}},
			err:  `must have Root/1/a before Root/0/b, which needs its value "x"`,
		},
		"needs what only itself yields": {
			tree: list(node("a", needs("x"), below(node("b", yields("x"))))),
			err:  `must have a node before Root/0/a that yields "x": it must not need what only itself yields`,
		},
		"needs what nobody yields": {
			tree: list(node("a"), node("b", needs("x"))),
			err:  `must have a node before Root/1/b that yields "x", which no node does`,
		},
		"needs what the other alternative yields": {
			tree: list(node("if", alternatives, below(node("a", yields("x")), node("b", needs("x"))))),
			err:  `must have a node before Root/0/if/1/b that yields "x", which no node does`,
		},
		"needs what is yielded in the same closed node": {
			tree: list(node("each", closed, below(list(node("a", yields("x")), node("b", needs("x")))))),
		},
		"needs what is yielded around a closed node": {
			tree: list(node("a", yields("x")), node("each", closed, below(list(node("b", needs("x")))))),
		},
		"needs what is yielded in a closed node": {
			tree: list(node("each", closed, below(list(node("a", yields("x"), storesAny)))), node("b", needs("x"))),
			err:  `must have a node before Root/1/b that yields "x", which no node does`,
		},
		"needs what one before it may store": {tree: list(node("a", storesAny), node("b", needs("x")))},
		"needs what one around it may store": {tree: list(node("a", storesAny, below(node("b", needs("x")))))},
		"needs what one after it may store": {
			tree: list(node("b", needs("x")), node("a", storesAny)),
			err:  `must have a node before Root/0/b that yields "x", which no node does`,
		},
		"a cycle": {
			tree: list(node("l", below(list(node("a", yields("y")), node("b", needs("x"))))),
				node("r", below(list(node("c", yields("x")), node("d", needs("y")))))),
			err: `must have no cycle in the list at Root: Root/0/l/0/1/b needs "x" of Root/1/r/0/0/c, but ` +
				`Root/1/r/0/1/d needs "y" of Root/0/l/0/0/a. Move one of these nodes out of Root/0/l or Root/1/r`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := graph.Check(rooted(test.tree)); err != nil {
				got = err.Error()
			}
			if got != test.err {
				t.Errorf("the error is\n%q, want\n%q", got, test.err)
			}
		})
	}
}

func TestPlanOf(t *testing.T) {
	inner := list(node("b", barrier), node("a", after("b"), needs("x")))
	tests := map[string]struct {
		list graph.Node
		want graph.Plan
	}{
		"nothing": {list: list(), want: graph.Plan{}},
		"nothing declared": {
			list: list(node("a", undeclared, barrier), node("b", undeclared)),
			want: graph.Plan{Declared: []bool{false, false}, Barrier: []bool{true, false}, NeededBy: [][]int{nil, nil}},
		},
		"independent": {
			list: list(node("a")), want: graph.Plan{Declares: true, Declared: []bool{true}, Barrier: []bool{false}, NeededBy: [][]int{nil}},
		},
		"what is nested counts for barriers, and for names but in a list": {
			list: list(node("a", undeclared), inner),
			want: graph.Plan{Declared: []bool{false, false}, Barrier: []bool{false, true}, NeededBy: [][]int{nil, nil}},
		},
		"nested in no list": {
			list: list(node("a"), node("group", undeclared, below(node("b", after("a"))))),
			want: graph.Plan{
				Declares: true, Named: true, Declared: []bool{true, false}, Barrier: []bool{false, false},
				NeededBy: [][]int{{1}, nil},
			},
		},
		"lifted": {
			list: list(node("outer", undeclared, yields("x")), inner, list(node("c", needs("x")), node("d"))),
			want: graph.Plan{
				Declares: true, Declared: []bool{false, false, false}, Barrier: []bool{false, true, false},
				NeededBy: [][]int{{1, 2}, nil, nil},
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := graph.PlanOf(rooted(test.list))
			if got.Indexes = nil; fmt.Sprint(got) != fmt.Sprint(test.want) {
				t.Errorf("the plan is\n%v, want\n%v", got, test.want)
			}
		})
	}
}

// grown is a random tree whose nodes need some of the nodes named before them, and are after some of their list.
func grown(r *rand.Rand, names *int, depth int) graph.Node {
	n := list()
	for range 1 + r.IntN(4) {
		*names++
		name := fmt.Sprint("n", *names)
		child := node(name, func(n *graph.Node) { n.Declared, n.Barrier = r.IntN(2) == 0, r.IntN(5) == 0 })
		if r.IntN(2) == 0 {
			child.Yields = []string{name}
		}
		if r.IntN(3) == 0 {
			child.After = []string{name}
			if len(n.Nodes) > 0 {
				child.After[0] = n.Nodes[r.IntN(len(n.Nodes))].Name
			}
		}
		if r.IntN(3) == 0 {
			child.Needs = []string{fmt.Sprint("n", 1+r.IntN(*names))}
		}
		if depth > 0 && r.IntN(2) == 0 {
			child.Nodes = []graph.Node{grown(r, names, depth-1)}
		}
		n.Nodes = append(n.Nodes, child)
	}
	return n
}

// Of trees that are accepted, no edge leads to a later node; what a nested node needs of another element is an edge of
// the list; and nodes clean up in reverse order, as far as those that need them have.
func TestInvariants(t *testing.T) {
	accepted, edges := 0, 0
	for seed := range uint64(5000) {
		r := rand.New(rand.NewPCG(seed, 0))
		tree := rooted(grown(r, new(int), 2))
		if graph.Check(tree) != nil {
			continue
		}
		accepted++
		plan := graph.PlanOf(tree)
		for to, by := range plan.NeededBy {
			edges += len(by)
			for _, from := range by {
				if from <= to {
					t.Fatalf("seed %d: node %d needs node %d, want an earlier one", seed, from, to)
				}
			}
		}
		for from := range tree.Nodes {
			for to := range from {
				want := refers(&tree.Nodes[from], &tree.Nodes[to])
				if got := slices.Contains(plan.NeededBy[to], from); got != want {
					t.Fatalf("seed %d: node %d needs node %d: %t, want %t", seed, from, to, got, want)
				}
			}
		}
		checkCleanup(t, seed, r, &plan)
	}
	if accepted < 300 || edges < 100 {
		t.Errorf("%d trees with %d edges were accepted, want more for the test to mean something", accepted, edges)
	}
}

// refers reports whether a node is after another, or whether it, or one that is nested in it, needs a value of the other.
// Names and keys are unique in a grown tree.
func refers(n, other *graph.Node) bool {
	return slices.Contains(n.After, other.Name) || needsOf(n, other)
}

func needsOf(n, other *graph.Node) bool {
	return slices.ContainsFunc(n.Needs, func(key string) bool { return yieldsKey(other, key) }) ||
		slices.ContainsFunc(n.Nodes, func(nested graph.Node) bool { return needsOf(&nested, other) })
}

func yieldsKey(n *graph.Node, key string) bool {
	return slices.Contains(n.Yields, key) ||
		slices.ContainsFunc(n.Nodes, func(nested graph.Node) bool { return yieldsKey(&nested, key) })
}

// checkCleanup compares the way through a list with what it is: a node runs if all later nodes that need it finished.
func checkCleanup(t *testing.T, seed uint64, r *rand.Rand, plan *graph.Plan) {
	t.Helper()
	cleanup := graph.Cleanup{Plan: plan}
	n := len(plan.Declared)
	finished := make([]bool, n)
	for i := n - 1; i >= 0; i-- {
		want := false
		for later := i + 1; later < n; later++ {
			needed := !plan.Declared[later] || plan.Barrier[i] || slices.Contains(plan.NeededBy[i], later)
			want = want || needed && !finished[later]
		}
		got := cleanup.Waits(i)
		if got != want {
			t.Fatalf("seed %d: node %d waits: %t, want %t, with %v finished", seed, i, got, want, finished)
		}
		if finished[i] = !got && r.IntN(3) > 0; !finished[i] {
			cleanup.Unfinished(i)
		}
	}
}
