package page_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/page"
	"github.com/espalier-dev/espalier/testing/fake"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// What is said of who leads is what is known.
func TestWhoLeads(t *testing.T) {
	elected := make(chan struct{})
	close(elected)
	leader := func(identity string, err error) func(context.Context) (string, error) {
		return func(context.Context) (string, error) { return identity, err }
	}
	peer := func(url string) func(string) string { return func(string) string { return url } }
	for name, test := range map[string]struct {
		options    page.Options
		want, link string
	}{
		"no election":     {page.Options{}, "Replica a", ""},
		"it leads":        {page.Options{Elected: elected, Leader: leader("b_1", nil)}, "Replica a leads", ""},
		"no Lease":        {page.Options{Elected: make(chan struct{})}, "Replica a does not lead", ""},
		"nobody leads":    {page.Options{Elected: make(chan struct{}), Leader: leader("", nil)}, "Replica a does not lead; nobody does", ""},
		"it is not known": {page.Options{Elected: make(chan struct{}), Leader: leader("", errors.New("no"))}, "Replica a does not lead; who does is not known", ""},
		"no address":      {page.Options{Elected: make(chan struct{}), Leader: leader("b_1", nil)}, "Replica a does not lead, b does", ""},
		"no address of that replica": {
			page.Options{Elected: make(chan struct{}), Leader: leader("b", nil), Peer: peer("")}, "Replica a does not lead, b does", "",
		},
		"an address": {
			page.Options{Elected: make(chan struct{}), Leader: leader("b", nil), Peer: peer("https://b.example/x")},
			"Replica a does not lead, b does", "https://b.example/x/root?root=widgets",
		},
		"a script": {
			page.Options{Elected: make(chan struct{}), Leader: leader("b", nil), Peer: peer("javascript:alert(1)")},
			"Replica a does not lead, b does", "#ZgotmplZ",
		},
	} {
		test.options.Access, test.options.Replica = page.OnLoopback(), "a"
		w := newWorld(t, test.options, "w")
		w.settle(t, "w")
		for _, path := range []string{"root?root=widgets", "root?fragment=1&root=widgets"} {
			banner, link := w.document(t, path).byID(t, "replica"), ""
			for _, a := range banner.all("a") {
				link = a.attribute("href")
			}
			if banner.text() != test.want || link != test.link {
				t.Errorf("%s: %s says %q with the link %q, not %q with %q", name, path, banner.text(), link, test.want, test.link)
			}
		}
	}
}

// A Lease is read once for many pages, also if that fails.
func TestTheHolderOfALeaseIsReadRarely(t *testing.T) {
	key := types.NamespacedName{Namespace: "default", Name: "operator"}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	lease.Spec.HolderIdentity = new("a_1")
	synctest.Test(t, func(t *testing.T) {
		for name, test := range map[string]struct {
			fails   error
			objects []client.Object
			want    string
		}{
			"a holder": {nil, []client.Object{lease}, "a_1"},
			"no Lease": {nil, nil, ""},
			"an error": {errors.New("no answer"), []client.Object{lease}, ""},
		} {
			reads := 0
			c := interceptor.NewClient(
				fake.NewClientBuilder().WithScheme(resources.NewScheme()).WithObjects(test.objects...).Build(),
				interceptor.Funcs{Get: func(
					ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, o ...client.GetOption,
				) error {
					if reads++; test.fails != nil {
						return test.fails
					}
					return c.Get(ctx, key, obj, o...)
				}})
			holder := page.LeaseHolder(c, key)
			// The last one is ten seconds after the first.
			for _, after := range []time.Duration{0, 10*time.Second - 1, 1} {
				time.Sleep(after)
				if got, err := holder(t.Context()); got != test.want || !errors.Is(err, test.fails) {
					t.Errorf("%s: the holder is %q, and the error %v", name, got, err)
				}
			}
			if reads != 2 {
				t.Errorf("%s: the Lease was read %d times in ten seconds, not twice", name, reads)
			}
		}
	})
}
