package page_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The timeline of a resource says what woke each request: events of the resource and of its children, errors, and the
// start of the operator.
func TestTheTimelineSaysWhatWokeRequests(t *testing.T) {
	namespace, c := plane.Namespace(t), newClient(t, plane.Config(t))
	peers := map[string]*replica{}
	there := func(name string) *resources.Widget {
		return &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	create(t, c, there("old"))
	r := newReplica(t, namespace, "first", peers)
	peers["first"] = r
	var broken atomic.Bool
	r.tree.check = func(string) error {
		if broken.Load() {
			return errors.New("it is broken")
		}
		return nil
	}
	// wokenBy waits for a request for a resource that something has woken, as the page shows it.
	wokenBy := func(name, cause string) {
		t.Helper()
		controlplanetest.Eventually(t, name+" is not woken", func(context.Context) error {
			key := types.NamespacedName{Namespace: namespace, Name: name}
			var causes []string
			for _, request := range r.page.Resource(namespace, key).Requests {
				causes = append(causes, request.Causes...)
			}
			if !slices.Contains(causes, cause) {
				return fmt.Errorf("the causes are %q, without %q", causes, cause)
			}
			return nil
		})
	}
	id := func(kind, name string) string { return kind + " " + namespace + "/" + name }
	wokenBy("old", id("Widget", "old")+" was there at the start")
	w := there("w")
	create(t, c, w)
	wokenBy("w", id("Widget", "w")+" was created")
	if err := c.Patch(t.Context(), w, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"fields":{"image":"2"}}}`))); err != nil {
		t.Fatal(err)
	}
	wokenBy("w", id("Widget", "w")+" was changed")
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "w"}}
	if err := c.Patch(t.Context(), child, client.RawPatch(types.MergePatchType, []byte(`{"data":{"key":"theirs"}}`))); err != nil {
		t.Fatal(err)
	}
	wokenBy("w", id("ConfigMap", "w")+" was changed")
	broken.Store(true)
	if err := c.Delete(t.Context(), child); err != nil {
		t.Fatal(err)
	}
	wokenBy("w", id("ConfigMap", "w")+" was deleted")
	wokenBy("w", "the request before failed or halted")
	broken.Store(false)
	text := r.get(t, "resource?root="+namespace+"&namespace="+namespace+"&name=w").byID(t, "resource").text()
	if want := "Woken, because " + id("ConfigMap", "w") + " was deleted"; !strings.Contains(text, want) {
		t.Errorf("the page lacks %q: %s", want, text)
	}
}
