package bundles_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane/webhookserver"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// webhook is the server of the webhook of a bundle. It refuses all while the Deployment of the bundle does not run.
type webhook struct {
	url, caBundle string
	running       atomic.Bool
}

func startWebhook(t *testing.T) *webhook {
	t.Helper()
	server, err := webhookserver.New()
	must(t, err)
	w := &webhook{}
	client := server.Validating("bundles", webhookserver.Hook{Path: "/settings"}).Webhooks[0].ClientConfig
	w.url, w.caBundle = *client.URL, base64Of(client.CABundle)
	server.Register("/settings", &admission.Webhook{Handler: admission.HandlerFunc(
		func(context.Context, admission.Request) admission.Response {
			if !w.running.Load() {
				return admission.Errored(http.StatusServiceUnavailable, errNotRunning)
			}
			return admission.Allowed("")
		})})
	inBackground(t, func(ctx context.Context) {
		if err := server.Start(ctx); err != nil {
			t.Error(err)
		}
	})
	return w
}

// runDeployments does what the controllers and the nodes of a cluster do: what a Deployment of the namespace is to run
// becomes available. The Deployment of the webhook needs its settings to run.
func runDeployments(t *testing.T, c client.Client, namespace string, w *webhook) {
	t.Helper()
	inBackground(t, func(ctx context.Context) {
		for ; ctx.Err() == nil; pause(ctx) {
			list := &appsv1.DeploymentList{}
			if c.List(ctx, list, client.InNamespace(namespace)) != nil {
				continue
			}
			if w != nil && len(list.Items) == 0 {
				w.running.Store(false)
			}
			for i := range list.Items {
				runDeployment(ctx, c, &list.Items[i], w)
			}
		}
	})
}

func runDeployment(ctx context.Context, c client.Client, d *appsv1.Deployment, w *webhook) {
	if w != nil && !w.running.Load() {
		key := types.NamespacedName{Namespace: d.Namespace, Name: "webhook-settings"}
		w.running.Store(c.Get(ctx, key, &corev1.ConfigMap{}) == nil)
		if !w.running.Load() {
			return
		}
	}
	if d.Status.ObservedGeneration == d.Generation {
		return
	}
	n := *d.Spec.Replicas
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable"},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
		},
	}
	// A conflict is gone the next time.
	_ = c.Status().Update(ctx, d)
}

func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(100 * time.Millisecond):
	}
}

// inBackground runs f until the test ends.
func inBackground(t *testing.T, f func(ctx context.Context)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

var errNotRunning = errors.New("the server of the webhook does not run")
