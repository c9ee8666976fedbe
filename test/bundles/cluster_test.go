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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
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
		wait.UntilWithContext(ctx, func(ctx context.Context) {
			if err := lookAtDeployments(ctx, c, namespace, w); err != nil && ctx.Err() == nil {
				t.Errorf("the Deployments of %s cannot be run: %v", namespace, err)
			}
		}, 100*time.Millisecond)
	})
}

func lookAtDeployments(ctx context.Context, c client.Client, namespace string, w *webhook) error {
	list := &appsv1.DeploymentList{}
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return err
	}
	if w != nil && len(list.Items) == 0 {
		w.running.Store(false)
	}
	var errs []error
	for i := range list.Items {
		errs = append(errs, runDeployment(ctx, c, &list.Items[i], w))
	}
	return errors.Join(errs...)
}

func runDeployment(ctx context.Context, c client.Client, d *appsv1.Deployment, w *webhook) error {
	if w != nil && !w.running.Load() {
		key := types.NamespacedName{Namespace: d.Namespace, Name: "webhook-settings"}
		if err := c.Get(ctx, key, &corev1.ConfigMap{}); err != nil {
			return client.IgnoreNotFound(err)
		}
		w.running.Store(true)
	}
	if d.Status.ObservedGeneration == d.Generation {
		return nil
	}
	n := *d.Spec.Replicas
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable"},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
		},
	}
	err := c.Status().Update(ctx, d)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // the next look sees what has changed
	}
	return err
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
