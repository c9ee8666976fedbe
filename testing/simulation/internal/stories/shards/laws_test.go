package shards_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/testing/simulation"
)

// The names of laws. The last one is checked at the end of a story, the others at each write.
const (
	creationLaw     = "no child is created twice"
	deletionLaw     = "no child is deleted that is wanted"
	finalizerLaw    = "no finalizer goes early"
	registrationLaw = "no registration goes early"
	leaseLaw        = "a shard without its Lease writes nothing"
	reconciledLaw   = "each resource is reconciled, and nothing else is left"
)

// laws hold at each write.
func laws() []simulation.Invariant {
	return []simulation.Invariant{
		{Name: creationLaw, Check: createdOnce},
		{Name: deletionLaw, Check: deletedUnwanted},
		{Name: finalizerLaw, Check: finalized},
		{Name: registrationLaw, Check: registered},
		{Name: leaseLaw, Check: leased},
		simulation.NothingForeign(func(obj *unstructured.Unstructured) bool { return obj.GetKind() == "Widget" }),
	}
}

// childKinds are those of children.
var childKinds = []schema.GroupKind{{Kind: "ConfigMap"}, {Kind: "Secret"}, {Kind: "ServiceAccount"}}

// children returns the children of a Widget.
func children(s simulation.State, uid string) []client.Object {
	var all []client.Object
	of := client.MatchingLabels{widgetLabel: uid}
	var maps corev1.ConfigMapList
	var secrets corev1.SecretList
	var accounts corev1.ServiceAccountList
	s.List(&maps, of)
	s.List(&secrets, of)
	s.List(&accounts, of)
	for i := range maps.Items {
		all = append(all, &maps.Items[i])
	}
	for i := range secrets.Items {
		all = append(all, &secrets.Items[i])
	}
	for i := range accounts.Items {
		all = append(all, &accounts.Items[i])
	}
	return all
}

// createdOnce checks that there is no other child of the role of one that is created.
func createdOnce(w simulation.Write, s simulation.State) error {
	made := &unstructured.Unstructured{}
	if w.Verb() != "create" || !slices.Contains(childKinds, w.Kind) || !w.After(made) ||
		allLeases.In(context.Background()).overlaps(w.Time) {
		return nil
	}
	labels := made.GetLabels()
	for _, other := range children(s, labels[widgetLabel]) {
		if other.GetUID() != made.GetUID() && other.GetLabels()[roleLabel] == labels[roleLabel] {
			return fmt.Errorf("%s is the %s of the Widget already", other.GetName(), labels[roleLabel])
		}
	}
	return nil
}

// widgetOf returns the Widget of a UID, nil if it is gone.
func widgetOf(s simulation.State, uid string) *resources.Widget {
	var widgets resources.WidgetList
	s.List(&widgets)
	for i := range widgets.Items {
		if string(widgets.Items[i].UID) == uid {
			return &widgets.Items[i]
		}
	}
	return nil
}

// deletedUnwanted checks that the Widget of a child that the operator deletes is being deleted, or did not want the
// child when the operator read it last. What a user has written since then is not known to the operator.
func deletedUnwanted(w simulation.Write, s simulation.State) error {
	gone := &unstructured.Unstructured{}
	deletes := w.Verb() == "delete" || w.Verb() == "mark for deletion"
	if !deletes || !w.ByOperator() || !slices.Contains(childKinds, w.Kind) || !w.Before(gone) {
		return nil
	}
	uid, role := gone.GetLabels()[widgetLabel], gone.GetLabels()[roleLabel]
	widget := widgetOf(s, uid)
	if widget == nil || widget.DeletionTimestamp != nil {
		return nil
	}
	if allLeases.In(context.Background()).overlaps(w.Time) {
		return nil
	}
	known := readings.In(context.Background()).last(uid)
	if known == nil {
		return fmt.Errorf("nobody has read Widget %s", widget.Name)
	}
	if slices.Contains(roles(known), role) {
		return fmt.Errorf("Widget %s of generation %d wants it, as the operator has read it", known.Name, known.Generation)
	}
	return nil
}

// finalized checks that what a finalizer guards is gone when the finalizer is.
func finalized(w simulation.Write, s simulation.State) error {
	var before, after resources.Widget
	if !w.Before(&before) {
		return nil
	}
	w.After(&after)
	uid := string(before.UID)
	left := map[string]func() bool{
		registryFinalizer: func() bool { return registries.In(context.Background()).lists(uid) },
		partsFinalizer:    func() bool { return hasChild(s, uid, isPart) },
		accountsFinalizer: func() bool { return hasChild(s, uid, isAccount) },
	}
	for _, finalizer := range before.Finalizers {
		if guards := left[finalizer]; guards != nil && !slices.Contains(after.Finalizers, finalizer) && guards() {
			return fmt.Errorf("%s is taken off, and what it guards is there", finalizer)
		}
	}
	return nil
}

func isPart(role string) bool    { return strings.HasPrefix(role, partRole) }
func isAccount(role string) bool { return strings.HasPrefix(role, accountRole) }

// hasChild reports whether a Widget has a child of a role.
func hasChild(s simulation.State, uid string, is func(role string) bool) bool {
	return slices.ContainsFunc(children(s, uid), func(child client.Object) bool {
		return is(child.GetLabels()[roleLabel])
	})
}

// registered tells the registry after each write what the registration of a Widget is needed for, and checks that none
// was taken back while it was needed.
func registered(w simulation.Write, s simulation.State) error {
	r := registries.In(context.Background())
	if uid := widgetUID(w); uid != "" {
		r.need(uid, neededFor(s, uid))
	}
	return r.wasEarly()
}

// widgetUID returns the UID of the Widget that a write is about, or of whose child. It is empty if there is none.
func widgetUID(w simulation.Write) string {
	obj := &unstructured.Unstructured{}
	if !w.After(obj) && !w.Before(obj) {
		return ""
	}
	switch {
	case w.Kind.Kind == "Widget":
		return string(obj.GetUID())
	case slices.Contains(childKinds, w.Kind):
		return obj.GetLabels()[widgetLabel]
	}
	return ""
}

// neededFor says what the registration of a Widget is needed for: for the Widget until it is deleted, and then for the
// children that go before it. It is empty if nothing needs it.
func neededFor(s simulation.State, uid string) string {
	widget := widgetOf(s, uid)
	switch {
	case widget == nil:
		return ""
	case widget.DeletionTimestamp == nil:
		return "the Widget is not being deleted"
	case hasChild(s, uid, isPart):
		return "the Widget has parts"
	case hasChild(s, uid, isAccount):
		return "the Widget has accounts"
	}
	return ""
}

const (
	// renewDeadline is how long a process writes after it has renewed its Lease.
	renewDeadline = 10 * time.Second
	// underWay is how long a request may take to arrive: the longest latency that is drawn.
	underWay = 2 * time.Second
)

// leases are what became of the Lease of each shard.
type leases struct {
	mu sync.Mutex
	// renewed is when the process of the shard that runs wrote its Lease last. It lacks a process that has not.
	renewed map[string]time.Time
	// lost says what became of a Lease that the shard does not hold any more.
	lost map[string]string
	// deleted is when somebody deleted a Lease that a shard held.
	deleted time.Time
}

var allLeases simulation.External[leases]

// begin notes that another process of a shard begins. What an earlier one had it has not.
func (l *leases) begin(shard string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.renewed, shard)
}

// overlaps reports whether two processes may work for one Widget: somebody has deleted the Lease of one a short time
// ago, so that the sharder gives its Widgets to others at once, and it does not know that before it renews the Lease.
func (l *leases) overlaps(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.deleted.IsZero() && now.Sub(l.deleted) < renewDeadline+underWay
}

// leased checks that a process that writes has renewed its Lease a short time ago, and that the Lease was neither taken
// nor released since then. What was under way may arrive, but not after that: a Lease is released when nothing is under
// way any more, and taken when all that was has arrived.
//
// A Lease that somebody deletes is not one of these, see overlaps.
func leased(w simulation.Write, _ simulation.State) error {
	l := allLeases.In(context.Background())
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.Kind.Kind == "Lease" {
		l.note(w)
		return nil
	}
	// The one that works alone has no Lease of a shard.
	if !w.ByOperator() || w.Kind.Kind == "Event" || joinings.In(context.Background()).isAlone() {
		return nil
	}
	renewed, held := l.renewed[w.Actor]
	switch {
	case !held:
		return fmt.Errorf("the process of %s never held its Lease", w.Actor)
	case l.lost[w.Actor] != "":
		return fmt.Errorf("the Lease of %s %s", w.Actor, l.lost[w.Actor])
	case w.Time.Sub(renewed) > renewDeadline+underWay:
		return fmt.Errorf("%s renewed its Lease %v ago", w.Actor, w.Time.Sub(renewed))
	}
	return nil
}

// note takes down a write of a Lease.
func (l *leases) note(w simulation.Write) {
	if l.renewed == nil {
		l.renewed, l.lost = map[string]time.Time{}, map[string]string{}
	}
	lease := &coordinationv1.Lease{}
	if !w.After(lease) {
		if l.lost[w.Name] == "" {
			l.deleted = w.Time
		}
		return
	}
	switch holder := ptr.Deref(lease.Spec.HolderIdentity, ""); {
	case holder == w.Name && w.Actor == w.Name:
		l.renewed[w.Name] = w.Time
		delete(l.lost, w.Name)
	case holder == "":
		l.lost[w.Name] = "was released"
	case holder != w.Name:
		l.lost[w.Name] = "was taken by " + holder
	}
}
