package reconcilers_test

import (
	"context"
	"slices"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"

	corev1 "k8s.io/api/core/v1"
)

// A cache that lags behind our own writes must not make a set create its children twice, delete them again, or take two of
// its own for duplicates.
func TestStaleCacheDoesNotConfuseAChildSet(t *testing.T) {
	ids := []string{"a", "b"}
	set := func(calls *trace) widgetNode {
		node := reflectingSet(calls)
		node.DesiredChildren = func(_ context.Context, _ *resources.Widget) ([]*corev1.ConfigMap, error) {
			var desired []*corev1.ConfigMap
			for _, id := range ids {
				child := part(id)
				child.OwnerReferences, child.Name, child.GenerateName = nil, "", "gadget-"
				desired = append(desired, child)
			}
			return desired, nil
		}
		return node
	}
	cluster := newStaleCluster(t, set)
	cluster.reconcile("first", "create ConfigMap", "create ConfigMap")
	cluster.reconcile("the cache lags")
	ids = []string{"b", "c"}
	cluster.reconcile("desired otherwise, while the cache lags", "delete ConfigMap", "create ConfigMap")
	cluster.reconcile("the cache lags again")
	cluster.catchUp(t)
	cluster.reconcile("the cache caught up")

	var there []string
	for _, child := range cluster.children() {
		there = append(there, child.Labels[setLabel])
	}
	slices.Sort(there)
	if !slices.Equal(there, ids) {
		t.Errorf("there are the children %v, want %v", there, ids)
	}
}
