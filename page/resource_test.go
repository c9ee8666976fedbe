package page_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/page"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ignoreTook leaves out how long something took, which is measured.
var ignoreTook = cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Took" }, cmp.Ignore())

var (
	minuteAgo = page.Moment{ISO: "2026-01-02T03:04:05Z", Text: "60s ago"}
	justNow   = page.Moment{ISO: "2026-01-02T03:05:05Z", Text: "0s ago"}
)

// lines has a line for each node of the tree of a resource.
func lines(tree *page.TreeView, indent string) []string {
	line := fmt.Sprintf("%s%s %s: %s", indent, tree.Kind, tree.Name, tree.Last.State)
	if tree.Last.Runs > 1 {
		line += fmt.Sprintf(" in %d runs", tree.Last.Runs)
	}
	if tree.Last.At != "" {
		line += ", worst at " + tree.Last.At
	}
	if tree.Last.Error != "" {
		line += fmt.Sprintf(", %s: %s", tree.Last.Class, tree.Last.Error)
	}
	if tree.Last.Since.ISO != "" {
		line += ", since " + tree.Last.Since.Text
	}
	all := []string{line}
	for _, nested := range tree.Nodes {
		all = append(all, lines(nested, indent+"  ")...)
	}
	return all
}

// The tree of a resource says what each node did in the last request, and which had no part in it.
func TestTheTreeSaysWhatEachNodeDidLast(t *testing.T) {
	w := newWorld(t, page.Options{}, "w")
	for _, step := range []struct {
		name   string
		change func()
		at     time.Time
		want   []string
	}{
		{name: "a first request", at: began, change: func() {}, want: []string{
			"ResourceReconciler root: Changed, since 60s ago",
			"  Sequence : Changed, since 60s ago",
			"    SyncReconciler checks: Unchanged, since 60s ago",
			"    ForEach letters: Unchanged, since 60s ago",
			"      SyncReconciler one: Unchanged in 2 runs, since 60s ago",
			"    ChildReconciler settings: Changed, since 60s ago",
		}},
		{name: "an item fails", at: later, change: func() {
			w.letter = func(letter string) error {
				if letter == "b" {
					return errors.New("b is no letter")
				}
				return nil
			}
		}, want: []string{
			"ResourceReconciler root: Error, Retry: b is no letter, since 0s ago",
			"  Sequence : Error, Retry: b is no letter, since 0s ago",
			"    SyncReconciler checks: Unchanged, since 60s ago",
			"    ForEach letters: Error, Retry: b is no letter, since 0s ago",
			"      SyncReconciler one: Error in 2 runs, worst at root/1/letters/1/one, Retry: b is no letter, since 0s ago",
			"    ChildReconciler settings: Not run, since 60s ago",
		}},
	} {
		step.change()
		_ = w.reconcile(t, step.at, "w")
		if diff := cmp.Diff(step.want, lines(w.page.Resource("widgets", keyOf("w")).Tree, "")); diff != "" {
			t.Errorf("%s: (-want, +shown)\n%s", step.name, diff)
		}
	}
}

func TestAResourceSaysWhyItWaits(t *testing.T) {
	w := newWorld(t, page.Options{}, "w")
	w.reason, w.message = "NoPod", "no pod <script>alert(1)</script> runs"
	w.settle(t, "w")
	v := w.page.Resource("widgets", keyOf("w"))
	node := page.Link{}
	for _, c := range v.Conditions {
		if c.Type == "ChildReady" && c.Node != node {
			t.Errorf("a condition that no node describes links to %v", c.Node)
		}
	}
	want := []page.ConditionView{
		{Type: "Ready", Status: "False", Reason: "NoPod", Message: w.message, Since: minuteAgo},
		{Type: "ChildReady", Status: "False", Reason: "NoPod", Message: w.message, Since: minuteAgo},
	}
	if diff := cmp.Diff(want, v.Conditions); diff != "" {
		t.Errorf("the conditions (-want, +shown)\n%s", diff)
	}
	if want := "Ready is False (NoPod): " + w.message; v.Why != want {
		t.Errorf("why it waits: %q, not %q", v.Why, want)
	}
	wantRequests := []page.RequestView{{
		When: minuteAgo, State: "Changed",
		Writes: []page.WriteView{
			{Verb: "create", Object: page.Link{Text: "ConfigMap default/w"}, Reason: "it did not exist"},
			{
				Verb:   "update",
				Object: page.Link{URL: "resource?name=w&namespace=default&root=widgets", Text: "Widget default/w (status)"},
			},
		},
	}}
	if diff := cmp.Diff(wantRequests, v.Requests, ignoreTook); diff != "" {
		t.Errorf("the requests (-want, +shown)\n%s", diff)
	}

	doc := w.document(t, "resource?root=widgets&namespace=default&name=w", onLoopback(w))
	if scripts := doc.byID(t, "content").all("script"); len(scripts) > 0 {
		t.Errorf("a message has become an element: %v", scripts[0].text())
	}
	table := doc.byID(t, "content").all("table")[0]
	if want := w.message; table.rows()[1][3] != want {
		t.Errorf("the page shows the message %q, not %q", table.rows()[1][3], want)
	}
}

// A delay is counted from now, not from the request that asked for it.
func TestANodeSaysWhenItComesBack(t *testing.T) {
	w := newWorld(t, page.Options{}, "w")
	w.root.Reconciler = &sync{SyncWithResult: func(context.Context, widget) (reconcilers.Result, error) {
		return reconcilers.Result{RequeueAfter: 5 * time.Minute}, nil
	}}
	for range 2 { // The write of the status drops the delay of the first.
		w.settle(t, "w")
	}
	v := w.page.Resource("widgets", keyOf("w"))
	if got, want := v.Tree.Last.Back.Text, "in 4m"; got != want {
		t.Errorf("a minute after a request that asked for five, the root comes back %q, want %q", got, want)
	}
}

// The condition says which node an error came from, and both are found.
func TestAnErrorIsShownWithItsNode(t *testing.T) {
	w := newWorld(t, page.Options{}, "w")
	w.reason, w.message = "Retry", "Widget/0/checks: connection refused"
	w.settle(t, "w")
	w.check = func(string) error { return errors.New("connection refused") }
	_ = w.reconcile(t, later, "w")
	if v := w.page.Resource("widgets", keyOf("w")); !strings.Contains(v.Why, w.message) {
		t.Errorf("why it fails: %q, want %q in it", v.Why, w.message)
	}
	for text, want := range map[string]int{"CHECKS": 1, "connection refused": 1, "another": 0} {
		if rows := w.page.List("widgets", text, "", 1).Rows; len(rows) != want {
			t.Errorf("%d resources are found by %q, want %d", len(rows), text, want)
		}
	}
	none := w.document(t, "root?root=widgets&q=another", onLoopback(w)).byID(t, "list").text()
	if want := "No resource has that"; !strings.Contains(none, want) {
		t.Errorf("a list of nothing lacks %q: %s", want, none)
	}
}

// onLoopback has the page show everything. A test sets it late, so that it can count what was asked before.
func onLoopback(w *world) func(*http.Request) {
	return func(*http.Request) { w.page.SetAccess(page.OnLoopback()) }
}

func TestTheLastRequestsAreKept(t *testing.T) {
	w := newWorld(t, page.Options{}, "w")
	for i := range page.MaxRequests + 5 {
		w.check = func(string) error { return fmt.Errorf("failure %d", i) }
		_ = w.reconcile(t, began.Add(time.Duration(i)*time.Second), "w")
	}
	v := w.page.Resource("widgets", keyOf("w"))
	var errs []string
	for _, r := range v.Requests {
		errs = append(errs, r.Error)
	}
	var want []string
	for i := page.MaxRequests + 4; i >= 5; i-- {
		want = append(want, fmt.Sprintf("failure %d", i))
	}
	if diff := cmp.Diff(want, errs); diff != "" {
		t.Errorf("the errors of the requests, the last one first (-want, +shown)\n%s", diff)
	}
	if v.Count != page.MaxRequests+5 {
		t.Errorf("%d requests are counted, not %d", v.Count, page.MaxRequests+5)
	}
	text := w.document(t, "resource?root=widgets&namespace=default&name=w", onLoopback(w)).byID(t, "resource").text()
	if want := fmt.Sprintf("%d requests since the operator knows the resource, the last %d of them.",
		page.MaxRequests+5, page.MaxRequests); !strings.Contains(text, want) {
		t.Errorf("the page lacks %q: %s", want, text)
	}
}

// A condition that a node describes links to the node.
func TestAConditionLinksToItsNode(t *testing.T) {
	w := newWorld(t, page.Options{}, "w")
	w.root.Reconciler = sequence{
		espalier.Runs("Probe", func(context.Context, widget) error {
			return espalier.NotReady("NoAnswer", "nobody answers")
		}).Reports("Probed"),
	}
	w.settle(t, "w")
	v := w.page.Resource("widgets", keyOf("w"))
	var probed page.ConditionView
	for _, c := range v.Conditions {
		if c.Type == "Probed" {
			probed = c
		}
	}
	want := page.ConditionView{
		Type: "Probed", Status: "False", Reason: "NoAnswer", Message: "nobody answers", Since: minuteAgo,
		Node: page.Link{URL: "#node-2", Text: "Runs Probe"},
	}
	if diff := cmp.Diff(want, probed); diff != "" {
		t.Errorf("the condition (-want, +shown)\n%s", diff)
	}
	if diff := cmp.Diff([]page.ConditionView{want}, v.Tree.Nodes[0].Nodes[0].Last.Conditions); diff != "" {
		t.Errorf("the condition at its node (-want, +shown)\n%s", diff)
	}
	w.page.SetAccess(page.OnLoopback())
	doc := w.document(t, "resource?root=widgets&namespace=default&name=w")
	if got := doc.byID(t, "node-2").all("strong")[0].text(); got != "Probe" {
		t.Errorf("the link leads to %q", got)
	}
}

// The set-up with a manager tells the whole tree before a request, and events say what woke one.
func TestSetUpTellsTheTree(t *testing.T) {
	w := newWorld(t, page.Options{}, "w")
	given := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "w"}}
	rtesting.SetupTests{"": {
		// The resources are watched once more, by a handler that notes what has woken a request.
		ExpectWatches: []client.Object{&resources.Widget{}, &corev1.ConfigMap{}},
		Events: []rtesting.SetupEvent{
			{Created: given, ExpectRequests: []reconcilers.Request{{NamespacedName: keyOf("w")}}},
		},
	}}.Run(t, resources.NewScheme(), func(_ *testing.T, _ *rtesting.SetupTestCase, c reconcilers.Config) rtesting.Setup {
		w.root = w.newRoot(c.WithObserver(w.page))
		return w.root
	})
	roots := w.page.Overview().Roots
	if len(roots) != 1 {
		t.Fatalf("there are %d roots", len(roots))
	}
	var got []string
	var walk func(tree *page.TreeView)
	walk = func(tree *page.TreeView) {
		got = append(got, tree.Path+" "+tree.Kind+" "+tree.Detail)
		for _, nested := range tree.Nodes {
			walk(nested)
		}
	}
	walk(roots[0].Tree)
	want := []string{
		"root ResourceReconciler Widget", "root Sequence ", "root/0/checks SyncReconciler ", "root/1/letters ForEach ",
		"root/1/letters/one SyncReconciler ", "root/2/settings ChildReconciler ConfigMap",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the tree (-want, +shown)\n%s", diff)
	}
}

// A request that runs is in the list, and on the page of its resource, with since when: it may hold up all others.
func TestARequestThatRunsIsShown(t *testing.T) {
	w := newWorld(t, page.Options{Access: page.OnLoopback()}, "slow")
	called, answers, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	w.check = func(string) error {
		close(called)
		<-answers
		return nil
	}
	go func() { done <- w.reconcile(t, began, "slow") }()
	<-called
	for path, want := range map[string]string{
		"root?root=widgets": "default/slow running since 60s ago",
		"resource?root=widgets&namespace=default&name=slow": "Widget default/slow running since 60s ago",
		"": "Widget: 1 resource. 0 requests.",
	} {
		if got := w.document(t, path).text(); !strings.Contains(got, want) {
			t.Errorf("GET %s: %q is not shown, but\n%s", path, want, got)
		}
	}
	close(answers)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := w.document(t, "root?root=widgets").text(); strings.Contains(got, "running since") {
		t.Errorf("when it has ended, the list shows\n%s", got)
	}
}

// That an error is quiet is for the root, not for a reader.
func TestQuietErrorsAreShownWithTheirCause(t *testing.T) {
	w := newWorld(t, page.Options{Access: page.OnLoopback()}, "early")
	w.check = func(string) error {
		return fmt.Errorf("%w: %w", errors.New("the cache is not filled yet"), reconcilers.ErrQuiet)
	}
	w.settle(t, "early")
	got := w.document(t, "resource?root=widgets&namespace=default&name=early").text()
	if !strings.Contains(got, "the cache is not filled yet") || strings.Contains(got, "quiet") {
		t.Errorf("the page shows\n%s", got)
	}
}

// That a resource is being deleted is in the list and on its page, whatever else is said of it.
func TestAResourceThatIsBeingDeleted(t *testing.T) {
	w := newWorld(t, page.Options{Access: page.OnLoopback()}, "going")
	going := &resources.Widget{}
	if err := w.client.Get(t.Context(), keyOf("going"), going); err != nil {
		t.Fatal(err)
	}
	going.Finalizers = []string{"test.espalier.dev/other"}
	if err := errors.Join(w.client.Update(t.Context(), going), w.client.Delete(t.Context(), going)); err != nil {
		t.Fatal(err)
	}
	w.settle(t, "going")
	for _, path := range []string{"root?root=widgets", "resource?root=widgets&namespace=default&name=going"} {
		if got := w.document(t, path).text(); !strings.Contains(got, "being deleted since") {
			t.Errorf("GET %s: the page does not say that the resource is being deleted, but\n%s", path, got)
		}
	}
	if v := w.page.Resource("widgets", keyOf("going")); v.Finalizers != "test.espalier.dev/other" {
		t.Errorf("the page lists the finalizers %q", v.Finalizers)
	}
	// It goes and is made again before a request sees that it is gone.
	if err := w.client.Get(t.Context(), keyOf("going"), going); err != nil {
		t.Fatal(err)
	}
	going.Finalizers = nil
	again := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "going", UID: "again", Generation: 1}}
	if err := errors.Join(w.client.Update(t.Context(), going), w.client.Create(t.Context(), again)); err != nil {
		t.Fatal(err)
	}
	w.settle(t, "going")
	if got := w.document(t, "resource?root=widgets&namespace=default&name=going").text(); strings.Contains(got, "being deleted") {
		t.Errorf("the page says that a new resource of the name is being deleted:\n%s", got)
	}
}
