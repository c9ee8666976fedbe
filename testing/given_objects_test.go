package testing_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
)

var plane controlplanetest.Shared

func TestMain(m *testing.M) {
	os.Exit(plane.Main(m))
}

func newServer(t *testing.T) client.WithWatch {
	server, err := client.NewWithWatch(plane.Config(t), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return server
}

// onServer returns the case as one for a real server.
func onServer(t *testing.T, tc cmCase) cmCase {
	tc.Server = newServer(t)
	return tc
}

func TestCasesRunOnARealServer(t *testing.T) {
	held := settings.With(func(c *corev1.ConfigMap) { c.Finalizers = []string{"example.com/hold"} })
	node := rtesting.NewFixture(&corev1.Node{})
	node = node.With(func(n *corev1.Node) { n.Name, n.Status.NodeInfo.Architecture = "harness", "amd64" })
	other := settings.With(func(c *corev1.ConfigMap) { c.Name = "other" })

	runNode(t, cmTests{
		"as in memory": onServer(t, cmCase{
			Resource:        held.Object(),
			GivenObjects:    []client.Object{node},
			APIGivenObjects: []client.Object{node},
			ExpectResource:  held.With(func(c *corev1.ConfigMap) { c.Data["k"] = "w" }).Object(),
			ExpectUpdates:   []client.Object{held.With(func(c *corev1.ConfigMap) { c.Data["k"] = "w" })},
			ExpectCreates:   []client.Object{other},
			ExpectApplies: []rtesting.ApplyRef{{
				Kind: "ConfigMap", Namespace: "default", Name: "applied",
				ApplyConfiguration: corev1ac.ConfigMap("applied", "default"),
			}},
			Metadata: does(func(ctx context.Context, cm *corev1.ConfigMap) error {
				c := reconcilers.RetrieveConfigOrDie(ctx)
				stored := &corev1.Node{}
				if err := c.Get(ctx, client.ObjectKeyFromObject(node), stored); err != nil {
					return err
				}
				if stored.UID == "" || stored.Status.NodeInfo.Architecture != "amd64" {
					return fmt.Errorf("got UID %q and status %+v", stored.UID, stored.Status)
				}
				cm.Data["k"] = "w"
				return errors.Join(
					c.Update(ctx, cm),
					c.Create(ctx, other.Object()),
					c.Apply(ctx, corev1ac.ConfigMap("applied", "default"), client.FieldOwner("me")),
				)
			}),
		}),
		"conflict": onServer(t, cmCase{
			Resource:      settings.With(func(c *corev1.ConfigMap) { c.Name = "conflict" }).Object(),
			ExpectUpdates: []client.Object{settings.With(func(c *corev1.ConfigMap) { c.Name, c.ResourceVersion = "conflict", "1" })},
			ShouldErr:     true,
			Metadata: does(func(ctx context.Context, cm *corev1.ConfigMap) error {
				stale := cm.DeepCopy()
				stale.ResourceVersion = "1"
				return reconcilers.RetrieveConfigOrDie(ctx).Update(ctx, stale)
			}),
			Verify: func(t *testing.T, _ reconcilers.Result, err error) {
				if !apierrors.IsConflict(err) {
					t.Errorf("want a conflict, got %v", err)
				}
			},
		}),
	})

	left := &corev1.ConfigMapList{}
	if err := newServer(t).List(t.Context(), left, client.InNamespace("default")); err != nil {
		t.Fatal(err)
	}
	for _, cm := range left.Items {
		if cm.Name != "kube-root-ca.crt" {
			t.Errorf("%s is left behind", cm.Name)
		}
	}
}

func TestWhatCannotBeGivenOnAServerIsReported(t *testing.T) {
	c := &rtesting.ExpectConfig{
		Scheme:       scheme,
		Server:       newServer(t),
		GivenObjects: []client.Object{settings.With(func(c *corev1.ConfigMap) { c.Namespace = "nowhere" })},
	}
	c.AssertExpectations(nil)
	if got := len(c.Failures()); got != 1 {
		t.Errorf("want a failure, got %q", c.Failures())
	}
	if err := c.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// A webhook case runs against a server, and what it applies by a patch goes with it.
func TestWebhookCasesRunOnARealServer(t *testing.T) {
	server := newServer(t)
	patch := []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"patched","namespace":"default"}}`)
	webhookTests{"applies by a patch": {
		Request:          asked(),
		ExpectedResponse: allowed,
		Server:           server,
		GivenObjects:     []client.Object{settings},
		ExpectPatches: []rtesting.PatchRef{{
			Kind: "ConfigMap", Namespace: "default", Name: "patched", PatchType: types.ApplyPatchType, Patch: patch,
		}},
		Metadata: answers(func(ctx context.Context, c reconcilers.Config, _ admission.Request) admission.Response {
			obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "patched"}}
			if err := c.Get(ctx, client.ObjectKeyFromObject(settings), &corev1.ConfigMap{}); err != nil {
				return admission.Errored(http.StatusInternalServerError, err)
			}
			if err := c.Patch(ctx, obj, client.RawPatch(types.ApplyPatchType, patch), client.FieldOwner("me")); err != nil {
				return admission.Errored(http.StatusInternalServerError, err)
			}
			return admission.Allowed("")
		}),
	}}.RunWithContext(t, scheme, newWebhook)

	for _, name := range []string{"settings", "patched"} {
		err := server.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, &corev1.ConfigMap{})
		if !apierrors.IsNotFound(err) {
			t.Errorf("%s is left behind: %v", name, err)
		}
	}
}
