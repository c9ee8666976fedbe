package fidelity

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

var namespaceChecks = []check{
	{"namespace: created", func(p *probe) {
		now := p.read(namespace(p.namespace))
		p.note("spec %s", at(now, "spec"))
		p.note("status %s", at(now, "status"))
		p.note("labels %s", at(now, "metadata", "labels"))
		p.note("finalizers %s", at(now, "metadata", "finalizers"))
	}},
	{"namespace: deleted while empty", func(p *probe) {
		ns := namespace(p.namespace)
		p.call("delete", p.remove(ns))
		now := p.read(ns)
		p.note("terminating %t", now.GetDeletionTimestamp() != nil)
		p.note("phase %s", at(now, "status", "phase"))
		p.eventually("gone", func() bool { return p.gone(ns) })
	}},
	{"namespace: deleted with objects", func(p *probe) {
		p.given(p.configMap("a"))
		p.given(p.gadget("b", nil))
		p.must(p.remove(namespace(p.namespace)))
		p.exists("object", p.configMap("a"))
		p.eventually("objects gone", func() bool { return p.gone(p.configMap("a")) && p.gone(p.gadget("b", nil)) })
		p.eventually("namespace gone", func() bool { return p.gone(namespace(p.namespace)) })
	}},
	{"namespace: create in a terminating one", func(p *probe) {
		p.given(p.held("held"))
		p.must(p.remove(namespace(p.namespace)))
		p.call("ConfigMap", p.create(p.configMap("a")))
		p.call("Gadget", p.create(p.gadget("a", nil)))
		p.call("dry run", p.create(p.configMap("a"), client.DryRunAll))
		p.call("apply", p.applied(p.applicable("a", "1"), "one"))
		p.call("update", p.patch(p.configMap("held"), merge(`{"data":{"a":"2"}}`)))
		p.call("delete again", p.remove(namespace(p.namespace)))
	}},
	{"namespace: held by an object", func(p *probe) {
		p.given(p.held("held"))
		p.must(p.remove(namespace(p.namespace)))
		p.eventually("object terminating", func() bool {
			return p.read(p.configMap("held")).GetDeletionTimestamp() != nil
		})
		p.exists("namespace", namespace(p.namespace))
		p.release(p.configMap("held"))
		p.eventually("namespace gone", func() bool { return p.gone(namespace(p.namespace)) })
	}},
	{"namespace: held by a finalizer", func(p *probe) {
		p.given(p.configMap("a"))
		ns := namespace(p.namespace)
		p.must(p.patch(ns.DeepCopy(), merge(`{"metadata":{"finalizers":["`+finalizer+`"]}}`)))
		p.must(p.remove(ns))
		p.eventually("object gone", func() bool { return p.gone(p.configMap("a")) })
		p.eventually("emptied", func() bool { return at(p.read(ns), "spec") == "{}" })
		p.exists("namespace", ns)
		p.must(p.patch(ns.DeepCopy(), merge(`{"metadata":{"finalizers":null}}`)))
		p.eventually("namespace gone", func() bool { return p.gone(ns) })
	}},
	{"namespace: missing", func(p *probe) {
		cm := p.configMap("a")
		cm.Namespace = p.namespace + "-none"
		p.call("create", p.create(cm.DeepCopy()))
		p.call("dry run", p.create(cm.DeepCopy(), client.DryRunAll))
		p.call("get", p.get(cm.DeepCopy()))
		p.call("delete", p.remove(cm.DeepCopy()))
		u := p.applicable("a", "1")
		u.SetNamespace(cm.Namespace)
		p.call("apply", p.applied(u, "one"))
		p.call("list", p.List(p.ctx, &corev1.ConfigMapList{}, client.InNamespace(cm.Namespace)))
		g := p.gadget("a", nil)
		g.SetNamespace(cm.Namespace)
		p.call("custom resource", p.create(g))
	}},
	{"namespace: those of the system", func(p *probe) {
		for _, name := range []string{"default", "kube-system", "kube-public", "kube-node-lease"} {
			p.exists(name, namespace(name))
		}
		p.call("delete default", p.remove(namespace("default"), client.DryRunAll))
		p.call("delete kube-system", p.remove(namespace("kube-system"), client.DryRunAll))
		p.call("delete kube-node-lease", p.remove(namespace("kube-node-lease"), client.DryRunAll))
	}},
	{"namespace: delete of many", func(p *probe) {
		p.call("delete", p.DeleteAllOf(p.ctx, &corev1.Namespace{}, client.MatchingLabels{"no": "such"}))
	}},
	{"namespace: invalid name", func(p *probe) {
		p.call("dot", p.create(namespace("a.b"), client.DryRunAll))
		p.call("upper case", p.create(namespace("A"), client.DryRunAll))
	}},
}
