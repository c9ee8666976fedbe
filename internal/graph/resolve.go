package graph

import (
	"fmt"
)

// tree has the nodes of a tree, parents first, each by its index.
type tree struct {
	places []place
	yields map[string][]int
}

// place is a node of a tree.
type place struct {
	*Node
	// parent is the index of the enclosing node, -1 for the root, and at is the index in its Nodes.
	parent, at, depth int
}

func newTree(root *Node) *tree {
	t := &tree{yields: map[string][]int{}}
	t.add(root, -1, 0, 0)
	return t
}

func (t *tree) add(n *Node, parent, at, depth int) {
	index := len(t.places)
	t.places = append(t.places, place{Node: n, parent: parent, at: at, depth: depth})
	for _, key := range n.Yields {
		t.yields[key] = append(t.yields[key], index)
	}
	for i := range n.Nodes {
		t.add(&n.Nodes[i], index, i, depth+1)
	}
}

// edge says that in a list the node from needs the node to, since node, which is from or nested in it, needs target,
// which is to or nested in it.
type edge struct {
	list, from, to int
	node, target   int
	// key is what node needs of target; empty if node is after target.
	key string
}

// edges returns the edges of all lists, and what is wrong with names and keys.
func (t *tree) edges() (edges []edge, problems []error) {
	for i := range t.places {
		for _, name := range t.places[i].After {
			e, err := t.named(i, name)
			if err != nil {
				problems = append(problems, err)
				continue
			}
			edges = append(edges, e)
		}
		for _, key := range t.places[i].Needs {
			found, err := t.yielding(i, key)
			edges = append(edges, found...)
			if err != nil {
				problems = append(problems, err)
			}
		}
	}
	return edges, problems
}

// named returns the edge to the node that node calls by name: another node of the nearest list around it.
func (t *tree) named(node int, name string) (edge, error) {
	from := node
	for t.places[from].parent > 0 && !t.places[t.places[from].parent].List {
		from = t.places[from].parent
	}
	list := max(0, t.places[from].parent)
	var found []int
	for i := range t.places[list].Nodes {
		if t.places[list].List && t.places[list].Nodes[i].Name == name {
			found = append(found, i)
		}
	}
	switch len(found) {
	case 0:
		return edge{}, fmt.Errorf("must have %s after a node of its own list, not after %q: "+
			"to wait for a node of a list around it, put it into a When that does", t.places[node].Path, name)
	case 1:
		return edge{
			list: list, from: t.places[from].at, to: found[0], node: node, target: t.child(list, found[0]),
		}, nil
	}
	return edge{}, fmt.Errorf("must have different names for %s and %s, so that %s can be after %q",
		t.places[list].Nodes[found[0]].Path, t.places[list].Nodes[found[1]].Path, t.places[node].Path, name)
}

// child returns the index of a nested node.
func (t *tree) child(parent, at int) int {
	child := parent + 1
	for t.places[child].parent != parent || t.places[child].at != at {
		child++
	}
	return child
}

// yielding returns the edges to the nodes that yield a value. Those that come before the node are enough. Without one
// of these it returns an edge to a later node, or an error.
func (t *tree) yielding(node int, key string) ([]edge, error) {
	var before, later []edge
	inside, provided := false, false
	for _, target := range t.yields[key] {
		if t.isHidden(node, target) {
			continue
		}
		e, how := t.between(node, target)
		e.key = key
		switch how {
		case isBefore:
			provided = true
			if e.list >= 0 {
				before = append(before, e)
			}
		case isLater:
			later = append(later, e)
		case isInside:
			inside = true
		}
	}
	path := t.places[node].Path
	switch {
	case provided:
		return before, nil
	case len(later) > 0 && later[0].list >= 0:
		return later[:1], nil
	case len(later) > 0:
		return nil, fmt.Errorf("must have %s before %s, which needs its value %q",
			t.places[later[0].target].Path, path, key)
	case inside:
		return nil, fmt.Errorf("must have a node before %s that yields %q: it must not need what only itself yields",
			path, key)
	case t.storesAnyBefore(node):
		return nil, nil
	}
	return nil, fmt.Errorf("must have a node before %s that yields %q, which no node does", path, key)
}

// storesAnyBefore reports whether a node before the node may store any value.
func (t *tree) storesAnyBefore(node int) bool {
	for other := range node {
		if !t.places[other].StoresAny || t.isHidden(node, other) {
			continue
		}
		if _, how := t.between(node, other); how == isBefore {
			return true
		}
	}
	return false
}

// isHidden reports whether node does not get what target yields, because target is in a closed node without node.
func (t *tree) isHidden(node, target int) bool {
	for closed := t.places[target].parent; closed >= 0; closed = t.places[closed].parent {
		if t.places[closed].Closed {
			return !t.isBelow(node, closed)
		}
	}
	return false
}

// isBelow reports whether a node is nested in another.
func (t *tree) isBelow(node, around int) bool {
	for node > around {
		node = t.places[node].parent
	}
	return node == around
}

// order is when a node runs, compared with another.
type order int

const (
	isBefore order = iota
	isLater
	// isInside is a node that is the other one, or nested in it.
	isInside
	// isExcluded is a node that does not run in a request in which the other one runs.
	isExcluded
)

// between returns the edge from node to target in the nearest list that has both, and when target runs. The list is -1
// if another node than a list has both.
func (t *tree) between(node, target int) (edge, order) {
	e := edge{list: -1, node: node, target: target}
	from, to := node, target
	for t.places[from].depth > t.places[target].depth {
		from = t.places[from].parent
	}
	for t.places[to].depth > t.places[node].depth {
		to = t.places[to].parent
	}
	switch {
	case from == to && to == node:
		return e, isInside
	case from == to:
		return e, isBefore
	}
	for t.places[from].parent != t.places[to].parent {
		from, to = t.places[from].parent, t.places[to].parent
	}
	common := t.places[from].parent
	if t.places[common].Alternatives {
		return e, isExcluded
	}
	if t.places[common].List {
		e.list, e.from, e.to = common, t.places[from].at, t.places[to].at
	}
	if to < from {
		return e, isBefore
	}
	return e, isLater
}
