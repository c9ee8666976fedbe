package graph

import (
	"fmt"
	"slices"
)

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
	way := Way(e.to, e.from, func(at int) []int {
		var next []int
		for _, other := range edges {
			if other.list == e.list && other.from == at {
				next = append(next, other.to)
			}
		}
		return next
	})
	if way == nil {
		return fmt.Errorf("must not have %s, which runs later in the list at %s: put %s before %s",
			t.wish(e), list.Path, to, from)
	}
	back := slices.IndexFunc(edges, func(other edge) bool {
		return other.list == e.list && other.from == way[0] && other.to == way[1]
	})
	return fmt.Errorf("must have no cycle in the list at %s: %s, but %s. Move one of these nodes out of %s or %s",
		list.Path, t.reason(e), t.reason(edges[back]), from, to)
}

// Way returns the nodes on a way from one node to another, both included, or nil if there is none. Next are the nodes
// to which a way leads from one.
func Way(from, to int, next func(node int) []int) []int {
	seen := map[int]bool{}
	var walk func(at int) []int
	walk = func(at int) []int {
		if at == to {
			return []int{at}
		}
		seen[at] = true
		for _, node := range next(at) {
			if seen[node] {
				continue
			}
			if rest := walk(node); rest != nil {
				return append([]int{at}, rest...)
			}
		}
		return nil
	}
	return walk(from)
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
