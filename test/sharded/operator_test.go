package sharded_test

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/internal/testenv/sharder"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/sharding"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	registryFinalizer = "test.espalier.dev/registry"
	partsFinalizer    = "test.espalier.dev/parts"
	// roleLabel is on what the operator makes for a Widget. Its value says which of the objects it is.
	roleLabel = "test.espalier.dev/role"
	// entryRole is the role of the entry of a Widget in the registry. The Widget does not own it.
	entryRole = "entry"
	noteRole  = "note"
)

// replica is a process of the operator.
type replica struct {
	Ring, Name string
	// Namespace has the resources, and the Lease of the replica.
	Namespace string
	// LeaseSeconds is how long its Lease lasts. Three quarters of it is the renew deadline.
	LeaseSeconds int
	// Components has the replica reconcile Assemblies, which are components, and no Widgets.
	Components bool
}

// spec returns what the ring of the replica shares.
func (r replica) spec() sharder.RingSpec {
	in := func(group, resource string) metav1.GroupResource {
		return metav1.GroupResource{Group: group, Resource: resource}
	}
	main := sharder.RingResource{GroupResource: in(resources.GroupVersion.Group, "assemblies")}
	if !r.Components {
		main.Resource = "widgets"
		main.ControlledResources = []metav1.GroupResource{in("", "configmaps"), in("", "secrets")}
	}
	return sharder.RingSpec{
		Resources: []sharder.RingResource{main},
		NamespaceSelector: &metav1.LabelSelector{
			MatchLabels: map[string]string{corev1.LabelMetadataName: r.Namespace},
		},
	}
}

// root is a root of the operator.
type root interface {
	reconcilers.Describer
	SetupWithManager(ctx context.Context, mgr reconcilers.Manager) error
}

// manager returns a manager that is a shard of the ring.
func (r replica) manager(ctx context.Context, config *rest.Config) (ctrl.Manager, error) {
	duration := time.Duration(r.LeaseSeconds) * time.Second
	options := ctrl.Options{
		Scheme: resources.NewScheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		LeaderElectionNamespace: r.Namespace,
		LeaseDuration:           &duration, RenewDeadline: new(duration * 3 / 4), RetryPeriod: new(duration / 10),
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{r.Namespace: {}}},
	}
	options.Controller.SkipNameValidation, options.Controller.MaxConcurrentReconciles = new(true), 4
	shard, err := sharding.Ring{Name: r.Ring, Shard: r.Name}.Join(config, &options, r.root(reconcilers.Config{}))
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, err
	}
	mgr = shard.Manager(mgr)
	return mgr, r.root(espalier.NewConfig(mgr).WithShard(shard)).SetupWithManager(ctx, mgr)
}

// root returns the root of the operator.
func (r replica) root(config reconcilers.Config) root {
	if r.Components {
		// Components of one name would watch the objects of each other.
		return component.NewComponentRoot(r.Ring+".espalier.dev", resources.AssemblyGenerator(),
			component.Options[*resources.Assembly]{Config: config})
	}
	return newRoot(config)
}

// newRoot returns the tree for Widgets. A Widget has an entry in a registry, which a finalizer guards, parts that go
// before it does, and a note with a generated name, so that nothing but the tree itself keeps it from having two.
func newRoot(config reconcilers.Config) *reconcilers.ResourceReconciler[*resources.Widget] {
	return espalier.For(config,
		espalier.Runs("Registry", func(ctx context.Context, w *resources.Widget) error {
			err := reconcilers.RetrieveConfigOrDie(ctx).Create(ctx, entry(w))
			return client.IgnoreAlreadyExists(err)
		}).Finalizes(registryFinalizer, func(ctx context.Context, w *resources.Widget) error {
			err := reconcilers.RetrieveConfigOrDie(ctx).Delete(ctx, entry(w))
			return client.IgnoreNotFound(err)
		}),
		&reconcilers.WithFinalizer[*resources.Widget]{
			Finalizer: partsFinalizer, Reconciler: espalier.OwnsEach("Parts", parts),
		},
		espalier.Owns("Note", note),
	)
}

// entry returns the entry of a Widget in the registry. It stands for what is outside of the cluster, and is in the
// cluster, so that its order with other writes is known.
func entry(w *resources.Widget) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.Namespace, Name: "entry-of-" + string(w.UID),
		Labels: map[string]string{roleLabel: entryRole}, Annotations: map[string]string{"of": w.Name},
	}}
}

// parts returns a ConfigMap for each number up to that in the field "parts".
func parts(_ context.Context, w *resources.Widget) ([]*corev1.ConfigMap, error) {
	var all []*corev1.ConfigMap
	for i := range number(w) {
		role := fmt.Sprintf("part-%d", i)
		all = append(all, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: w.Namespace, Name: w.Name + "-" + role, Labels: map[string]string{roleLabel: role},
			},
			Data: map[string]string{"color": w.Spec.Fields["color"]},
		})
	}
	return all, nil
}

// note returns a Secret with a generated name.
func note(_ context.Context, w *resources.Widget) (*corev1.Secret, error) {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.Namespace, GenerateName: w.Name + "-note-", Labels: map[string]string{roleLabel: noteRole},
		},
		Data: map[string][]byte{"color": []byte(w.Spec.Fields["color"])},
	}, nil
}

// number returns how many parts a Widget has.
func number(w *resources.Widget) int {
	n, err := strconv.Atoi(w.Spec.Fields["parts"])
	if err != nil {
		return 0
	}
	return n
}
