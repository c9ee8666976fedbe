// Package graph decides which nodes of a tree need which: by name, by the values that one yields and another needs, and
// by their order in a list. It knows a node only by what it says of itself, and calls nothing.
package graph

import (
	"slices"
)

// Node is a node of a tree.
type Node struct {
	// Name is what other nodes call it. It may be empty.
	Name string
	// Path tells it from all others, in errors.
	Path string
	// List is true if it runs Nodes in order, and if they may be called by their names.
	List bool
	// Alternatives is true if only one of Nodes runs.
	Alternatives bool
	// Closed is true if a value that Nodes yield is only for them.
	Closed bool
	// Declared is true if only what it declares stops it.
	Declared bool
	// Barrier is true if an error of the node itself stops all that come after it.
	Barrier bool
	// StoresAny is true if it may yield values without saying so.
	StoresAny bool
	// After are the names of nodes that it comes after.
	After []string
	// Needs and Yields are the keys of values.
	Needs, Yields []string
	// Nodes are the nested nodes, in the order in which they run.
	Nodes []Node
}

// Plan is what is known of the nodes of one list, each by its index.
type Plan struct {
	// Declares is true if a node declares what it needs, or if something that is nested in it needs another node.
	Declares bool
	// Named is true if a node, or one that is nested in it and in no other list, refers to others by name.
	Named bool
	// Declared and Barrier are those of the nodes. A node is also a barrier if one that is nested in it is.
	Declared, Barrier []bool
	// NeededBy are the later nodes that need a node because of what they, or nodes nested in them, declare.
	NeededBy [][]int
	// Indexes are the indexes of the nodes by name, the first one of each name.
	Indexes map[string]int
}

// PlanOf returns the plan of a list. What refers to nodes outside of the list is left out, and so is what [Check]
// refuses.
func PlanOf(list *Node) Plan {
	n := len(list.Nodes)
	p := Plan{
		Declared: make([]bool, n), Barrier: make([]bool, n), NeededBy: make([][]int, n),
		Indexes: make(map[string]int, n),
	}
	for i := range list.Nodes {
		node := &list.Nodes[i]
		p.Declared[i], p.Barrier[i] = node.Declared, node.holds(func(n *Node) bool { return n.Barrier })
		p.Declares = p.Declares || node.Declared
		if _, known := p.Indexes[node.Name]; !known && node.Name != "" {
			p.Indexes[node.Name] = i
		}
	}
	edges, _ := newTree(list).edges()
	for _, e := range edges {
		p.Named = p.Named || e.list == 0 && e.key == ""
		if e.list == 0 && e.to < e.from && !slices.Contains(p.NeededBy[e.to], e.from) {
			p.NeededBy[e.to] = append(p.NeededBy[e.to], e.from)
			p.Declares = true
		}
	}
	return p
}

// holds reports whether is holds for the node or a node that is nested in it.
func (n *Node) holds(is func(*Node) bool) bool {
	if is(n) {
		return true
	}
	for i := range n.Nodes {
		if n.Nodes[i].holds(is) {
			return true
		}
	}
	return false
}

// Cleanup is the way through a list from its last node to its first, in which nodes clean up. The zero value, with the
// plan of the list, is at the end of the list.
type Cleanup struct {
	Plan *Plan

	unfinished map[int]bool
	// undeclared is true if one of the unfinished nodes needs every node before it.
	undeclared bool
}

// Waits reports whether a node has to wait, because a later node that needs it is unfinished.
func (c *Cleanup) Waits(node int) bool {
	needed := func(by int) bool { return c.unfinished[by] }
	return c.undeclared || c.Plan.Barrier[node] && len(c.unfinished) > 0 ||
		slices.ContainsFunc(c.Plan.NeededBy[node], needed)
}

// Unfinished notes that a node did not run, or has not finished.
func (c *Cleanup) Unfinished(node int) {
	if c.unfinished == nil {
		c.unfinished = map[int]bool{}
	}
	c.unfinished[node] = true
	c.undeclared = c.undeclared || !c.Plan.Declared[node]
}
