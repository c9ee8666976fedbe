package fidelity

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	seed   = flag.Uint64("seed", 1, "of the first random owners and dependents")
	rounds = flag.Uint64("rounds", 20, "how many times random owners and dependents are tried")
)

// TestRandomGarbage shows that the garbage collectors of a real control plane and of rows leave the same objects,
// of random owners and dependents, after each of some deletions.
func TestRandomGarbage(t *testing.T) {
	t.Parallel()
	server := realServer{plane.Config(t)}
	inRows := newRows(t)
	var wg sync.WaitGroup
	running := make(chan struct{}, 8)
	for round := *seed; round < *seed+*rounds; round++ {
		running <- struct{}{}
		wg.Go(func() {
			defer func() { <-running }()
			namespace := fmt.Sprintf("garbage%02d-%05d", runs.Add(1), round)
			var states []string
			run := func(newCluster func() (Cluster, error), reached func(p *probe) bool) string {
				c := check{"", func(p *probe) { randomGarbage(p, round, reached) }}
				return c.answer(t.Context(), newCluster, namespace)
			}
			answer := run(inRows, func(p *probe) bool {
				p.cluster.Eventually(p.ctx, func() bool { return true })
				states = append(states, p.garbage())
				return true
			})
			if answer != "" {
				t.Errorf("seed %d: rows: %s", round, answer)
				return
			}
			n := 0
			answer = run(func() (Cluster, error) { return server, nil }, func(p *probe) bool {
				want := states[n]
				if n++; eventuallyIs(p, want) {
					return true
				}
				p.note("after deletion %d: real %s; rows %s", n, p.garbage(), want)
				return false
			})
			if answer != "" {
				t.Errorf("seed %d: %s", round, answer)
			}
		})
	}
	wg.Wait()
}

// eventuallyIs waits until the objects are in a state, and stay so while garbage goes that came after it.
func eventuallyIs(p *probe, want string) bool {
	if !p.cluster.Eventually(p.ctx, func() bool { return p.garbage() == want }) {
		return false
	}
	later, owner := p.configMap("later"), p.configMap("later-owner")
	p.given(owner)
	owned(later, owner)
	p.given(later)
	p.must(p.remove(owner, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	return p.cluster.Eventually(p.ctx, func() bool { return p.gone(later) }) && p.garbage() == want
}

var policies = []metav1.DeletionPropagation{
	metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan,
}

// randomGarbage makes objects that own each other and deletes some of them. Reached is called after each deletion, and
// says whether to go on. All references block the deletion of the owner: what becomes of others depends on the time.
func randomGarbage(p *probe, seed uint64, reached func(p *probe) bool) {
	r := rand.New(rand.NewPCG(seed, 1))
	var objects []*corev1.ConfigMap
	for i := range 7 {
		cm := p.configMap(fmt.Sprintf("c%d", i))
		if r.IntN(5) == 0 {
			cm.Finalizers = []string{finalizer}
		}
		for owner := range objects {
			if r.IntN(3) == 0 {
				owned(cm, append(ownersOf(cm, objects), objects[owner])...)
			}
		}
		p.given(cm)
		objects = append(objects, cm)
	}
	for range 4 {
		target := objects[r.IntN(len(objects))]
		policy := policies[r.IntN(len(policies))]
		release := r.IntN(4) == 0
		switch now := p.configMap(target.Name); {
		case p.get(now) != nil:
		case release && slices.Contains(now.Finalizers, finalizer):
			p.must(p.patch(now, jsonPatch(`[{"op":"test","path":"/metadata/finalizers/0","value":"`+finalizer+
				`"},{"op":"remove","path":"/metadata/finalizers/0"}]`)))
		default:
			p.must(p.remove(now, client.PropagationPolicy(policy)))
		}
		if !reached(p) {
			return
		}
	}
}

// ownersOf returns the objects that own one.
func ownersOf(cm *corev1.ConfigMap, objects []*corev1.ConfigMap) (owners []*corev1.ConfigMap) {
	for _, ref := range cm.OwnerReferences {
		for _, owner := range objects {
			if owner.UID == ref.UID {
				owners = append(owners, owner)
			}
		}
	}
	return owners
}

// garbage renders what owns what, and what holds it.
func (p *probe) garbage() string {
	list := &corev1.ConfigMapList{}
	p.must(p.List(p.ctx, list, client.InNamespace(p.namespace)))
	var lines []string
	for _, item := range list.Items {
		if item.Name == "kube-root-ca.crt" {
			continue
		}
		line := item.Name
		if item.DeletionTimestamp != nil {
			line += " terminating"
			item.OwnerReferences = nil // Which of them are removed before the deletion depends on the time.
		}
		for _, ref := range item.OwnerReferences {
			line += " <" + ref.Name
		}
		if len(item.Finalizers) > 0 {
			line += fmt.Sprint(" ", item.Finalizers)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "; ")
}
