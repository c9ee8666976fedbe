package shards_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/sharding"
	rtesting "github.com/espalier-dev/espalier/testing"
	"github.com/espalier-dev/espalier/testing/simulation"
)

const (
	// firstRing is the name of the ring before it gets another one.
	firstRing = "widgets"
	// widgetLabel is on each child. Its value is the UID of the Widget.
	widgetLabel = "test.espalier.dev/widget"
	// roleLabel is on each child. Its value says which of the children it is.
	roleLabel = "test.espalier.dev/role"

	registryFinalizer = "test.espalier.dev/registry"
	partsFinalizer    = "test.espalier.dev/parts"
	accountsFinalizer = "test.espalier.dev/accounts"
)

// The roles of children. The number of a part and of an account follows.
const (
	partRole    = "part-"
	noteRole    = "note"
	accountRole = "account-"
)

// registry lists Widgets outside of the cluster, by their UIDs.
type registry struct {
	mu sync.Mutex
	// names has the names of those that are listed.
	names map[string]string
	// needed says what a registration is needed for that must not be taken back.
	needed map[string]string
	// early says which one was taken back while it was needed.
	early string
}

var registries simulation.External[registry]

func (r *registry) set(w *resources.Widget, listed bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.names == nil {
		r.names = map[string]string{}
	}
	uid := string(w.UID)
	if listed {
		r.names[uid] = w.Name
		return nil
	}
	delete(r.names, uid)
	if reason := r.needed[uid]; reason != "" {
		r.early = fmt.Sprintf("the registration of Widget %s was taken back, and %s", w.Name, reason)
	}
	return nil
}

// need says what the registration of a Widget is needed for, nothing if that is empty.
func (r *registry) need(uid, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.needed == nil {
		r.needed = map[string]string{}
	}
	r.needed[uid] = reason
}

// wasEarly returns an error if a registration was taken back while it was needed.
func (r *registry) wasEarly() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.early == "" {
		return nil
	}
	return errors.New(r.early)
}

// lists reports whether a Widget is listed.
func (r *registry) lists(uid string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.names[uid] != ""
}

// all returns the names of the Widgets that are listed, by their UIDs.
func (r *registry) all() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.names)
}

// reading has each Widget as the operator has read it last, by its UID.
type reading struct {
	mu      sync.Mutex
	widgets map[string]*resources.Widget
}

var readings simulation.External[reading]

// note takes down what the tree is given. A process may have read an older Widget than another one did before.
func (r *reading) note(w *resources.Widget) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.widgets == nil {
		r.widgets = map[string]*resources.Widget{}
	}
	uid := string(w.UID)
	if last := r.widgets[uid]; last == nil || last.Generation < w.Generation {
		r.widgets[uid] = w.DeepCopy()
	}
}

// last returns a Widget as it was read last, nil if it was not.
func (r *reading) last(uid string) *resources.Widget {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.widgets[uid]
}

// joining says what processes join that begin from now on.
type joining struct {
	mu sync.Mutex
	// name is the name of the ring, firstRing if it is empty.
	name string
	// alone has one of the processes work, by leader election, and for all Widgets.
	alone bool
}

var joinings simulation.External[joining]

func (j *joining) set(ring string, alone bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.name, j.alone = ring, alone
}

// ring returns the name of the ring.
func (j *joining) ring() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return cmp.Or(j.name, firstRing)
}

// isAlone reports whether one process works for all Widgets.
func (j *joining) isAlone() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.alone
}

// prepare returns what makes a process a shard of the ring, with the name of its actor.
func prepare(lacks flaw) func(context.Context, *rest.Config, *ctrl.Options) (
	func(context.Context, ctrl.Manager) error, error,
) {
	return func(ctx context.Context, config *rest.Config, options *ctrl.Options) (
		func(context.Context, ctrl.Manager) error, error,
	) {
		name, joining := config.UserAgent, joinings.In(ctx)
		allLeases.In(ctx).begin(name)
		if joining.isAlone() {
			options.LeaderElection, options.LeaderElectionID = true, "widgets-leader"
			options.LeaderElectionReleaseOnCancel = true
			return func(ctx context.Context, mgr ctrl.Manager) error {
				return newRoot(espalier.NewConfig(mgr), lacks).SetupWithManager(ctx, mgr)
			}, nil
		}
		lacks.begin(ctx, config)
		ring := sharding.Ring{Name: joining.ring(), Shard: name}
		shard, err := ring.Join(config, options, newRoot(reconcilers.Config{}, lacks))
		lacks.join(config)
		return func(ctx context.Context, mgr ctrl.Manager) error {
			mgr = shard.Manager(mgr)
			config := lacks.config(espalier.NewConfig(mgr), shard)
			return newRoot(config.WithShard(shard), lacks).SetupWithManager(ctx, mgr)
		}, err
	}
}

// newRoot returns the tree of the operator. A Widget is listed in the registry as long as it is there and has parts and
// accounts. It has parts that go before it does, a note with a generated name, and accounts that it does not own.
func newRoot(config reconcilers.Config, lacks flaw) *reconcilers.ResourceReconciler[*resources.Widget] {
	registration := espalier.Runs("Registry", lacks.register).Finalizes(registryFinalizer, lacks.unregister)
	var ofParts reconcilers.SubReconciler[*resources.Widget] = espalier.OwnsEach("Parts", lacks.parts)
	if lacks == hasty {
		ofParts = hurry{ofParts}
	}
	nodes := []reconcilers.SubReconciler[*resources.Widget]{
		registration,
		&reconcilers.WithFinalizer[*resources.Widget]{Finalizer: partsFinalizer, Reconciler: ofParts},
		espalier.Owns("Note", note),
		newAccounts(),
	}
	if lacks == unordered {
		return espalier.For(config, nodes...)
	}
	return espalier.For(config, reconcilers.ReverseOnDeletion[*resources.Widget](nodes))
}

// register lists a Widget in the registry.
func register(ctx context.Context, w *resources.Widget) error { return call(ctx, w, true) }

// unregister takes a Widget off the registry.
func unregister(ctx context.Context, w *resources.Widget) error { return call(ctx, w, false) }

// call calls the registry, as what may fail and be lost.
func call(ctx context.Context, w *resources.Widget, is bool) error {
	readings.In(ctx).note(w)
	return rtesting.Call(ctx, fmt.Sprintf("list %s %t", w.Name, is), func() error { return registries.In(ctx).set(w, is) })
}

// parts returns a ConfigMap for each part.
func parts(ctx context.Context, w *resources.Widget) ([]*corev1.ConfigMap, error) {
	readings.In(ctx).note(w)
	var all []*corev1.ConfigMap
	for i := range number(w, partsField) {
		part := &corev1.ConfigMap{ObjectMeta: child(w, partRole+strconv.Itoa(i))}
		part.Data = map[string]string{"color": w.Spec.Fields[colorField]}
		all = append(all, part)
	}
	return all, nil
}

// note returns a Secret with a generated name, nil if there is to be none.
func note(ctx context.Context, w *resources.Widget) (*corev1.Secret, error) {
	readings.In(ctx).note(w)
	if number(w, notesField) == 0 {
		return nil, nil
	}
	secret := &corev1.Secret{ObjectMeta: child(w, noteRole)}
	secret.Name, secret.GenerateName = "", w.Name+"-note-"
	secret.Data = map[string][]byte{"color": []byte(w.Spec.Fields[colorField])}
	return secret, nil
}

// newAccounts returns a node with children that a Widget does not own. So no ring assigns them.
func newAccounts() reconcilers.SubReconciler[*resources.Widget] {
	return &reconcilers.ChildSetReconciler[*resources.Widget, *corev1.ServiceAccount, *corev1.ServiceAccountList]{
		Name: "Accounts", Finalizer: accountsFinalizer,
		DesiredChildren: func(ctx context.Context, w *resources.Widget) ([]*corev1.ServiceAccount, error) {
			readings.In(ctx).note(w)
			var all []*corev1.ServiceAccount
			for i := range number(w, accountsField) {
				all = append(all, &corev1.ServiceAccount{ObjectMeta: child(w, accountRole+strconv.Itoa(i))})
			}
			return all, nil
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

// The fields of a Widget: how many children of a kind it has, and what is written into them. There is one note or none.
const (
	partsField    = "parts"
	notesField    = "notes"
	accountsField = "accounts"
	colorField    = "color"
)

// number returns the number that a field of a Widget has.
func number(w *resources.Widget, field string) int {
	n, err := strconv.Atoi(w.Spec.Fields[field])
	if err != nil {
		return 0
	}
	return n
}

// roles returns the roles of the children that a Widget is to have.
func roles(w *resources.Widget) []string {
	if w.DeletionTimestamp != nil {
		return nil
	}
	var all []string
	for i := range number(w, partsField) {
		all = append(all, partRole+strconv.Itoa(i))
	}
	for range number(w, notesField) {
		all = append(all, noteRole)
	}
	for i := range number(w, accountsField) {
		all = append(all, accountRole+strconv.Itoa(i))
	}
	return all
}
