package page

import (
	"fmt"
	"strings"

	"github.com/espalier-dev/espalier/reconcilers"
)

// treeView is a node of a tree with what is shown of it.
type treeView struct {
	// ID is the anchor of the node. It is empty for a node that has not run yet.
	ID                       string
	Role, Kind, Name, Detail string
	Path                     string
	// Counts are numbers of resources by state, on a page of a root.
	Counts []countView
	// Running is how many requests are in the node now.
	Running int
	// Last is what the node did last, on the page of a resource.
	Last  *nodeView
	Nodes []*treeView

	slot       int
	conditions []string
	// shared is true if another node of the tree has the same path and kind, so that facts cannot be told apart.
	shared bool
}

// countView is a number of resources in a state.
type countView struct {
	State string
	Count int
	// URL is the list of these resources.
	URL string
}

// treeOf returns the tree of a root, with the nodes that are not in its description.
func treeOf(s *rootSnapshot) *treeView {
	slots := map[slotKey]int{}
	for slot, node := range s.nodes {
		slots[keyOf(node)] = slot
	}
	var root *treeView
	placed := map[int]bool{0: true}
	if s.tree != nil {
		seen := map[slotKey]*treeView{}
		var paths []string
		s.tree.Walk(func(path string, _ reconcilers.Description) { paths = append(paths, path) })
		root = describedTree(s.tree, &paths, func(v *treeView) {
			key := slotKey{path: v.Path, kind: v.Kind}
			v.slot = -1
			if slot, ok := slots[key]; ok {
				v.setSlot(slot)
				placed[slot] = true
			}
			if other := seen[key]; other != nil {
				// An anchor is there once.
				other.shared, v.shared, v.ID = true, true, ""
			}
			seen[key] = v
		})
		root.setSlot(0)
	} else {
		root = nodeTree(s.nodes[0], 0)
	}
	for slot, node := range s.nodes {
		if !placed[slot] {
			parent := root.around(node.Path)
			parent.Nodes = append(parent.Nodes, nodeTree(node, slot))
		}
	}
	return root
}

func (v *treeView) setSlot(slot int) { v.slot, v.ID = slot, fmt.Sprintf("node-%d", slot) }

// title names a node in a link.
func (v *treeView) title() string {
	if v.Name == "" {
		return v.Kind
	}
	return v.Kind + " " + v.Name
}

// describedTree returns the tree of a description. Paths has the paths of its nodes, parents first.
func describedTree(d *reconcilers.Description, paths *[]string, visit func(*treeView)) *treeView {
	v := &treeView{
		Role: d.Role, Kind: d.Kind, Name: d.Name, Detail: d.Detail, Path: (*paths)[0], conditions: d.Conditions,
	}
	*paths = (*paths)[1:]
	visit(v)
	for i := range d.Nodes {
		v.Nodes = append(v.Nodes, describedTree(&d.Nodes[i], paths, visit))
	}
	return v
}

func nodeTree(node *reconcilers.Node, slot int) *treeView {
	v := &treeView{Kind: node.Kind, Name: node.Name, Path: node.Path, conditions: node.Conditions}
	v.setSlot(slot)
	return v
}

// around returns the innermost node around a path.
func (v *treeView) around(path string) *treeView {
	for i := len(v.Nodes) - 1; i >= 0; i-- {
		nested := v.Nodes[i]
		if nested.Path == path || strings.HasPrefix(path, nested.Path+"/") {
			return nested.around(path)
		}
	}
	return v
}

// walk calls visit for a node and those below it, the node last.
func (v *treeView) walk(visit func(*treeView)) {
	for _, nested := range v.Nodes {
		nested.walk(visit)
	}
	visit(v)
}
