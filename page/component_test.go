package page_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/page"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/testing/fake"
	rtime "github.com/espalier-dev/espalier/time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// settings returns a ConfigMap of a wave.
func settings(name, order string) client.Object {
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Annotations: map[string]string{
			"house.example.com/apply-order": order,
		}},
	}
}

// server returns a Deployment of the wave 1, which never gets ready where no controller runs.
func server() client.Object {
	labels := map[string]string{"app": "server"}
	d := &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "server", Annotations: map[string]string{
			"house.example.com/apply-order": "1",
		}},
	}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = labels
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "server", Image: "server:1"}}
	return d
}

// deletedIn has an object deleted in a wave. Somebody else keeps it from going.
func deletedIn(obj client.Object, order string) client.Object {
	obj.GetAnnotations()["house.example.com/delete-order"] = order
	obj.SetFinalizers([]string{"test.espalier.dev/other"})
	return obj
}

// house is a component on a cluster in memory, with a page.
type house struct {
	page   *page.Page
	client client.Client
	root   *reconcilers.ResourceReconciler[*resources.Assembly]
	// generates is called before each run of the generator.
	generates func(ctx context.Context) error
}

func newHouse(t *testing.T, options page.Options, objects ...client.Object) *house {
	t.Helper()
	a := resources.NewAssembly("default", "house", objects...)
	a.UID, a.Generation = "house-uid", 1
	return newHouseOn(t, options, fake.NewClientBuilder().WithScheme(resources.NewScheme()).WithObjects(a).Build())
}

// newHouseOn is newHouse on a cluster that has the resource.
func newHouseOn(t *testing.T, options page.Options, c client.Client) *house {
	t.Helper()
	h := &house{page: page.New(options), client: c, generates: func(context.Context) error { return nil }}
	h.page.At(later)
	generate := generator.GeneratorFunc(func(
		ctx context.Context, namespace, name string, parameters generator.Unstructurable,
	) ([]client.Object, error) {
		if err := h.generates(ctx); err != nil {
			return nil, err
		}
		return resources.AssemblyGenerator().Generate(ctx, namespace, name, parameters)
	})
	h.root = component.NewComponentRoot("house.example.com", generate,
		component.Options[*resources.Assembly]{
			Config:   reconcilers.Config{Client: c, APIReader: c}.WithObserver(h.page),
			Parallel: 1, FenceMargin: -1,
		})
	return h
}

func (h *house) reconcile(t *testing.T, times int) {
	t.Helper()
	for range times {
		ctx := rtime.StashNow(t.Context(), began)
		if _, err := h.root.Reconcile(ctx, ctrl.Request{NamespacedName: keyOf("house")}); err != nil {
			t.Fatal(err)
		}
	}
}

// The page of a resource shows the waves of its components: what is done, what is in progress, and what waits.
func TestWavesAreAPictureOfProgress(t *testing.T) {
	h := newHouse(t, page.Options{}, settings("first", "0"), server(), settings("second", "2"), settings("third", "3"))
	h.reconcile(t, 3)
	components := h.page.Resource("assembly", keyOf("house")).Components
	if len(components) != 1 {
		t.Fatalf("there are %d components, not 1", len(components))
	}
	c := components[0]
	obstacle := page.ObstacleView{Object: "Deployment default/server", Kind: "waiting", Message: "0 of 1 replica available"}
	want := []page.WaveView{
		{Number: 1, Order: 0, State: "Done", Ready: 1, Total: 1},
		{
			Number: 2, Order: 1, State: "In progress", Text: "waits for Deployment default/server", Total: 1,
			Obstacles: []page.ObstacleView{obstacle},
		},
		{Number: 3, Order: 2, State: "Waiting", Text: "for wave 2", Total: 1},
		{Number: 4, Order: 3, State: "Waiting", Text: "for wave 2", Total: 1},
	}
	if diff := cmp.Diff(want, c.Waves); diff != "" {
		t.Errorf("the waves (-want, +shown)\n%s", diff)
	}
	if c.State != string(apis.ComponentProcessing) || c.Since != minuteAgo || c.Total != 4 || c.Revision != 1 {
		t.Errorf("the component is %s since %v, with %d objects and revision %d", c.State, c.Since, c.Total, c.Revision)
	}
}

// An object that belongs to somebody else blocks its wave.
func TestAWaveIsBlocked(t *testing.T) {
	h := newHouse(t, page.Options{}, settings("first", "0"), settings("second", "1"))
	theirs := settings("first", "0")
	if err := h.client.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	h.reconcile(t, 3)
	waves := h.page.Resource("assembly", keyOf("house")).Components[0].Waves
	want := []page.WaveView{
		{Number: 1, State: "Blocked", Text: "by ConfigMap default/first", Total: 1, Obstacles: []page.ObstacleView{{
			Object: "ConfigMap default/first", Kind: "not ours",
			Message: "it exists already; adoption-policy: if-unowned adopts it",
		}}},
		{Number: 2, Order: 1, State: "Waiting", Text: "for wave 1", Total: 1},
	}
	if diff := cmp.Diff(want, waves); diff != "" {
		t.Errorf("the waves (-want, +shown)\n%s", diff)
	}
}

// While a component is deleted, its waves are those of the deletion, with what is left.
func TestWavesOfADeletion(t *testing.T) {
	h := newHouse(t, page.Options{}, deletedIn(settings("first", "0"), "1"), deletedIn(settings("second", "1"), "0"))
	h.reconcile(t, 3)
	gone := resources.NewAssembly("default", "house")
	if err := h.client.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	h.reconcile(t, 2)
	c := h.page.Resource("assembly", keyOf("house")).Components[0]
	want := []page.WaveView{
		{
			Number: 1, State: "In progress", Text: "waits for ConfigMap default/second", Total: 1,
			Obstacles: []page.ObstacleView{{
				Object: "ConfigMap default/second", Kind: "waiting",
				Message: "it is being deleted, and waits for the finalizer test.espalier.dev/other",
			}},
		},
		{Number: 2, Order: 1, State: "Waiting", Text: "for wave 1", Total: 1},
	}
	if diff := cmp.Diff(want, c.Waves); diff != "" || !c.Deleting {
		t.Errorf("the waves of the deletion, %v (-want, +shown)\n%s", c.Deleting, diff)
	}
}

// Before anything exists, the page says what is left to do.
func TestWhatIsLeftToDo(t *testing.T) {
	h := newHouse(t, page.Options{Access: page.OnLoopback()}, settings("first", "0"), settings("second", "1"))
	h.reconcile(t, 1)
	c := h.page.Resource("assembly", keyOf("house")).Components[0]
	want := []page.OperationView{{
		Action: "create", Object: "ConfigMap default/first", Reason: "it does not exist",
	}}
	if diff := cmp.Diff(want, c.Next); diff != "" {
		t.Errorf("what is left to do (-want, +shown)\n%s", diff)
	}
	w := world{page: h.page}
	doc := w.document(t, "resource?root=assembly&namespace=default&name=house")
	var values []string
	for _, p := range doc.all("progress") {
		values = append(values, p.attribute("value")+" of "+p.attribute("max"))
	}
	if diff := cmp.Diff([]string{"0 of 1", "0 of 1"}, values); diff != "" {
		t.Errorf("the progress (-want, +shown)\n%s", diff)
	}
}

func TestObjectsAreFiltered(t *testing.T) {
	var objects []client.Object
	for i := range 120 {
		objects = append(objects, settings(fmt.Sprintf("part-%03d", i), "0"))
	}
	h := newHouse(t, page.Options{Access: page.OnLoopback(), MaxObjects: 1000}, append(objects, server())...)
	h.reconcile(t, 3)
	path := h.page.Resource("assembly", keyOf("house")).Components[0].Name.Text
	v := h.page.Inventory("assembly", keyOf("house"), path, "PART", "Ready", 2)
	if v.Pages.From != 101 || v.Pages.To != 120 || v.Pages.Of != 120 || v.Pages.After != "" {
		t.Errorf("the second page has %+v", v.Pages)
	}
	want := page.ObjectView{Kind: "ConfigMap", Name: "default/part-100", Phase: "Ready"}
	if diff := cmp.Diff(want, v.Rows[0]); diff != "" {
		t.Errorf("the second page begins with (-want, +shown)\n%s", diff)
	}
	w := world{page: h.page}
	doc := w.document(t, v.Pages.Before)
	tables := doc.all("table")
	if rows := tables[len(tables)-1].rows(); len(rows) != 101 || rows[1][1] != "default/part-000" {
		t.Errorf("the first page has %d rows, and begins with %q", len(rows), rows[1])
	}
	if got := h.page.RoomForObjects(); got != 1000-121 {
		t.Errorf("there is room for %d more objects, not %d", got, 1000-121)
	}
}

// Of more objects than there is room for, only counts are kept. Room is given back when a resource goes.
func TestTheNumberOfObjectsIsBounded(t *testing.T) {
	h := newHouse(t, page.Options{Access: page.OnLoopback(), MaxObjects: 1}, settings("first", "0"), settings("second", "1"))
	h.reconcile(t, 3)
	c := h.page.Resource("assembly", keyOf("house")).Components[0]
	v := h.page.Inventory("assembly", keyOf("house"), c.Name.Text, "", "", 1)
	if v.Kept || c.Total != 2 || len(c.Waves) != 2 || c.Waves[1].State != "Done" || h.page.RoomForObjects() != 1 {
		t.Errorf("kept: %v, total: %d, waves: %+v, room: %d", v.Kept, c.Total, c.Waves, h.page.RoomForObjects())
	}
	small := newHouse(t, page.Options{MaxObjects: 10}, settings("first", "0"))
	small.reconcile(t, 3)
	if got := small.page.RoomForObjects(); got != 9 {
		t.Errorf("there is room for %d more objects, not 9", got)
	}
	ctx := reconcilers.StashRequest(t.Context(), ctrl.Request{NamespacedName: keyOf("house")})
	small.page.Note(ctx, small.page.RootNode("assembly"), reconcilers.Forgotten{})
	if got := small.page.RoomForObjects(); got != 10 {
		t.Errorf("after the resource is gone there is room for %d objects, not 10", got)
	}
}

// Of very many waves, those are shown that are not done.
func TestManyWaves(t *testing.T) {
	var objects []client.Object
	for i := range 150 {
		objects = append(objects, settings(fmt.Sprintf("part-%03d", i), fmt.Sprint(i)))
	}
	h := newHouse(t, page.Options{Access: page.OnLoopback()}, objects...)
	h.reconcile(t, 1)
	w := world{page: h.page}
	for _, want := range [][2]string{{"Wave 1 (order 0)", "50 more waves"}, {"Components", "150 more waves"}} {
		text := w.document(t, "resource?root=assembly&namespace=default&name=house").byID(t, "resource").text()
		if !strings.Contains(text, want[0]) || !strings.Contains(text, want[1]+" are not shown") {
			t.Errorf("the page does not say %q: %s", want, text)
		}
		h.reconcile(t, 3)
	}
}

// L12: a picture of many waves costs in proportion to the objects, also if each has a wave of its own.
func TestL12WavesAreLinear(t *testing.T) {
	took := func(n int) time.Duration {
		orders := make([]int16, n)
		for i := range orders {
			orders[i] = int16(i - n/2)
		}
		best := time.Hour
		for range 3 {
			start := time.Now()
			if got := len(page.WavesOfDeletion(orders)); got != n {
				t.Fatalf("there are %d waves, not %d", got, n)
			}
			best = min(best, time.Since(start))
		}
		return best
	}
	// Other processes may take the processor meanwhile. Without the law, they take 64 times as long each time.
	var few, many time.Duration
	for range 20 {
		few, many = took(8_000), took(64_000)
		t.Logf("8,000 waves take %s, 64,000 take %s", few, many)
		if many <= 24*few {
			return
		}
	}
	t.Errorf("8 times as many waves take %.0f times as long: %s and %s", float64(many)/float64(few), few, many)
}
