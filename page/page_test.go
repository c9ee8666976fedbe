package page_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/espalier-dev/espalier/page"

	"github.com/google/go-cmp/cmp"
)

// Each page says which replica it is, and whether it leads.
func TestAPageSaysWhichReplicaItIs(t *testing.T) {
	elected := make(chan struct{})
	w := newWorld(t, page.Options{Access: page.OnLoopback(), Replica: "operator-0", Elected: elected})
	unknown := newWorld(t, page.Options{Access: page.OnLoopback(), Replica: "operator-1"})
	if got, want := w.document(t, "").byID(t, "replica").text(), "Replica operator-0 does not lead"; got != want {
		t.Errorf("before the election: %q, not %q", got, want)
	}
	close(elected)
	if got, want := w.document(t, "").byID(t, "replica").text(), "Replica operator-0 leads"; got != want {
		t.Errorf("after the election: %q, not %q", got, want)
	}
	if got, want := unknown.document(t, "").byID(t, "replica").text(), "Replica operator-1"; got != want {
		t.Errorf("without an election: %q, not %q", got, want)
	}
}

func TestTheOverviewHasEachRootWithItsTree(t *testing.T) {
	w := newWorld(t, page.Options{Access: page.OnLoopback()}, "w", "other")
	w.settle(t, "w")
	w.check = func(string) error { return errors.New("broken") }
	_ = w.reconcile(t, began, "other")
	doc := w.document(t, "")
	if got, want := doc.byID(t, "summary").text(), "widgets: 2 resources, 1 Error, 1 Changed"; got != want {
		t.Errorf("the summary is %q, not %q", got, want)
	}
	var items []string
	for _, li := range doc.byID(t, "roots").all("li") {
		line := ""
		for n := range li.ChildNodes() {
			if n.Data != "ul" {
				line += " " + element{n}.text()
			}
		}
		items = append(items, join(line))
	}
	want := []string{
		"ResourceReconciler root 1 Error 1 Changed", "SyncReconciler checks 1 Error 1 Unchanged",
		"Sequence 1 Error 1 Changed", "ForEach letters 1 Unchanged", "SyncReconciler one 1 Unchanged",
		"ChildReconciler settings 1 Changed",
	}
	slices.Sort(items)
	slices.Sort(want)
	if diff := cmp.Diff(want, items); diff != "" {
		t.Errorf("the nodes (-want, +shown)\n%s", diff)
	}
	links := doc.byID(t, "roots").all("a")
	if got := links[0].attribute("href"); got != "root?root=widgets" {
		t.Errorf("the root links to %q", got)
	}
}

// All links of all pages lead to a page, below any prefix, and nothing comes from elsewhere or stands inline.
func TestPagesAreCompleteAndAccessible(t *testing.T) {
	w := newWorld(t, page.Options{Access: page.OnLoopback()}, "w")
	w.settle(t, "w")
	seen := map[string]bool{}
	var visit func(path string)
	visit = func(path string) {
		if seen[path] {
			return
		}
		seen[path] = true
		doc := w.document(t, path)
		if skip := doc.all("a")[0]; skip.attribute("href") != "#content" {
			t.Errorf("%q does not begin with a link to the content", path)
		}
		doc.byID(t, "content")
		for _, tag := range []string{"style", "img", "iframe"} {
			if len(doc.all(tag)) > 0 {
				t.Errorf("%q has an element %s", path, tag)
			}
		}
		for _, script := range doc.all("script") {
			if script.attribute("src") != "script.js" || script.text() != "" {
				t.Errorf("%q has a script %q", path, script.text())
			}
		}
		for _, table := range doc.all("table") {
			if len(table.all("caption")) != 1 || len(table.all("th")) == 0 {
				t.Errorf("%q has a table without a caption or headers", path)
			}
		}
		ids := map[string]bool{}
		for n := range doc.Descendants() {
			if id := (element{n}).attribute("id"); id != "" {
				if ids[id] {
					t.Errorf("%q has the ID %s twice", path, id)
				}
				ids[id] = true
			}
			if (element{n}).attribute("style") != "" {
				t.Errorf("%q has a style at an element", path)
			}
		}
		for _, a := range doc.all("a") {
			switch href := a.attribute("href"); {
			case href[0] == '#':
				if !ids[href[1:]] {
					t.Errorf("%q has a link to %s, which is not there", path, href)
				}
			case href == "./":
				visit("")
			case href == "dump":
			default:
				visit(href)
			}
		}
	}
	visit("")
	if len(seen) < 4 {
		t.Errorf("only %d pages are linked: %v", len(seen), seen)
	}
	for path, contentType := range map[string]string{
		"style.css": "text/css; charset=utf-8", "script.js": "text/javascript; charset=utf-8",
	} {
		a := w.get(t, path)
		if a.StatusCode != http.StatusOK || a.Header.Get("Content-Type") != contentType || a.body == "" {
			t.Errorf("GET %s: %s, %s", path, a.Status, a.Header.Get("Content-Type"))
		}
		tag := a.Header.Get("ETag")
		again := w.get(t, path, func(r *http.Request) { r.Header.Set("If-None-Match", tag) })
		if again.StatusCode != http.StatusNotModified {
			t.Errorf("GET %s again: %s", path, again.Status)
		}
	}
}

// The dump has the trees, the counts, what each node did last, and numbers of the memory.
func TestDump(t *testing.T) {
	w := newWorld(t, page.Options{Access: page.OnLoopback(), Replica: "operator-0"}, "w")
	w.check = func(string) error { return errors.New("broken") }
	_ = w.reconcile(t, began, "w")
	type node struct{ Path, State, Class, Error string }
	var got struct {
		Replica string
		Memory  struct{ HeapAllocBytes, Goroutines int }
		Roots   []struct {
			ID, Kind  string
			Resources int
			Counts    map[string]int
			List      []struct {
				Name, State, Error string
				Nodes              []node
			}
		}
	}
	a := w.get(t, "dump")
	if err := json.Unmarshal([]byte(a.body), &got); err != nil {
		t.Fatal(err)
	}
	if got.Replica != "operator-0" || got.Memory.HeapAllocBytes == 0 || got.Memory.Goroutines == 0 || len(got.Roots) != 1 {
		t.Fatalf("the dump is %s", a.body)
	}
	root := got.Roots[0]
	if root.ID != "widgets" || root.Kind != "Widget" || root.Resources != 1 || root.Counts["Error"] != 1 {
		t.Errorf("the root is %+v", root)
	}
	want := []node{
		{"root", "Error", "Retry", "broken"}, {"root", "Error", "Retry", "broken"},
		{"root/0/checks", "Error", "Retry", "broken"},
	}
	if diff := cmp.Diff(want, root.List[0].Nodes); diff != "" || root.List[0].Name != "default/w" {
		t.Errorf("the resource %s has the nodes (-want, +dumped)\n%s", root.List[0].Name, diff)
	}
}
