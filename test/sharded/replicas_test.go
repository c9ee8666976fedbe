package sharded_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/sharder"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// replicas are shards of one ring, in this process.
type replicas struct {
	*scene
	of replica
	// running are the shards, in the order in which they have joined.
	running []running
	named   int
}

type running struct {
	name string
	stop func()
}

// start starts a shard, and waits until the sharder takes it for ready.
func (r *replicas) start(name string) {
	r.Helper()
	of := r.of
	of.Name = name
	ctx, cancel := context.WithCancel(context.Background())
	mgr, err := of.manager(ctx, plane.Config(r))
	if err != nil {
		cancel()
		r.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			r.Errorf("%s fails: %v", name, err)
		}
	})
	r.Cleanup(stop)
	r.running = append(r.running, running{name: name, stop: stop})
	lease := &coordinationv1.Lease{}
	controlplanetest.Eventually(r, name+" is not ready", func(ctx context.Context) error {
		err := r.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: name}, lease)
		if err == nil && (*lease.Spec.HolderIdentity != name || lease.Labels[sharder.StateLabel] != string(sharder.Ready)) {
			err = fmt.Errorf("its Lease is %q, held by %q", lease.Labels[sharder.StateLabel], *lease.Spec.HolderIdentity)
		}
		return err
	})
}

// leave has the oldest shard leave, and returns its name.
func (r *replicas) leave() string {
	oldest := r.running[0]
	r.running = r.running[1:]
	oldest.stop()
	return oldest.name
}

// untilAssigned waits until each object has the label of the shard that it stays with.
func (r *replicas) untilAssigned() {
	r.Helper()
	controlplanetest.Eventually(r, "objects are still moved", func(ctx context.Context) error {
		leases := &coordinationv1.LeaseList{}
		if err := r.List(ctx, leases, client.InNamespace(r.namespace)); err != nil {
			return err
		}
		changes, err := r.history.all()
		if err != nil {
			return err
		}
		ring := sharder.Ring{Name: r.of.Ring, Spec: r.of.spec()}
		return worldAfter(changes).isAssigned(ring, sharder.NewAssignment(ring, leases.Items, time.Now()))
	})
}

// isAssigned returns an error unless each object of a ring has the shard of an assignment.
func (w world) isAssigned(ring sharder.Ring, to sharder.Assignment) error {
	main := ring.Spec.Resources[0]
	for _, object := range w {
		resource := main.GroupResource
		switch object.(type) {
		case *corev1.ConfigMap:
			resource = main.ControlledResources[0]
		case *corev1.Secret:
			resource = main.ControlledResources[1]
		}
		bare := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: object.GetNamespace(), Name: object.GetName(), OwnerReferences: object.GetOwnerReferences(),
		}}
		bare.SetGroupVersionKind(widgetKind) // it counts for Widgets alone
		want, err := to.Admit(resource, bare)
		if err != nil {
			return err
		}
		if got := object.GetLabels()[sharder.ShardLabel(ring.Name)]; got != want {
			return fmt.Errorf("%T %s has the shard %q, want %q", object, object.GetName(), got, want)
		}
	}
	return nil
}
