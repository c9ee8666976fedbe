package shards_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/shard"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/sharding"
	rtesting "github.com/espalier-dev/espalier/testing"
	"github.com/espalier-dev/espalier/testing/simulation"
)

const (
	ring = "widgets"
	// widgetLabel is on each child. Its value is the UID of the Widget.
	widgetLabel = "test.espalier.dev/widget"
	// roleLabel is on each child. Its value says which of the children it is.
	roleLabel = "test.espalier.dev/role"

	registryFinalizer = "test.espalier.dev/registry"
	partsFinalizer    = "test.espalier.dev/parts"
	accountsFinalizer = "test.espalier.dev/accounts"
)

// registry lists Widgets outside of the cluster, by their UIDs.
type registry struct {
	mu   sync.Mutex
	uids map[string]bool
}

var registries simulation.External[registry]

func (r *registry) set(uid string, listed bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.uids == nil {
		r.uids = map[string]bool{}
	}
	if listed {
		r.uids[uid] = true
	} else {
		delete(r.uids, uid)
	}
	return nil
}

// lists reports whether a Widget is listed.
func (r *registry) lists(uid string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.uids[uid]
}

// flaw is something that a shard lacks.
type flaw string

const (
	// flawless is a shard that lacks nothing.
	flawless flaw = ""
	// unguarded is a shard whose transport lets each write through.
	unguarded flaw = "each write is sent"
	// filtered is a shard that asks the API server for its own children alone, which is what its cache shows.
	filtered flaw = "no more is asked for than the cache shows"
)

// prepare returns what makes a process a shard of the ring, with the name of its actor.
func prepare(lacks flaw) func(context.Context, *rest.Config, *ctrl.Options) (
	func(context.Context, ctrl.Manager) error, error,
) {
	return func(ctx context.Context, config *rest.Config, options *ctrl.Options) (
		func(context.Context, ctrl.Manager) error, error,
	) {
		listed := registries.In(ctx)
		root := func(config reconcilers.Config) *reconcilers.ResourceReconciler[*resources.Widget] {
			return newRoot(config, listed)
		}
		joined, err := sharding.Ring{Name: ring, Shard: config.UserAgent}.Join(config, options, root(reconcilers.Config{}))
		if lacks == unguarded {
			config.WrapTransport = nil
		}
		return func(ctx context.Context, mgr ctrl.Manager) error {
			mgr = joined.Manager(mgr)
			config := espalier.NewConfig(mgr).WithShard(joined)
			if lacks == filtered {
				config.APIReader = onlyOwn{config.APIReader, shard.Selector(joined)}
			}
			return root(config).SetupWithManager(ctx, mgr)
		}, err
	}
}

// onlyOwn lists the objects of a shard alone.
type onlyOwn struct {
	client.Reader
	selector labels.Selector
}

// List implements [client.Reader].
func (r onlyOwn) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return r.Reader.List(ctx, list, append(options, client.MatchingLabelsSelector{Selector: r.selector})...)
}

// newRoot returns the tree of the operator. A Widget is listed in the registry, has parts that go before it does, a note
// with a generated name, and accounts that it does not own.
func newRoot(config reconcilers.Config, listed *registry) *reconcilers.ResourceReconciler[*resources.Widget] {
	return espalier.For(config,
		espalier.Runs("Registry", func(ctx context.Context, w *resources.Widget) error {
			return call(ctx, listed, w, true)
		}).Finalizes(registryFinalizer, func(ctx context.Context, w *resources.Widget) error {
			return call(ctx, listed, w, false)
		}),
		&reconcilers.WithFinalizer[*resources.Widget]{
			Finalizer: partsFinalizer, Reconciler: espalier.OwnsEach("Parts", parts),
		},
		espalier.Owns("Note", note),
		newAccounts(),
	)
}

// call calls the registry, as what may fail and be lost.
func call(ctx context.Context, listed *registry, w *resources.Widget, is bool) error {
	if listed == nil {
		return nil
	}
	return rtesting.Call(ctx, fmt.Sprintf("list %s %t", w.Name, is), func() error { return listed.set(string(w.UID), is) })
}

// parts returns a ConfigMap for each number up to that in the field "parts".
func parts(_ context.Context, w *resources.Widget) ([]*corev1.ConfigMap, error) {
	var all []*corev1.ConfigMap
	for i := range number(w) {
		part := &corev1.ConfigMap{ObjectMeta: child(w, fmt.Sprintf("part-%d", i))}
		part.Data = map[string]string{"color": w.Spec.Fields["color"]}
		all = append(all, part)
	}
	return all, nil
}

// note returns a Secret with a generated name.
func note(_ context.Context, w *resources.Widget) (*corev1.Secret, error) {
	secret := &corev1.Secret{ObjectMeta: child(w, "note")}
	secret.Name, secret.GenerateName = "", w.Name+"-note-"
	secret.Data = map[string][]byte{"color": []byte(w.Spec.Fields["color"])}
	return secret, nil
}

// newAccounts returns a node with children that a Widget does not own. So no ring assigns them.
func newAccounts() reconcilers.SubReconciler[*resources.Widget] {
	return &reconcilers.ChildSetReconciler[*resources.Widget, *corev1.ServiceAccount, *corev1.ServiceAccountList]{
		Name: "Accounts", Finalizer: accountsFinalizer,
		DesiredChildren: func(_ context.Context, w *resources.Widget) ([]*corev1.ServiceAccount, error) {
			return []*corev1.ServiceAccount{{ObjectMeta: child(w, "account")}}, nil
		},
		MergeBeforeUpdate: func(current, desired *corev1.ServiceAccount) {
			if current.Labels == nil {
				current.Labels = map[string]string{}
			}
			maps.Copy(current.Labels, desired.Labels)
		},
		IdentifyChild: func(account *corev1.ServiceAccount) string { return account.Labels[roleLabel] },
		ListOptions: func(_ context.Context, w *resources.Widget) []client.ListOption {
			return []client.ListOption{client.InNamespace(w.Namespace), client.HasLabels{widgetLabel}}
		},
		OurChild: func(w *resources.Widget, account *corev1.ServiceAccount) bool {
			return account.Labels[widgetLabel] == string(w.UID)
		},
		ReflectChildrenStatusOnParent: func(
			context.Context, *resources.Widget, reconcilers.ChildSetResult[*corev1.ServiceAccount],
		) {
		},
	}
}

// child returns the metadata of a child of a Widget.
func child(w *resources.Widget, role string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name + "-" + role, Labels: map[string]string{
		widgetLabel: string(w.UID), roleLabel: role,
	}}
}

// number returns how many parts a Widget has.
func number(w *resources.Widget) int {
	n, err := strconv.Atoi(w.Spec.Fields["parts"])
	if err != nil {
		return 0
	}
	return n
}

// wants reports whether a Widget is to have a child.
func wants(w *resources.Widget, role string) bool {
	if w.DeletionTimestamp != nil {
		return false
	}
	roles := []string{"note", "account"}
	for i := range number(w) {
		roles = append(roles, fmt.Sprintf("part-%d", i))
	}
	return slices.Contains(roles, role)
}
