package plugins_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/plugins"
	"github.com/espalier-dev/espalier/reconcilers"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// counted is a program that counts its calls.
type counted struct {
	t    testing.TB
	file string
}

// newCounted returns the host of such a program.
func newCounted(t testing.TB) (counted, *plugins.Host) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "calls")
	_, host := withPlugin(t, countsIn+file)
	return counted{t: t, file: file}, host
}

// calls returns how many calls there were.
func (c counted) calls() int {
	c.t.Helper()
	info, err := os.Stat(c.file)
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return int(info.Size())
}

// createFive creates Widgets that ask for five objects each, those from one number on and below another.
func (r *running) createFive(from, below int) {
	r.t.Helper()
	const workers = 16
	failed := make([]error, workers)
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			for i := from + worker; i < below && failed[worker] == nil; i += workers {
				w := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: ownerName(i)}}
				w.Spec.Fields = map[string]string{"do": "five", "value": "x"}
				failed[worker] = r.Create(r.t.Context(), w)
			}
		})
	}
	group.Wait()
	if err := errors.Join(failed...); err != nil {
		r.t.Fatal(err)
	}
}

func ownerName(i int) string { return fmt.Sprint("owner-", i) }

// untilFive waits until the Widgets are ready, by the cache of the operator.
func (r *running) untilFive(count int) {
	r.t.Helper()
	for i := range count {
		controlplanetest.Eventually(r.t, "a widget is not ready", func(ctx context.Context) error {
			found := &resources.Widget{}
			key := client.ObjectKey{Namespace: r.namespace, Name: ownerName(i)}
			if err := r.root.Config.Get(ctx, key, found); err != nil {
				return err
			}
			if is := meta.FindStatusCondition(found.Status.Conditions, condition); is == nil || is.Status != "True" {
				return fmt.Errorf("the condition of %s is %v, want True", key.Name, is)
			}
			return nil
		})
	}
}

// resync has each Widget reconciled, as at the end of the period of a cache.
func (r *running) resync(ctx context.Context, count int) error {
	for i := range count {
		key := client.ObjectKey{Namespace: r.namespace, Name: ownerName(i)}
		result, err := r.root.Reconcile(ctx, reconcilers.Request{NamespacedName: key})
		if err != nil || !result.IsZero() {
			return fmt.Errorf("the widget %s at rest has the result %v and the error %w, want none", key.Name, result, err)
		}
	}
	return nil
}

// A plugin is asked once for each owner. At rest it is not asked, and no request is made, also when all owners are
// reconciled. After a restart of the operator it is asked once more for each, and no object is written.
func TestCallsAndRequests(t *testing.T) {
	const owners = 20
	c, host := newCounted(t)
	r := start(t, host)
	r.createFive(0, owners)
	r.untilFive(owners)
	controlplanetest.Rest(r.t, r.requests)
	if got := c.calls(); got != owners {
		t.Errorf("the plugin was asked %d times for %d owners, want once for each", got, owners)
	}
	var parts corev1.ConfigMapList
	err := r.List(t.Context(), &parts, client.InNamespace(r.namespace),
		client.HasLabels{"app.kubernetes.io/instance"})
	if err != nil || len(parts.Items) != 5*owners {
		t.Fatalf("there are %d objects (%v), want five for each owner", len(parts.Items), err)
	}

	r.requests.Reset()
	for range 3 {
		if err := r.resync(t.Context(), owners); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.requests.Total(); got != 0 {
		t.Errorf("owners at rest have made %s, want no request", r.requests)
	}
	if got := c.calls(); got != owners {
		t.Errorf("owners at rest have asked the plugin %d times, want never", got-owners)
	}

	r.stop()
	another := hostLike(host)
	again := startTree(t, r.namespace, another, capability(another))
	controlplanetest.Eventually(t, "the plugin is not asked", func(context.Context) error {
		if got := c.calls(); got < 2*owners {
			return fmt.Errorf("it was asked %d times", got)
		}
		return nil
	})
	controlplanetest.Rest(again.t, again.requests)
	for request := range again.requests.Counts() {
		// While a plugin does not answer at once, the status says so.
		if request.Verb != "get" && request.Verb != "list" && request.Verb != "watch" &&
			!strings.HasSuffix(request.Path, "/status") {
			t.Errorf("a restart has made the request %s, want no write of an object", request)
		}
	}
	if got := c.calls(); got != 2*owners {
		t.Errorf("the plugin was asked %d times after a restart for %d owners, want once for each", got-owners, owners)
	}
}

// hostLike returns a host like another one: one is started once.
func hostLike(host *plugins.Host) *plugins.Host {
	return &plugins.Host{
		Folder: host.Folder, List: host.List, Environment: host.Environment, Every: host.Every, Limits: host.Limits,
	}
}
