package page

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// overviewView is the page of all roots.
type overviewView struct {
	frame
	// WatchFailures are the types that cannot be watched.
	WatchFailures []watchFailureView
	Roots         []rootView
}

// rootView is a root with its tree.
type rootView struct {
	Name      link
	Kind      string
	Resources int
	Requests  uint64
	Took      string
	Counts    []countView
	Tree      *treeView
}

func overviewOf(f frame, watches []watchFailureView, roots []rootSnapshot) overviewView {
	v := overviewView{frame: f, WatchFailures: watches}
	var said []string
	for _, w := range watches {
		said = append(said, w.Type+" cannot be watched")
	}
	for i := range roots {
		root := rootViewOf(&roots[i])
		v.Roots = append(v.Roots, root)
		said = append(said, root.Name.Text+": "+countsText(root.Resources, root.Counts))
	}
	v.Summary = strings.Join(said, "; ")
	if len(said) == 0 {
		v.Summary = "No root has been set up yet."
	}
	return v
}

func rootViewOf(s *rootSnapshot) rootView {
	v := rootView{
		Name: link{URL: rootURL(s.id), Text: s.id}, Kind: s.node.Resource.Kind,
		Resources: s.resources, Requests: s.requests, Counts: countsOf(s.id, &s.counts[0]), Tree: treeOf(s),
	}
	if s.requests > 0 {
		v.Took = took(s.lastTook)
	}
	v.Tree.walk(func(node *treeView) {
		if node.slot >= 0 && !node.shared {
			node.Counts, node.Running = countsOf("", &s.counts[node.slot]), s.running[node.slot]
		}
	})
	return v
}

// countsOf returns the counts that are not zero, the worst state first. With a root they have links.
func countsOf(root string, counts *stateCounts) []countView {
	var views []countView
	for at := stateError; at > stateNone; at-- {
		if counts[at] == 0 {
			continue
		}
		c := countView{State: at.String(), Count: counts[at]}
		if root != "" {
			c.URL = "root?" + url.Values{"root": {root}, "state": {c.State}}.Encode()
		}
		views = append(views, c)
	}
	return views
}

func countsText(resources int, counts []countView) string {
	text := fmt.Sprintf("%d resources", resources)
	if resources == 1 {
		text = "1 resource"
	}
	for _, c := range counts {
		text += fmt.Sprintf(", %d %s", c.Count, c.State)
	}
	return text
}

// listSize is how many resources are on one page.
const listSize = 50

// listFilter is what a viewer asks of a list.
type listFilter struct {
	text  string
	state string
	page  int
}

// listView is the page of the resources of a root.
type listView struct {
	frame
	Root   rootView
	RootID string
	Query  string
	State  string
	States []string
	Rows   []listRow
	Pages  pages
	// Hidden is true if the viewer may not get some of the resources, so that a filter leaves them out.
	Hidden bool
	// Unasked is true if there are too many namespaces to look up the rights for each.
	Unasked bool
}

// listRow is a resource in a list.
type listRow struct {
	Name link
	// Visible is false if the viewer may not get the resource. Then nothing but its name is here.
	Visible bool
	State   string
	Why     string
	When    moment
	Since   moment
	Took    string
	// Running is since when a request runs, and Deleted since when the resource is being deleted, if so.
	Running, Deleted moment
}

// listOf returns the list of resources that a viewer sees. Sees is asked for the namespaces that matter.
func listOf(
	f frame, root *rootSnapshot, all []brief, filter listFilter, sees func(namespace string) bool, now time.Time,
) listView {
	v := listView{
		frame: f, Root: rootViewOf(root), RootID: root.id, Query: filter.text, State: filter.state,
	}
	for at := stateError; at > stateNone; at-- {
		v.States = append(v.States, at.String())
	}
	slices.SortFunc(all, func(a, b brief) int {
		if c := strings.Compare(a.key.Namespace, b.key.Namespace); c != 0 {
			return c
		}
		return strings.Compare(a.key.Name, b.key.Name)
	})
	found := slices.DeleteFunc(all, func(b brief) bool { return !filter.has(&b, sees) })
	query := url.Values{"root": {root.id}, "q": {filter.text}, "state": {filter.state}}
	var start, end int
	v.Pages, start, end = pagesOf(len(found), listSize, filter.page, pageURL("root", query))
	for i := start; i < end; i++ {
		row := listRow{Name: link{URL: resourceURL(root.id, found[i].key), Text: nameOf(found[i].key)}}
		if sees(found[i].key.Namespace) {
			row.fill(&found[i], now)
		}
		v.Hidden = v.Hidden || !row.Visible
		v.Rows = append(v.Rows, row)
	}
	v.Summary = countsText(v.Root.Resources, v.Root.Counts)
	return v
}

func (r *listRow) fill(b *brief, now time.Time) {
	r.Visible, r.State, r.Why, r.Running = true, b.state.String(), b.why(), momentOf(b.running, now)
	r.When, r.Since = momentOf(b.when, now), momentOf(b.since, now)
	r.Deleted = momentOf(b.deleted, now)
	if !b.when.IsZero() {
		r.Took = took(b.took)
	}
}

// why says why a resource is not as it is to be. A condition that has the error says which node it came from.
func (b *brief) why() string {
	if b.err != "" && !b.refused && !strings.Contains(b.reason, b.err) {
		return b.err
	}
	return b.reason
}

// has reports whether a list has a resource. Of one that the viewer does not see, nothing but the name counts.
func (f *listFilter) has(b *brief, sees func(namespace string) bool) bool {
	contains := func(text string) bool { return strings.Contains(strings.ToLower(text), strings.ToLower(f.text)) }
	named := f.text == "" || contains(nameOf(b.key))
	if named && f.state == "" {
		return true
	}
	// Whether the rights are asked for must not tell how the resource is.
	if !sees(b.key.Namespace) {
		return false
	}
	return (f.state == "" || b.state.String() == f.state) && (named || contains(b.err) || contains(b.reason))
}
