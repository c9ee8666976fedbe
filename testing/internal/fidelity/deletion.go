package fidelity

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var deletionChecks = []check{
	{"delete: without finalizers", func(p *probe) {
		p.given(p.configMap("a"))
		p.call("delete", p.remove(p.configMap("a")))
		p.exists("exists", p.configMap("a"))
		p.call("again", p.remove(p.configMap("a")))
	}},
	{"delete: with a finalizer", func(p *probe) {
		p.given(p.held("a"))
		p.call("delete", p.remove(p.configMap("a")))
		now := p.read(p.configMap("a"))
		p.note("terminating %t", now.GetDeletionTimestamp() != nil)
		p.note("grace period %s", at(now, "metadata", "deletionGracePeriodSeconds"))
	}},
	{"delete: raises the generation", func(p *probe) {
		g, d := p.gadget("a", nil), p.deployment("a")
		g.SetFinalizers([]string{finalizer})
		d.SetFinalizers([]string{finalizer})
		for _, obj := range []client.Object{g, d, p.held("a")} {
			p.given(obj)
			p.must(p.remove(obj))
			p.note("%T %d", obj, p.read(obj).GetGeneration())
		}
	}},
	{"delete: of a terminating object", func(p *probe) {
		p.given(p.held("a"))
		p.must(p.remove(p.configMap("a")))
		p.writes("delete", p.configMap("a"), func() error { return p.remove(p.configMap("a")) })
	}},
	{"delete: new finalizer on a terminating object", func(p *probe) {
		p.given(p.held("a"))
		p.must(p.remove(p.configMap("a")))
		now := p.read(p.configMap("a"))
		now.SetFinalizers([]string{finalizer, finalizer + "-more"})
		p.call("update", p.update(now))
		p.call("patch", p.patch(p.configMap("a"), merge(`{"metadata":{"finalizers":["example.com/a"]}}`)))
	}},
	{"delete: one finalizer of two is removed", func(p *probe) {
		two := p.held("a")
		two.Finalizers = append(two.Finalizers, finalizer+"-more")
		p.given(two)
		p.must(p.remove(p.configMap("a")))
		now := p.read(p.configMap("a"))
		now.SetFinalizers([]string{finalizer})
		p.call("update", p.update(now))
		p.exists("exists", now)
	}},
	{"delete: the last finalizer is removed by an update", func(p *probe) {
		p.given(p.held("a"))
		p.must(p.remove(p.configMap("a")))
		now := p.read(p.configMap("a"))
		now.SetFinalizers(nil)
		p.call("update", p.update(now))
		p.note("answered terminating %t", now.GetDeletionTimestamp() != nil)
		p.exists("exists", p.configMap("a"))
	}},
	{"delete: the last finalizer is removed by a patch", func(p *probe) {
		p.given(p.held("a"))
		p.must(p.remove(p.configMap("a")))
		p.call("patch", p.patch(p.configMap("a"), merge(`{"metadata":{"finalizers":null}}`)))
		p.exists("exists", p.configMap("a"))
		p.call("again", p.patch(p.configMap("a"), merge(`{"metadata":{"finalizers":null}}`)))
	}},
	{"delete: deletion time cleared by an update", func(p *probe) {
		p.given(p.held("a"))
		p.must(p.remove(p.configMap("a")))
		p.writes("update", p.configMap("a"), func() error {
			now := p.read(p.configMap("a"))
			now.SetDeletionTimestamp(nil)
			return p.update(now)
		})
		p.note("terminating %t", p.read(p.configMap("a")).GetDeletionTimestamp() != nil)
	}},
	{"delete: a terminating object is changed", func(p *probe) {
		g := p.gadget("a", nil)
		g.SetFinalizers([]string{finalizer})
		p.given(g)
		p.must(p.remove(g))
		now := p.read(g)
		now.SetLabels(map[string]string{"x": "y"})
		p.call("label", p.update(now))
		p.call("spec", p.patch(p.gadget("a", nil), merge(`{"spec":{"size":2}}`)))
		p.call("status", p.Status().Patch(p.ctx, p.gadget("a", nil), merge(`{"status":{"phase":"Done"}}`)))
		p.call("create", p.create(p.gadget("a", nil)))
	}},
	{"delete: preconditions", func(p *probe) {
		cm := p.configMap("a")
		p.given(cm)
		other, old := types.UID("other"), "1"
		p.call("other UID", p.remove(p.configMap("a"), client.Preconditions{UID: &other}))
		p.call("other version", p.remove(p.configMap("a"), client.Preconditions{ResourceVersion: &old}))
		p.call("right", p.remove(p.configMap("a"), client.Preconditions{
			UID: &cm.UID, ResourceVersion: &cm.ResourceVersion,
		}))
		p.call("gone", p.remove(p.configMap("a"), client.Preconditions{UID: &cm.UID}))
	}},
	{"delete: preconditions on a terminating object", func(p *probe) {
		p.given(p.held("a"))
		p.must(p.remove(p.configMap("a")))
		other, old := types.UID("other"), "1"
		p.call("other UID", p.remove(p.configMap("a"), client.Preconditions{UID: &other}))
		p.call("other version", p.remove(p.configMap("a"), client.Preconditions{ResourceVersion: &old}))
	}},
	{"delete: unknown propagation policy", func(p *probe) {
		p.given(p.configMap("a"))
		p.call("delete", p.remove(p.configMap("a"), client.PropagationPolicy("Sometimes")))
	}},
	{"delete: dry run", func(p *probe) {
		p.given(p.configMap("a"))
		p.given(p.held("b"))
		p.call("delete", p.remove(p.configMap("a"), client.DryRunAll))
		p.exists("exists", p.configMap("a"))
		p.call("held", p.remove(p.configMap("b"), client.DryRunAll))
		p.note("terminating %t", p.read(p.configMap("b")).GetDeletionTimestamp() != nil)
		p.call("missing", p.remove(p.configMap("c"), client.DryRunAll))
	}},
	{"delete: a Pod that no node has", func(p *probe) {
		p.given(p.pod("a"))
		p.call("delete", p.remove(p.pod("a")))
		p.exists("exists", p.pod("a"))
	}},
	{"delete: a Pod on a node", func(p *probe) {
		pod := p.pod("a")
		pod.Spec.NodeName = "node"
		p.given(pod)
		p.call("delete", p.remove(p.pod("a")))
		p.exists("exists", pod)
		p.note("grace period %s", at(p.read(pod), "metadata", "deletionGracePeriodSeconds"))
		p.call("at once", p.remove(p.pod("a"), client.GracePeriodSeconds(0)))
		p.exists("exists", pod)
	}},
	{"delete: collection by label", func(p *probe) {
		for _, name := range []string{"a", "b"} {
			cm := p.configMap(name)
			cm.Labels = map[string]string{"name": name}
			p.given(cm)
		}
		p.given(p.held("c"))
		in := client.InNamespace(p.namespace)
		p.call("delete", p.DeleteAllOf(p.ctx, &corev1.ConfigMap{}, in, client.MatchingLabels{"name": "a"}))
		p.note("left %s", p.names(&corev1.ConfigMapList{}))
		p.call("dry run", p.DeleteAllOf(p.ctx, &corev1.ConfigMap{}, in, client.DryRunAll))
		p.note("left %s", p.names(&corev1.ConfigMapList{}))
		p.call("all", p.DeleteAllOf(p.ctx, &corev1.ConfigMap{}, in))
		p.note("left %s", p.names(&corev1.ConfigMapList{}))
		p.call("none", p.DeleteAllOf(p.ctx, &corev1.ConfigMap{}, in, client.MatchingLabels{"name": "x"}))
	}},
	{"delete: collection by field", func(p *probe) {
		p.given(p.gadget("a", nil))
		p.given(p.gadget("b", fields{"color": "red"}))
		p.call("delete", p.DeleteAllOf(p.ctx, p.gadget("", nil), client.InNamespace(p.namespace),
			client.MatchingFields{"spec.color": "red"}))
		p.exists("a", p.gadget("a", nil))
		p.exists("b", p.gadget("b", nil))
	}},

	{"garbage: background", func(p *probe) {
		owner := p.configMap("owner")
		p.given(owner)
		p.given(owned(p.configMap("a"), owner))
		p.given(owned(p.gadget("b", nil), owner))
		p.call("delete", p.remove(owner))
		p.exists("owner", owner)
		p.eventually("dependents gone", func() bool { return p.gone(p.configMap("a")) && p.gone(p.gadget("b", nil)) })
	}},
	{"garbage: chain of owners", func(p *probe) {
		owner, middle := p.configMap("owner"), p.configMap("middle")
		p.given(owner)
		p.given(owned(middle, owner))
		p.given(owned(p.configMap("a"), middle))
		p.must(p.remove(owner))
		p.eventually("last gone", func() bool { return p.gone(p.configMap("a")) })
	}},
	{"garbage: dependent with a finalizer", func(p *probe) {
		owner := p.configMap("owner")
		p.given(owner)
		p.given(owned(p.held("a"), owner))
		p.must(p.remove(owner))
		p.eventually("terminating", func() bool {
			return p.read(p.configMap("a")).GetDeletionTimestamp() != nil
		})
	}},
	{"garbage: owner that never was", func(p *probe) {
		ghost := p.configMap("ghost")
		ghost.UID = "never"
		p.given(owned(p.configMap("a"), ghost))
		p.eventually("gone", func() bool { return p.gone(p.configMap("a")) })
	}},
	{"garbage: owner was recreated", func(p *probe) {
		owner := p.configMap("owner")
		p.given(owner)
		p.given(owned(p.configMap("a"), owner))
		p.must(p.remove(owner))
		p.given(p.configMap("owner"))
		p.eventually("gone", func() bool { return p.gone(p.configMap("a")) })
		p.exists("owner", p.configMap("owner"))
	}},
	{"garbage: one owner of two", func(p *probe) {
		one, two := p.configMap("one"), p.configMap("two")
		p.given(one)
		p.given(two)
		p.given(owned(p.configMap("a"), one, two))
		p.must(p.remove(one))
		p.eventually("reference removed", func() bool {
			return len(p.read(p.configMap("a")).GetOwnerReferences()) == 1
		})
		p.must(p.remove(two))
		p.eventually("gone", func() bool { return p.gone(p.configMap("a")) })
	}},
	{"garbage: foreground", func(p *probe) {
		owner := p.configMap("owner")
		p.given(owner)
		dependent := owned(p.held("a"), owner)
		p.given(dependent)
		p.call("delete", p.remove(owner.DeepCopy(), client.PropagationPolicy(metav1.DeletePropagationForeground)))
		p.note("finalizers %v", p.read(owner).GetFinalizers())
		p.eventually("dependent terminating", func() bool {
			return p.read(dependent).GetDeletionTimestamp() != nil
		})
		p.exists("owner", owner)
		p.release(dependent)
		p.eventually("owner gone", func() bool { return p.gone(owner) })
	}},
	{"garbage: foreground without dependents", func(p *probe) {
		p.given(p.held("a"))
		p.call("delete", p.remove(p.configMap("a"), client.PropagationPolicy(metav1.DeletePropagationForeground)))
		p.eventually("finalizer removed", func() bool {
			return len(p.read(p.configMap("a")).GetFinalizers()) == 1
		})
		p.release(p.configMap("a"))
		p.exists("exists", p.configMap("a"))
	}},
	{"garbage: foreground does not wait for those that do not block", func(p *probe) {
		owner := p.configMap("owner")
		p.given(owner)
		dependent := owned(p.held("a"), owner)
		refs := dependent.GetOwnerReferences()
		refs[0].BlockOwnerDeletion = nil
		dependent.SetOwnerReferences(refs)
		p.given(dependent)
		p.must(p.remove(owner.DeepCopy(), client.PropagationPolicy(metav1.DeletePropagationForeground)))
		p.eventually("owner gone", func() bool { return p.gone(owner) })
		p.eventually("dependent terminating", func() bool {
			return p.read(dependent).GetDeletionTimestamp() != nil
		})
	}},
	{"garbage: orphan", func(p *probe) {
		owner := p.configMap("owner")
		p.given(owner)
		p.given(owned(p.configMap("a"), owner))
		p.call("delete", p.remove(owner.DeepCopy(), client.PropagationPolicy(metav1.DeletePropagationOrphan)))
		p.eventually("owner gone", func() bool { return p.gone(owner) })
		p.exists("dependent", p.configMap("a"))
		p.note("owners %d", len(p.read(p.configMap("a")).GetOwnerReferences()))
	}},
	{"garbage: orphans before and behind their owner", func(p *probe) {
		owner := p.configMap("m")
		p.given(owner)
		for _, name := range []string{"a", "z"} {
			p.given(owned(p.configMap(name), owner))
			p.given(owned(p.gadget(name, nil), owner))
		}
		p.sweeps() // The collector may not have seen the dependents before.
		p.must(p.remove(owner.DeepCopy(), client.PropagationPolicy(metav1.DeletePropagationOrphan)))
		p.eventually("owner gone", func() bool { return p.gone(owner) })
		p.sweeps()
		p.note("left %s %s", p.names(&corev1.ConfigMapList{}), p.names(gadgetList()))
	}},
	{"garbage: orphan of a held owner", func(p *probe) {
		owner := p.held("owner")
		p.given(owner)
		p.must(p.remove(owner.DeepCopy(), client.PropagationPolicy(metav1.DeletePropagationOrphan)))
		p.eventually("finalizer removed", func() bool { return len(p.read(owner).GetFinalizers()) == 1 })
		p.note("finalizers %v", p.read(owner).GetFinalizers())
	}},
}

// owned makes the owners those of the object.
func owned(obj client.Object, owners ...*corev1.ConfigMap) client.Object {
	var refs []metav1.OwnerReference
	for _, owner := range owners {
		refs = append(refs, metav1.OwnerReference{
			APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, BlockOwnerDeletion: new(true),
		})
	}
	obj.SetOwnerReferences(refs)
	return obj
}
