package page_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/page"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/testing/fake"
	rtime "github.com/espalier-dev/espalier/time"

	"golang.org/x/net/html"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var plane = controlplanetest.Shared{Options: controlplane.Options{
	CRDs: []*apiextensionsv1.CustomResourceDefinition{resources.CRD(), resources.AssemblyCRD()},
}}

func TestMain(m *testing.M) { os.Exit(plane.Main(m)) }

var (
	began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	later = began.Add(time.Minute)
)

func keyOf(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "default", Name: name}
}

// world is a root of Widgets with a page, on a cluster in memory. Its tree does what the test says.
type world struct {
	page   *page.Page
	client client.Client
	config reconcilers.Config
	root   *reconcilers.ResourceReconciler[*resources.Widget]
	// check is what the first node returns.
	check func(name string) error
	// letter is what the node of an item returns.
	letter func(letter string) error
	// reason is that of the condition of the child, with status False; none for True.
	reason, message string
	data            string
}

type (
	widget   = *resources.Widget
	sequence = reconcilers.Sequence[widget]
	sync     = reconcilers.SyncReconciler[widget]
)

func newWorld(t testing.TB, options page.Options, names ...string) *world {
	t.Helper()
	var given []client.Object
	for _, name := range names {
		given = append(given, &resources.Widget{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID(name), Generation: 1,
		}})
	}
	w := &world{
		page:   page.New(options),
		client: fake.NewClientBuilder().WithScheme(resources.NewScheme()).WithObjects(given...).Build(),
		check:  func(string) error { return nil },
		letter: func(string) error { return nil },
	}
	w.page.At(later)
	w.config = reconcilers.Config{Client: w.client, APIReader: w.client}.WithObserver(w.page)
	w.root = w.newRoot(w.config)
	return w
}

func (w *world) newRoot(config reconcilers.Config) *reconcilers.ResourceReconciler[widget] {
	return &reconcilers.ResourceReconciler[widget]{
		Name:           "root",
		ControllerName: "widgets",
		Config:         config,
		Reconciler: sequence{
			&sync{Name: "checks", Sync: func(_ context.Context, r widget) error { return w.check(r.Name) }},
			&reconcilers.ForEach[widget, string]{
				Name:  "letters",
				Items: func(context.Context, widget) ([]string, error) { return []string{"a", "b"}, nil },
				Reconciler: &sync{Name: "one", Sync: func(ctx context.Context, _ widget) error {
					return w.letter(reconcilers.CursorStasher[string]().RetrieveOrDie(ctx).Item)
				}},
			},
			w.child(),
		},
	}
}

func (w *world) child() reconcilers.SubReconciler[widget] {
	return &reconcilers.ChildReconciler[widget, *corev1.ConfigMap, *corev1.ConfigMapList]{
		Name: "settings",
		DesiredChild: func(_ context.Context, r widget) (*corev1.ConfigMap, error) {
			return &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name},
				Data:       map[string]string{"key": w.data},
			}, nil
		},
		MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
		ReflectChildStatusOnParent: func(ctx context.Context, r widget, _ *corev1.ConfigMap, _ error) {
			if w.reason != "" {
				r.Status.MarkChildNotReady(ctx, w.reason, w.message)
				return
			}
			r.Status.MarkChildReady(ctx)
		},
	}
}

// reconcile reconciles a resource at a time.
func (w *world) reconcile(t testing.TB, at time.Time, name string) error {
	t.Helper()
	_, err := w.root.Reconcile(rtime.StashNow(t.Context(), at), ctrl.Request{NamespacedName: keyOf(name)})
	return err
}

// settle reconciles a resource, and fails the test if that returns an error.
func (w *world) settle(t testing.TB, name string) {
	t.Helper()
	if err := w.reconcile(t, began, name); err != nil {
		t.Fatalf("reconciling %s: %v", name, err)
	}
}

// answer is what a page answers.
type answer struct {
	*http.Response
	body string
}

// get asks for a page, as a browser on the same machine does.
func (w *world) get(t testing.TB, path string, change ...func(*http.Request)) answer {
	t.Helper()
	return serve(t, w.page, path, change...)
}

func serve(t testing.TB, handler http.Handler, path string, change ...func(*http.Request)) answer {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost:8080/some/prefix/"+path, nil)
	for _, c := range change {
		c(r)
	}
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, r)
	return answer{Response: recorder.Result(), body: recorder.Body.String()}
}

// document asks for a page and parses it.
func (w *world) document(t testing.TB, path string, change ...func(*http.Request)) element {
	t.Helper()
	a := w.get(t, path, change...)
	if a.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s: %s", path, a.Status, a.body)
	}
	root, err := html.Parse(strings.NewReader(a.body))
	if err != nil {
		t.Fatalf("GET %s: %v", path, err)
	}
	return element{root}
}

// element is an element of a page.
type element struct{ *html.Node }

func (e element) attribute(name string) string {
	for _, a := range e.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// all returns the elements below with a tag.
func (e element) all(tag string) []element {
	var found []element
	for n := range e.Descendants() {
		if n.Type == html.ElementNode && n.Data == tag {
			found = append(found, element{n})
		}
	}
	return found
}

// byID returns the element with an ID, and fails the test if there is not just one.
func (e element) byID(t testing.TB, id string) element {
	t.Helper()
	var found []element
	for n := range e.Descendants() {
		if (element{n}).attribute("id") == id {
			found = append(found, element{n})
		}
	}
	if len(found) != 1 {
		t.Fatalf("there are %d elements with the ID %q, not 1", len(found), id)
	}
	return found[0]
}

// text returns the text of an element, with single spaces.
func (e element) text() string {
	var b strings.Builder
	if e.Type == html.TextNode {
		b.WriteString(e.Data)
	}
	for n := range e.Descendants() {
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
		}
	}
	return join(b.String())
}

// join returns a text with single spaces.
func join(text string) string { return strings.Join(strings.Fields(text), " ") }

// rows returns the texts of the cells of the rows of a table.
func (e element) rows() [][]string {
	var rows [][]string
	for _, tr := range e.all("tr") {
		var cells []string
		for n := range tr.ChildNodes() {
			if n.Type == html.ElementNode {
				cells = append(cells, element{n}.text())
			}
		}
		rows = append(rows, cells)
	}
	return rows
}
