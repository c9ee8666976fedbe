package fidelity_test

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

	{"definition: created", func(p *probe) {
		d := p.ownDefinition()
		p.call("create", p.create(d))
		p.note("names %s", at(d, "spec", "names"))
		p.note("conversion %s", at(d, "spec", "conversion"))
		p.serves(d)
		now := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: d.Name}}
		p.must(p.get(now))
		for _, condition := range now.Status.Conditions {
			p.note("%s %s %s", condition.Type, condition.Status, condition.Reason)
		}
		p.note("stored %v", now.Status.StoredVersions)
		p.note("accepted %s", at(now, "status", "acceptedNames"))
		p.note("generation %d", now.Generation)
	}},
	{"definition: deleted with instances", func(p *probe) {
		d := p.ownDefinition()
		p.given(d)
		p.serves(d)
		held := p.instance(d, "held")
		held.SetFinalizers([]string{finalizer})
		p.given(held)
		p.given(p.instance(d, "a"))
		p.call("delete", p.remove(d.DeepCopy()))
		now := p.read(d)
		p.note("terminating %t", now.GetDeletionTimestamp() != nil)
		p.note("finalizers %v", now.GetFinalizers())
		p.eventually("instance gone", func() bool { return p.gone(p.instance(d, "a")) })
		p.eventually("condition", func() bool { return condition(p.read(d), "Terminating") == "True" })
		p.note("held terminating %t", p.read(held).GetDeletionTimestamp() != nil)
		p.call("create", p.create(p.instance(d, "b")))
		p.release(held)
		p.eventually("definition gone", func() bool { return p.gone(d) })
	}},
	{"definition: kind of a deleted one", func(p *probe) {
		d := p.ownDefinition()
		p.given(d)
		p.serves(d)
		p.given(p.instance(d, "a"))
		p.must(p.remove(d.DeepCopy()))
		p.eventually("definition gone", func() bool { return p.gone(d) })
		p.eventually("no match", func() bool {
			p.reconnect()
			return verdict(p.get(p.instance(d, "a"))) == "NoMatch"
		})
	}},
	{"definition: recreated", func(p *probe) {
		d := p.ownDefinition()
		p.given(d)
		p.serves(d)
		p.given(p.instance(d, "a"))
		p.must(p.remove(d.DeepCopy()))
		p.eventually("definition gone", func() bool { return p.gone(d) })
		again := p.ownDefinition()
		p.call("create", p.create(again))
		p.serves(again)
		p.exists("instance", p.instance(d, "a"))
		p.note("other UID %t", again.UID != d.UID)
	}},
	{"definition: invalid", func(p *probe) {
		d := p.ownDefinition()
		d.Spec.Versions[0].Schema = nil
		p.call("no schema", p.create(d, client.DryRunAll))
		d = p.ownDefinition()
		d.Spec.Names.Plural = "others"
		p.call("other plural", p.create(d, client.DryRunAll))
		d = p.ownDefinition()
		d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties = map[string]apiextensionsv1.JSONSchemaProps{"spec": {}}
		p.call("not structural", p.create(d, client.DryRunAll))
		d = p.ownDefinition()
		d.Spec.Versions[0].Storage = false
		p.call("no storage version", p.create(d, client.DryRunAll))
		d = p.ownDefinition()
		d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties = map[string]apiextensionsv1.JSONSchemaProps{
			"spec": {Type: "object", XValidations: apiextensionsv1.ValidationRules{{Rule: "self.nothing =="}}},
		}
		p.call("rule", p.create(d, client.DryRunAll))
	}},
	{"definition: what does not change", func(p *probe) {
		d := p.ownDefinition()
		p.given(d)
		p.serves(d)
		p.call("scope", p.patch(d.DeepCopy(), merge(`{"spec":{"scope":"Cluster"}}`)))
		p.call("kind", p.patch(d.DeepCopy(), merge(`{"spec":{"names":{"kind":"Other"}}}`)))
		p.call("group", p.patch(d.DeepCopy(), merge(`{"spec":{"group":"other.example.com"}}`)))
	}},
	{"definition: stricter than what is stored", func(p *probe) {
		d := p.ownDefinition()
		p.given(d)
		p.serves(d)
		long := p.instance(d, "a")
		long.Object["word"], long.Object["other"] = "much too long", "x"
		p.given(long)
		now := &apiextensionsv1.CustomResourceDefinition{}
		p.must(p.Get(p.ctx, client.ObjectKeyFromObject(d), now))
		now.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties = map[string]apiextensionsv1.JSONSchemaProps{
			"word": {Type: "string", MaxLength: new(int64(4))},
		}
		p.must(p.update(now))
		another := p.instance(d, "b")
		another.Object["word"] = "much too long"
		p.eventually("refused", func() bool {
			return verdict(p.create(another.DeepCopy(), client.DryRunAll)) == "Invalid word"
		})
		p.call("other field", p.patch(long.DeepCopy(), merge(`{"other":"y"}`)))
		p.call("field itself", p.patch(long.DeepCopy(), merge(`{"word":"also too long"}`)))
		p.call("mended", p.patch(long.DeepCopy(), merge(`{"word":"ok"}`)))
		p.call("back", p.patch(long.DeepCopy(), merge(`{"word":"much too long"}`)))
	}},
}

// ownDefinition returns the definition of a kind that only this check has.
func (p *probe) ownDefinition() *apiextensionsv1.CustomResourceDefinition {
	return definition(p.namespace)
}

// instance returns an object of a kind that [probe.ownDefinition] defines.
func (p *probe) instance(_ *apiextensionsv1.CustomResourceDefinition, name string) *unstructured.Unstructured {
	return custom(p.namespace, "v1", p.namespace, name, nil)
}

// serves waits until instances of a definition can be made.
func (p *probe) serves(d *apiextensionsv1.CustomResourceDefinition) {
	p.eventually("served", func() bool {
		p.reconnect()
		return p.create(p.instance(d, "probe"), client.DryRunAll) == nil
	})
}

// condition returns the status of a condition of a definition.
func condition(obj client.Object, conditionType string) string {
	d := obj.(*apiextensionsv1.CustomResourceDefinition)
	for _, condition := range d.Status.Conditions {
		if string(condition.Type) == conditionType {
			return string(condition.Status)
		}
	}
	return ""
}
