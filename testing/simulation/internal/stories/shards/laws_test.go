package shards_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/internal/testenv/sharder"
	"github.com/espalier-dev/espalier/testing/simulation"
)

// The names of laws.
const (
	creationLaw  = "no child is created twice"
	deletionLaw  = "no child is deleted that is wanted"
	finalizerLaw = "no finalizer goes early"
	leaseLaw     = "a shard without its Lease writes nothing"
)

// laws hold at each write.
func laws() []simulation.Invariant {
	return []simulation.Invariant{
		{Name: creationLaw, Check: createdOnce},
		{Name: deletionLaw, Check: deletedUnwanted},
		{Name: finalizerLaw, Check: finalized},
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
	if w.Verb() != "create" || !slices.Contains(childKinds, w.Kind) || !w.After(made) {
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

// deletedUnwanted checks that the Widget of a child that the operator deletes does not want it.
func deletedUnwanted(w simulation.Write, s simulation.State) error {
	gone := &unstructured.Unstructured{}
	if w.Verb() != "delete" || !w.ByOperator() || !slices.Contains(childKinds, w.Kind) || !w.Before(gone) {
		return nil
	}
	var widgets resources.WidgetList
	s.List(&widgets)
	for i := range widgets.Items {
		widget := &widgets.Items[i]
		if string(widget.UID) == gone.GetLabels()[widgetLabel] && wants(widget, gone.GetLabels()[roleLabel]) {
			return fmt.Errorf("Widget %s wants it", widget.Name)
		}
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
		partsFinalizer:    func() bool { return hasChild(s, uid, "part-0") },
		accountsFinalizer: func() bool { return hasChild(s, uid, "account") },
	}
	for _, finalizer := range before.Finalizers {
		if guards := left[finalizer]; guards != nil && !slices.Contains(after.Finalizers, finalizer) && guards() {
			return fmt.Errorf("%s is taken off, and what it guards is there", finalizer)
		}
	}
	return nil
}

func hasChild(s simulation.State, uid, role string) bool {
	return slices.ContainsFunc(children(s, uid), func(child client.Object) bool {
		return child.GetLabels()[roleLabel] == role
	})
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
	// renewed is when the shard wrote its Lease last, and lost when the sharder took it or the shard released it.
	renewed, lost map[string]time.Time
}

var allLeases simulation.External[leases]

// leased checks that a process that writes has renewed its Lease a short time ago, and that the Lease was neither taken
// nor released since then. What was under way may arrive.
func leased(w simulation.Write, _ simulation.State) error {
	l := allLeases.In(context.Background())
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.Kind.Kind == "Lease" {
		l.note(w)
		return nil
	}
	if !w.ByOperator() || w.Kind.Kind == "Event" {
		return nil
	}
	renewed, lost := l.renewed[w.Actor], l.lost[w.Actor]
	switch {
	case renewed.IsZero():
		return fmt.Errorf("%s never held its Lease", w.Actor)
	case w.Time.Sub(renewed) > renewDeadline+underWay:
		return fmt.Errorf("%s renewed its Lease %v ago", w.Actor, w.Time.Sub(renewed))
	case lost.After(renewed) && w.Time.Sub(lost) > underWay:
		return fmt.Errorf("%s lost its Lease %v ago", w.Actor, w.Time.Sub(lost))
	}
	return nil
}

// note takes down a write of a Lease.
func (l *leases) note(w simulation.Write) {
	if l.renewed == nil {
		l.renewed, l.lost = map[string]time.Time{}, map[string]time.Time{}
	}
	lease := &coordinationv1.Lease{}
	if !w.After(lease) {
		return
	}
	switch holder := *lease.Spec.HolderIdentity; {
	case holder == w.Name && w.Actor == w.Name:
		l.renewed[w.Name] = w.Time
	case holder == sharder.Identity && w.Actor == "sharder":
		l.lost[w.Name] = w.Time
	case holder == "":
		// What was under way has ended.
		l.lost[w.Name] = w.Time.Add(-underWay)
		l.renewed[w.Name] = l.lost[w.Name].Add(-1)
	}
}
