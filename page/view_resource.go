package page

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/reconcilers"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// resourceView is the page of a resource.
type resourceView struct {
	frame
	Kind string
	Name string
	// Visible is false if the viewer may not get the resource. Then nothing more is here.
	Visible bool
	// Known is false if the page knows nothing of the resource.
	Known bool
	State string
	Why   string
	Since moment
	// Running is since when a request runs, and Deleted since when the resource is being deleted, if so.
	Running, Deleted moment
	// Finalizers are those that keep the resource, while it is being deleted.
	Finalizers string
	Tree       *treeView
	Conditions []conditionView
	Requests   []requestView
	Count      uint64
	Components []componentView
	Features   []featureView
}

// nodeView is what a node did last for a resource.
type nodeView struct {
	// State is how it ended. It is "Not run" for a node that was not part of the last request.
	State string
	// Stale is true if the node was not part of the last request. The rest is about the request in which it was.
	Stale   bool
	Running int
	When    moment
	Since   moment
	Took    string
	Runs    int32
	// At is the path of the run that ended worst, if there were several.
	At    string
	Class string
	Error string
	// Back is when the node asked to run again.
	Back       moment
	Writes     []writeView
	Conditions []conditionView
}

// conditionView is a condition.
type conditionView struct {
	Type, Status, Reason, Message string
	Since                         moment
	// Node is the node that sets the condition.
	Node link
}

// requestView is a request that has ended.
type requestView struct {
	When    moment
	Took    string
	State   string
	Causes  []string
	Error   string
	Delay   string
	Writes  []writeView
	Omitted int
}

// featureView is a feature.
type featureView struct {
	Name      string
	Phase     string
	Since     moment
	Condition conditionView
	// Needs says whether the prerequisites were met; empty if nobody asks, since the feature is disabled.
	Needs string
	// Next is when a feature in its grace period is looked at again. The grace period does not end before that.
	Next       string
	Dependents []dependentView
	Omitted    int
}

// dependentView is an object of a feature.
type dependentView struct {
	Object, State, Reason, Message string
	Since                          moment
	Auxiliary                      bool
}

const notRun = "Not run"

// resourceViewOf returns the page of a resource that the viewer sees. LinkTo returns the URL of an object that is a
// resource of a root, or nothing.
func resourceViewOf(
	f frame, root *rootSnapshot, s *resourceSnapshot, linkTo func(reconcilers.ObjectRef) string, now time.Time,
) resourceView {
	v := resourceView{
		frame: f, Kind: root.node.Resource.Kind, Name: nameOf(s.key), Visible: true, Known: true,
		Tree: treeOf(root), Count: s.count,
	}
	b := brief{}
	if len(s.nodes) > 0 {
		b.state, b.err, b.since = s.nodes[0].state, s.nodes[0].err, s.nodes[0].since
	}
	b.explain(s.conditions)
	v.State, v.Why, v.Since = b.state.String(), b.why(), momentOf(b.since, now)
	v.Running, v.Deleted = momentOf(s.runningSince, now), momentOf(s.deleted, now)
	if !s.deleted.IsZero() {
		v.Finalizers = strings.Join(s.finalizers, ", ")
	}
	conditionViews := v.conditionsOf(s, now)
	v.Tree.walk(func(node *treeView) { node.Last = lastOf(node, s, conditionViews, linkTo, now) })
	v.Conditions = conditionViews
	for i := range s.requests {
		v.Requests = append(v.Requests, requestViewOf(&s.requests[i], linkTo, now))
	}
	for _, c := range s.sortedComponents() {
		v.Components = append(v.Components, componentViewOf(root.id, s.key, c, now))
	}
	for i := range s.features {
		v.Features = append(v.Features, featureViewOf(&s.features[i], conditionViews, root, s, now))
	}
	v.Summary = fmt.Sprintf("%s %s: %s", v.Kind, v.Name, v.State)
	if v.Why != "" {
		v.Summary += ". " + v.Why
	}
	return v
}

// conditionText says in one line how a condition is.
func conditionText(c *metav1.Condition) string {
	text := fmt.Sprintf("%s is %s (%s)", c.Type, c.Status, c.Reason)
	if c.Message != "" {
		text += ": " + c.Message
	}
	return text
}

// conditionsOf returns the conditions with the nodes that set them.
func (v *resourceView) conditionsOf(s *resourceSnapshot, now time.Time) []conditionView {
	setBy := map[string]link{}
	v.Tree.walk(func(node *treeView) {
		for _, conditionType := range node.conditions {
			if node.ID != "" {
				setBy[conditionType] = link{URL: "#" + node.ID, Text: node.title()}
			}
		}
	})
	var views []conditionView
	for i := range s.conditions {
		c := &s.conditions[i]
		views = append(views, conditionView{
			Type: c.Type, Status: string(c.Status), Reason: c.Reason, Message: c.Message,
			Since: momentOf(c.LastTransitionTime.Time, now), Node: setBy[c.Type],
		})
	}
	// What sums up the others stands first, and then what is not True.
	slices.SortStableFunc(views, func(a, b conditionView) int { return a.rank() - b.rank() })
	return views
}

func (c *conditionView) rank() int {
	switch {
	case c.Type == apis.ConditionReady, c.Type == apis.ConditionSucceeded:
		return 0
	case c.Status != string(metav1.ConditionTrue):
		return 1
	}
	return 2
}

// lastOf returns what a node did last. The nodes below it have theirs.
func lastOf(
	node *treeView, s *resourceSnapshot, conditions []conditionView, linkTo func(reconcilers.ObjectRef) string,
	now time.Time,
) *nodeView {
	last := &nodeView{State: notRun, Stale: true}
	for _, conditionType := range node.conditions {
		for _, c := range conditions {
			if c.Type == conditionType {
				last.Conditions = append(last.Conditions, c)
			}
		}
	}
	if node.slot >= 0 && node.slot < len(s.running) {
		last.Running = s.running[node.slot]
	}
	if node.slot < 0 || node.slot >= len(s.nodes) || s.nodes[node.slot].request == 0 {
		return last
	}
	if node.shared && !slices.ContainsFunc(node.Nodes, func(below *treeView) bool { return !below.Last.Stale }) {
		return last
	}
	n := &s.nodes[node.slot]
	last.Stale = n.request != s.count
	if !last.Stale {
		last.State = n.state.String()
	}
	last.When, last.Since, last.Took = momentOf(n.when, now), momentOf(n.since, now), took(n.took)
	last.Runs, last.At, last.Class, last.Error = n.runs, n.at, string(n.class), n.err
	if n.delay > 0 {
		last.Back = momentOf(n.when.Add(n.delay), now)
	}
	for i := range s.requests {
		for j := range s.requests[i].writes {
			if w := &s.requests[i].writes[j]; w.slot == node.slot {
				last.Writes = append(last.Writes, writeViewOf(w, linkTo))
			}
		}
		if len(last.Writes) > 0 {
			break
		}
	}
	return last
}

func requestViewOf(r *requestRecord, linkTo func(reconcilers.ObjectRef) string, now time.Time) requestView {
	v := requestView{
		When: momentOf(r.when, now), Took: took(r.took), State: r.state.String(), Error: r.err, Omitted: r.omitted,
		Delay: delayOf(r.delay),
	}
	for _, cause := range r.causes {
		v.Causes = append(v.Causes, causeText(cause))
	}
	for i := range r.writes {
		v.Writes = append(v.Writes, writeViewOf(&r.writes[i], linkTo))
	}
	return v
}

func featureViewOf(
	f *apis.FeatureStatus, conditions []conditionView, root *rootSnapshot, s *resourceSnapshot, now time.Time,
) featureView {
	v := featureView{
		Name: f.Name, Phase: string(f.Phase), Since: momentOf(f.Since.Time, now), Omitted: f.OmittedDependents,
	}
	switch {
	case f.Passed:
		v.Needs = "met"
	case f.Phase != apis.FeatureDisabled:
		v.Needs = "not met yet"
	}
	for _, c := range conditions {
		if c.Type == f.Condition {
			v.Condition = c
		}
	}
	for slot, node := range root.nodes {
		if f.Phase == apis.FeatureProgressing && slices.Contains(node.Conditions, f.Condition) && slot < len(s.nodes) {
			if n := &s.nodes[slot]; n.delay > 0 {
				v.Next = momentOf(n.when.Add(n.delay), now).Text
			}
		}
	}
	for i := range f.Dependents {
		d := &f.Dependents[i]
		object := row{kind: d.Kind, namespace: d.Namespace, name: d.Name}
		v.Dependents = append(v.Dependents, dependentView{
			Object: object.objectName(), State: string(d.State), Reason: d.Reason, Message: d.Message,
			Since: momentOf(d.Since.Time, now), Auxiliary: d.Auxiliary,
		})
	}
	return v
}

func (s *resourceSnapshot) sortedComponents() []*progressRecord {
	all := make([]*progressRecord, 0, len(s.components))
	for _, c := range s.components {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *progressRecord) int { return strings.Compare(a.path, b.path) })
	return all
}
