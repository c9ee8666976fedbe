package graph

import "fmt"

// Check returns an error if a node of the tree can never have what it needs: if a name is not that of one node, if no
// earlier node yields a value, or if nodes need each other.
func Check(root *Node) error {
	t := newTree(root)
	edges, problems := t.edges()
	if len(problems) > 0 {
		return problems[0]
	}
	for _, e := range edges {
		switch {
		case e.to == e.from:
			return fmt.Errorf("must have %s after another node than %s, which is the same or runs it",
				t.places[e.node].Path, t.places[e.target].Path)
		case e.to > e.from:
			return t.backwards(e, edges)
		}
	}
	return nil
}

// backwards returns the error for an edge to a later node of a list.
func (t *tree) backwards(e edge, edges []edge) error {
	list := t.places[e.list]
	from, to := list.Nodes[e.from].Path, list.Nodes[e.to].Path
	if back, cyclic := way(e, edges); cyclic {
		return fmt.Errorf("must have no cycle in the list at %s: %s, but %s. Move one of these nodes out of %s or %s",
			list.Path, t.reason(e), t.reason(back), from, to)
	}
	return fmt.Errorf("must not have %s, which runs later in the list at %s: put %s before %s",
		t.wish(e), list.Path, to, from)
}

// way returns the first of the edges that lead in the list of e from its later node back to its earlier one.
func way(e edge, edges []edge) (first edge, found bool) {
	seen := map[int]bool{}
	var leads func(from int) bool
	leads = func(from int) bool {
		if from == e.from {
			return true
		}
		seen[from] = true
		for _, next := range edges {
			if next.list == e.list && next.from == from && !seen[next.to] && leads(next.to) {
				first = next
				return true
			}
		}
		return false
	}
	found = leads(e.to)
	return first, found
}

func (t *tree) reason(e edge) string {
	node, target := t.places[e.node].Path, t.places[e.target].Path
	if e.key == "" {
		return fmt.Sprintf("%s is after %s", node, target)
	}
	return fmt.Sprintf("%s needs %q of %s", node, e.key, target)
}

func (t *tree) wish(e edge) string {
	node, target := t.places[e.node].Path, t.places[e.target].Path
	if e.key == "" {
		return fmt.Sprintf("%s after %s", node, target)
	}
	return fmt.Sprintf("%s need %q of %s", node, e.key, target)
}
