package fidelity

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/testing/internal/store"
)

// realServer is an API server with controllers that collect garbage and empty namespaces.
type realServer struct{ config *rest.Config }

func (s realServer) Connect() (client.WithWatch, error) {
	return client.NewWithWatch(s.config, client.Options{Scheme: Scheme()})
}

func (realServer) Patience() time.Duration { return 2 * time.Minute }

func (s realServer) Eventually(ctx context.Context, done func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, s.Patience())
	defer cancel()
	return wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(context.Context) (bool, error) {
		return done(), nil
	}) == nil
}

// memories returns what [NewStores] returns.
func memories(t *testing.T, options store.Options) func() (Cluster, error) {
	t.Helper()
	newStore, err := NewStores(options)
	if err != nil {
		t.Fatal(err)
	}
	return newStore
}

// fakeClient is what controller-runtime has for tests. It is set up as its documentation says.
type fakeClient struct{ client.WithWatch }

func newFakeClient() fakeClient {
	scheme := newClientScheme() // The fake client adds kinds to its scheme.
	builder := fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().
		WithStatusSubresource(&appsv1.Deployment{}, &resources.Widget{}, &Gizmo{}, custom("gadget", "v1", "", "", nil)).
		WithObjects(namespace(corev1.NamespaceDefault), namespace("kube-system"), namespace("kube-public"),
			namespace("kube-node-lease"))
	for _, definition := range Definitions() {
		builder.WithObjects(definition)
	}
	return fakeClient{builder.Build()}
}

func (c fakeClient) Connect() (client.WithWatch, error) { return c.WithWatch, nil }

func (fakeClient) Eventually(_ context.Context, done func() bool) bool { return done() }

func (fakeClient) Patience() time.Duration { return time.Second }
