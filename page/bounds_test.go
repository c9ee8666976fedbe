package page_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/page"
	"github.com/espalier-dev/espalier/reconcilers"
	rtime "github.com/espalier-dev/espalier/time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// anyClient has a ConfigMap of each name that somebody gets.
type anyClient struct{ client.Client }

func (anyClient) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	obj.SetNamespace(key.Namespace)
	obj.SetName(key.Name)
	obj.SetUID(types.UID(key.Name))
	obj.SetResourceVersion("1")
	return nil
}

// crowd is a root for which any number of resources exist. Those whose number is odd wait.
func crowd(t testing.TB, options page.Options) (*page.Page, func(i int)) {
	p := page.New(options)
	p.At(later)
	config := reconcilers.Config{Client: anyClient{newWorld(t, page.Options{}).client}}.WithObserver(p)
	root := &reconcilers.ResourceReconciler[*corev1.ConfigMap]{
		Name: "crowd", Config: config,
		Reconciler: reconcilers.Sequence[*corev1.ConfigMap]{&reconcilers.SyncReconciler[*corev1.ConfigMap]{
			Name: "waits",
			Sync: func(_ context.Context, c *corev1.ConfigMap) error {
				if n, _ := strconv.Atoi(c.Name); n%2 == 1 {
					return reconcilers.ErrQuiet
				}
				return nil
			},
		}},
	}
	ctx := rtime.StashNow(context.Background(), began)
	return p, func(i int) {
		t.Helper()
		key := types.NamespacedName{Namespace: "default", Name: fmt.Sprintf("%05d", i)}
		if _, err := root.Reconcile(ctx, ctrl.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
	}
}

// Of more resources than there is room for, those that were reconciled last are kept, and counts are of these.
func TestTheNumberOfResourcesIsBounded(t *testing.T) {
	const resources, capacity = 11_000, 10_000
	p, reconcile := crowd(t, page.Options{Access: page.OnLoopback()})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range resources {
		reconcile(i)
		if i == 5000 {
			reconcile(0)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	t.Logf("a resource takes %d bytes", (int(after.HeapAlloc)-int(before.HeapAlloc))/capacity)

	root := p.Overview().Roots[0]
	want := []page.CountView{
		{State: "Waiting", Count: capacity / 2, URL: "root?root=configmap&state=Waiting"},
		{State: "Unchanged", Count: capacity / 2, URL: "root?root=configmap&state=Unchanged"},
	}
	if diff := cmp.Diff(want, root.Counts); diff != "" {
		t.Errorf("the counts (-want, +shown)\n%s", diff)
	}
	if root.Resources != capacity {
		t.Errorf("%d resources are known, not %d", root.Resources, capacity)
	}
	node := root.Tree.Nodes[0].Nodes[0]
	if node.Name != "waits" || len(node.Counts) != 2 || node.Counts[0].Count+node.Counts[1].Count != capacity {
		t.Errorf("the node %s has the counts %+v, they have to add up to %d", node.Name, node.Counts, capacity)
	}

	start := time.Now()
	list := p.List("configmap", "", "Waiting", 3)
	t.Logf("a page of the list takes %s", time.Since(start))
	if list.Pages.From != 101 || list.Pages.To != 150 || list.Pages.Of != 5000 {
		t.Errorf("the third page has %+v", list.Pages)
	}
	if got, want := list.Rows[0].Name.Text, "default/01201"; got != want {
		t.Errorf("the third page begins with %s, not %s", got, want)
	}
	// 0 was reconciled again, so that 1,000 had to go.
	for name, want := range map[string]int{"00000": 1, "00001": 0, "01000": 0, "01001": 1, "10999": 1} {
		if rows := p.List("configmap", name, "", 1).Rows; len(rows) != want {
			t.Errorf("%s is in %d rows, not %d", name, len(rows), want)
		}
	}

	var dumped struct {
		Usage struct{ Resources, MaxResources, Dropped int }
	}
	a := serve(t, p, "dump")
	if err := json.Unmarshal([]byte(a.body), &dumped); err != nil {
		t.Fatal(err)
	}
	if u := dumped.Usage; u.Resources != capacity || u.MaxResources != capacity || u.Dropped != resources-capacity {
		t.Errorf("the dump says %+v", u)
	}
}

// A resource that is gone is forgotten, and does not count any more.
func TestAResourceThatIsGoneIsForgotten(t *testing.T) {
	w := newWorld(t, page.Options{}, "w", "other")
	w.settle(t, "w")
	w.settle(t, "other")
	gone := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "w"}}
	if err := w.client.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	w.settle(t, "w")
	if v := w.page.Resource("widgets", keyOf("w")); v.Known {
		t.Error("the resource is still known")
	}
	root := w.page.Overview().Roots[0]
	want := []page.CountView{{State: "Changed", Count: 1, URL: "root?root=widgets&state=Changed"}}
	if diff := cmp.Diff(want, root.Counts); diff != "" || root.Resources != 1 {
		t.Errorf("%d resources, with the counts (-want, +shown)\n%s", root.Resources, diff)
	}
	var running []string
	var walk func(tree *page.TreeView)
	walk = func(tree *page.TreeView) {
		if tree.Running != 0 {
			running = append(running, tree.Path)
		}
		for _, nested := range tree.Nodes {
			walk(nested)
		}
	}
	walk(root.Tree)
	if len(running) > 0 {
		t.Errorf("these nodes still run: %v", running)
	}
}

// A node that runs is counted while it does.
func TestRunningNodesAreCounted(t *testing.T) {
	w := newWorld(t, page.Options{}, "w")
	var counted, last int
	w.check = func(string) error {
		counted = w.page.Overview().Roots[0].Tree.Nodes[0].Running
		last = w.page.Resource("widgets", keyOf("w")).Tree.Nodes[0].Last.Running
		return nil
	}
	w.settle(t, "w")
	if counted != 1 || last != 1 {
		t.Errorf("within a request %d run in the overview and %d for the resource, not 1", counted, last)
	}
	if n := w.page.Resource("widgets", keyOf("w")).Tree.Nodes[0].Last.Running; n != 0 {
		t.Errorf("after the request %d run", n)
	}
}

// Nodes that a function makes for each request do not take ever more room.
func TestNodesMadeForEachRequestAreBounded(t *testing.T) {
	w := newWorld(t, page.Options{}, "w")
	made := 0
	w.root.Reconciler = &reconcilers.WithConfig[widget]{
		Config: func(_ context.Context, c reconcilers.Config) (reconcilers.Config, error) { return c, nil },
		Reconciler: &reconcilers.Advice[widget]{
			Reconciler: sequence{},
			Around: func(
				ctx context.Context, r widget, _ reconcilers.SubReconciler[widget],
			) (reconcilers.Result, error) {
				made++
				return sequence{&sync{
					Name: "made" + strconv.Itoa(made), Sync: func(context.Context, widget) error { return nil },
				}}.Reconcile(ctx, r)
			},
		},
	}
	for range 2500 {
		w.settle(t, "w")
	}
	nodes := 0
	var walk func(tree *page.TreeView)
	walk = func(tree *page.TreeView) {
		nodes++
		for _, nested := range tree.Nodes {
			walk(nested)
		}
	}
	walk(w.page.Overview().Roots[0].Tree)
	if nodes != 200 {
		t.Errorf("the tree has %d nodes, not 200", nodes)
	}
}

func TestTheListIsFiltered(t *testing.T) {
	w := newWorld(t, page.Options{}, "apple", "banana", "cherry")
	for _, name := range []string{"cherry", "apple", "banana"} {
		w.reason, w.message = "", ""
		if name == "banana" {
			w.reason, w.message = "NoPod", "Image is missing"
		}
		w.settle(t, name)
	}
	w.check = func(string) error { return fmt.Errorf("image is broken") }
	_ = w.reconcile(t, later, "cherry")
	for _, test := range []struct {
		text, state string
		want        []string
	}{
		{"", "", []string{"default/apple", "default/banana", "default/cherry"}},
		{"an", "", []string{"default/banana"}},
		{"IMAGE", "", []string{"default/banana", "default/cherry"}},
		{"", "Error", []string{"default/cherry"}},
		{"image", "Changed", []string{"default/banana"}},
		{"nothing", "", nil},
	} {
		var got []string
		for _, row := range w.page.List("widgets", test.text, test.state, 1).Rows {
			got = append(got, row.Name.Text)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%q in the state %q: %v, not %v", test.text, test.state, got, test.want)
		}
	}
	want := page.ListRow{
		Name: page.Link{URL: "resource?name=cherry&namespace=default&root=widgets", Text: "default/cherry"}, Visible: true,
		State: "Error", Why: "image is broken", When: justNow, Since: justNow,
	}
	if diff := cmp.Diff(want, w.page.List("widgets", "cherry", "", 1).Rows[0], ignoreTook); diff != "" {
		t.Errorf("the row of cherry (-want, +shown)\n%s", diff)
	}
}
