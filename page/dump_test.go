package page_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/page"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	"github.com/espalier-dev/espalier/tracker"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The dump says what is tracked and watched.
func TestTheDumpHasWhatIsTrackedAndWatched(t *testing.T) {
	p := page.New(page.Options{Access: page.OnLoopback()})
	references := tracker.New(resources.NewScheme(), time.Hour)
	rtesting.SetupTests{"": {
		ExpectWatches: []client.Object{&resources.Widget{}, &corev1.ConfigMap{}},
	}}.Run(t, resources.NewScheme(), func(_ *testing.T, _ *rtesting.SetupTestCase, c reconcilers.Config) rtesting.Setup {
		c.Tracker = references
		return newWorld(t, page.Options{}).newRoot(c.WithObserver(p))
	})
	resource := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "w"}}
	for _, name := range []string{"a", "b"} {
		tracked := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		if err := references.TrackObject(tracked, resource); err != nil {
			t.Fatal(err)
		}
	}
	type tracked struct {
		Watchers, References int
		Kinds                map[string]int
	}
	var got struct {
		Trackers []tracked
		Roots    []struct{ Watches []string }
	}
	a := serve(t, p, "dump")
	if err := json.Unmarshal([]byte(a.body), &got); err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
	want := []tracked{{Watchers: 1, References: 2, Kinds: map[string]int{"ConfigMap": 2}}}
	if diff := cmp.Diff(want, got.Trackers); diff != "" {
		t.Errorf("the trackers (-want, +dumped)\n%s", diff)
	}
	if len(got.Roots) != 1 || !cmp.Equal(got.Roots[0].Watches, []string{"ConfigMap"}) {
		t.Errorf("the roots are %+v, not one that watches ConfigMaps", got.Roots)
	}
}

// parts is a client that notes how much it gets at a time.
type parts struct {
	*httptest.ResponseRecorder
	most, count int
}

func (p *parts) Write(data []byte) (int, error) {
	p.most, p.count = max(p.most, len(data)), p.count+1
	return p.ResponseRecorder.Write(data)
}

// A dump of many resources is sent in parts, and is one document.
func TestADumpIsSentInParts(t *testing.T) {
	const resources = 2000
	p, reconcile := crowd(t, page.Options{Access: page.OnLoopback()})
	for i := range resources {
		reconcile(i)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/dump", nil)
	w := &parts{ResponseRecorder: httptest.NewRecorder()}
	p.ServeHTTP(w, r)
	t.Logf("%d bytes in %d parts of at most %d", w.Body.Len(), w.count, w.most)
	if w.most > 100<<10 || w.count < 5 {
		t.Errorf("%d bytes came in %d parts of at most %d bytes, not of about 64 KiB", w.Body.Len(), w.count, w.most)
	}
	var got struct {
		Roots []struct {
			List []struct{ Name, State string }
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	list := got.Roots[0].List
	if len(list) != resources || list[1].Name != "default/00001" || list[1].State != "Waiting" {
		t.Errorf("the list has %d resources, and begins with %+v", len(list), list[:2])
	}
}

// A dump of an operator without resources, and one without roots, are documents too.
func TestAnEmptyDump(t *testing.T) {
	empty, w := page.New(page.Options{Access: page.OnLoopback()}), newWorld(t, page.Options{Access: page.OnLoopback()})
	_ = w.reconcile(t, began, "missing")
	for _, p := range []*page.Page{empty, w.page} {
		a := serve(t, p, "dump")
		var got struct{ Roots []struct{ List []any } }
		if err := json.Unmarshal([]byte(a.body), &got); err != nil || got.Roots == nil {
			t.Errorf("the dump is no document with roots: %v: %s", err, a.body)
		}
	}
	if a := serve(t, empty, "dump"); !strings.HasSuffix(a.body, "]}") {
		t.Errorf("the dump has no end: %s", a.body)
	}
}
