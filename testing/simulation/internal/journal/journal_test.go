package journal_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/internal/server"
	"github.com/espalier-dev/espalier/testing/internal/storage"
	"github.com/espalier-dev/espalier/testing/internal/transport"
	"github.com/espalier-dev/espalier/testing/simulation/internal/journal"
	"github.com/espalier-dev/espalier/testing/simulation/internal/state"
)

// cluster is a server with a journal, and a client of the actor "somebody".
type cluster struct {
	*testing.T
	client.Client
	network *transport.Network
	journal *journal.Journal

	mu    sync.Mutex
	lines []string
}

// run runs a test on a cluster in a bubble.
func run(t *testing.T, test func(c *cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{T: t, network: transport.New(transport.Options{})}
		c.journal = journal.New(c.written)
		kept := storage.New(storage.Options{Written: c.journal.Written})
		defer kept.Close()
		s, err := server.Start(t.Context(), server.Options{Storage: kept.Decorator()})
		if err != nil {
			t.Fatal(err)
		}
		defer time.Sleep(2 * time.Minute)
		defer s.Stop()
		c.network.Serve(server.RoundTripper(journal.Handler(s.Handler(), transport.Actor)))
		c.Client = c.as("somebody")
		c.take()
		test(c)
	})
}

func (c *cluster) as(actor string) client.Client {
	made, err := client.New(c.network.Client(actor).Config(server.Host), client.Options{Scheme: scheme.Scheme})
	c.must(err)
	return made
}

// written takes down a write.
func (c *cluster) written(w journal.Write, now state.State) {
	if stored := now.Get(w.Object().Key); stored != w.After {
		c.Errorf("the state has %v when %v is written", stored, w.After)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, strings.TrimSpace(fmt.Sprintf("%s: %s: %s → %s %s",
		w.Actor, w.Object().Key, text(w.Before), text(w.After), w.Subresource)))
}

// text returns the datum of a config map, or the replicas in the status of a deployment.
func text(o *state.Object) string {
	if o == nil {
		return "none"
	}
	text := ""
	switch o.Kind.Kind {
	case "ConfigMap":
		data, _ := o.Fields()["data"].(map[string]any)
		text = fmt.Sprint(data["a"])
	case "Deployment":
		status, _ := o.Fields()["status"].(map[string]any)
		text = fmt.Sprint(status["replicas"])
	}
	if o.Deleted {
		text += " deleted"
	}
	return text
}

// take returns the lines since the last call.
func (c *cluster) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.lines
	c.lines = nil
	return taken
}

func (c *cluster) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{"a": "1"},
	}
}

func TestJournal(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		do   func(ctx context.Context, c *cluster)
		want []string
	}{
		"create, update, delete": {func(ctx context.Context, c *cluster) {
			obj := configMap("a")
			c.must(c.Create(ctx, obj))
			obj.Data["a"] = "2"
			c.must(c.as("another").Update(ctx, obj))
			c.must(c.Delete(ctx, obj))
		}, []string{
			"somebody: ConfigMap default/a: none → 1",
			"another: ConfigMap default/a: 1 → 2",
			"somebody: ConfigMap default/a: 2 → none",
		}},
		"an update without change, and dry runs": {func(ctx context.Context, c *cluster) {
			obj := configMap("a")
			c.must(c.Create(ctx, obj))
			c.take()
			c.must(c.Update(ctx, obj))
			obj.Data["a"] = "2"
			c.must(c.Update(ctx, obj, client.DryRunAll))
			c.must(c.Create(ctx, configMap("b"), client.DryRunAll))
			c.must(c.Delete(ctx, obj, client.DryRunAll))
		}, nil},
		"what is refused": {func(ctx context.Context, c *cluster) {
			c.must(c.Create(ctx, configMap("a")))
			c.take()
			stale := configMap("a")
			stale.Data, stale.ResourceVersion = nil, "1"
			for _, err := range []error{
				c.Create(ctx, configMap("a")), c.Update(ctx, stale), c.Delete(ctx, configMap("b")),
				c.Create(ctx, configMap("not a name")),
			} {
				if apierrors.ReasonForError(err) == metav1.StatusReasonUnknown {
					c.Error(err)
				}
			}
		}, nil},
		"status": {func(ctx context.Context, c *cluster) {
			obj := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
			labels := map[string]string{"app": "a"}
			obj.Spec.Selector, obj.Spec.Template.Labels = &metav1.LabelSelector{MatchLabels: labels}, labels
			obj.Spec.Template.Spec.Containers = []corev1.Container{{Name: "a", Image: "a"}}
			c.must(c.Create(ctx, obj))
			obj.Status.Replicas = 3
			c.must(c.Status().Update(ctx, obj))
		}, []string{
			"somebody: Deployment default/a: none → <nil>", "somebody: Deployment default/a: <nil> → 3 status",
		}},
		"apply and patch": {func(ctx context.Context, c *cluster) {
			for _, value := range []string{"1", "1", "2"} {
				config := corev1apply.ConfigMap("a", "default").WithData(map[string]string{"a": value})
				c.must(c.Apply(ctx, config, client.FieldOwner("somebody")))
			}
			patch := client.RawPatch(types.MergePatchType, []byte(`{"data":{"a":"3"}}`))
			c.must(c.Patch(ctx, configMap("a"), patch))
		}, []string{
			"somebody: ConfigMap default/a: none → 1", "somebody: ConfigMap default/a: 1 → 2",
			"somebody: ConfigMap default/a: 2 → 3",
		}},
		"a deletion that a finalizer holds up": {func(ctx context.Context, c *cluster) {
			obj := configMap("a")
			obj.Finalizers = []string{"example.com/wait"}
			c.must(c.Create(ctx, obj))
			c.must(c.Delete(ctx, obj))
			c.must(c.Delete(ctx, obj))
			c.must(c.Get(ctx, client.ObjectKeyFromObject(obj), obj))
			obj.Finalizers = nil
			c.must(c.as("another").Update(ctx, obj))
		}, []string{
			"somebody: ConfigMap default/a: none → 1", "somebody: ConfigMap default/a: 1 → 1 deleted",
			"another: ConfigMap default/a: 1 deleted → none",
		}},
		"deletion of a collection": {func(ctx context.Context, c *cluster) {
			c.must(c.Create(ctx, configMap("a")))
			c.must(c.Create(ctx, configMap("b")))
			c.take()
			c.must(c.as("another").DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace("default")))
		}, []string{"another: ConfigMap default/a: 1 → none", "another: ConfigMap default/b: 1 → none"}},
		"an event expires": {func(ctx context.Context, c *cluster) {
			c.must(c.Create(ctx, &corev1.Event{
				ObjectMeta:     metav1.ObjectMeta{Namespace: "default", Name: "a"},
				InvolvedObject: corev1.ObjectReference{Namespace: "default"},
			}))
			time.Sleep(time.Hour + time.Minute)
		}, []string{"somebody: Event default/a: none →", ": Event default/a:  → none"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, func(c *cluster) {
				test.do(c.Context(), c)
				if got := c.take(); !slices.Equal(got, test.want) {
					c.Errorf("the writes are\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
				}
			})
		})
	}
}

// TestConcurrentWrites has writes of one object come in their order, also if the server tries some of them again.
func TestConcurrentWrites(t *testing.T) {
	t.Parallel()
	run(t, func(c *cluster) {
		c.must(c.Create(c.Context(), configMap("a")))
		c.take()
		var writers sync.WaitGroup
		for i := range 20 {
			writers.Go(func() {
				patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"data":{"a":"<%d>"}}`, i))
				if err := c.Patch(c.Context(), configMap("a"), patch); err != nil {
					c.Error(err)
				}
			})
		}
		writers.Wait()
		lines := c.take()
		if len(lines) != 20 {
			c.Errorf("there are %d writes", len(lines))
		}
		last := "1"
		for _, line := range lines {
			value, ok := strings.CutPrefix(line, "somebody: ConfigMap default/a: "+last+" → ")
			if !ok {
				c.Errorf("%q does not follow %q", line, last)
			}
			last = value
		}
	})
}

// TestObjectsAreTheReaders changes what a journal hands out, and what a client got.
func TestObjectsAreTheReaders(t *testing.T) {
	t.Parallel()
	run(t, func(c *cluster) {
		obj := configMap("a")
		c.must(c.Create(c.Context(), obj))
		obj.Data["a"] = "2"
		key := fault.Key{Kind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "default", Name: "a"}
		c.journal.State().Get(key).Fields()["data"].(map[string]any)["a"] = "3"
		if got := text(c.journal.State().Get(key)); got != "1" {
			c.Errorf("the journal has %s", got)
		}
		c.must(c.Get(c.Context(), client.ObjectKeyFromObject(obj), obj))
		if obj.Data["a"] != "1" {
			c.Errorf("the storage has %s", obj.Data["a"])
		}
	})
}
