package fidelity

import (
	"bytes"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// applicable returns a ConfigMap to be applied.
func (p *probe) applicable(name, value string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: fields{"data": fields{"a": value}}}
	u.SetGroupVersionKind(kind("", "v1", "ConfigMap"))
	u.SetNamespace(p.namespace)
	u.SetName(name)
	return u
}

// applied applies an object as a field manager. The answer is in the object.
func (p *probe) applied(u *unstructured.Unstructured, manager string, opts ...client.ApplyOption) error {
	opts = append(opts, client.FieldOwner(manager))
	return p.Apply(p.ctx, client.ApplyConfigurationFromUnstructured(u), opts...)
}

// item returns a Gadget to be applied, with one item and without the size.
func (p *probe) item(name, value string) *unstructured.Unstructured {
	return custom("gadget", "v1", p.namespace, "a", fields{
		"size": int64(1), "items": []any{fields{"name": name, "value": value}},
	})
}

// managers renders the managed fields of an object.
func (p *probe) managers(obj client.Object) string {
	var managers []string
	for _, entry := range p.read(obj).GetManagedFields() {
		set := &fieldpath.Set{}
		p.must(set.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())))
		var paths []string
		set.Iterate(func(path fieldpath.Path) { paths = append(paths, path.String()) })
		slices.Sort(paths)
		managers = append(managers, strings.Join(append(
			[]string{entry.Manager, string(entry.Operation), entry.APIVersion, entry.Subresource}, paths...), " "))
	}
	slices.Sort(managers)
	return strings.Join(managers, " | ")
}

var applyChecks = []check{
	{"apply: creates", func(p *probe) {
		u := p.applicable("a", "1")
		p.call("apply", p.applied(u, "one"))
		p.note("UID %t, version %t, data %s", u.GetUID() != "", u.GetResourceVersion() != "", at(u, "data"))
		p.note("%s", p.managers(u))
		g := p.item("x", "1")
		p.call("Gadget", p.applied(g, "one"))
		p.note("%s generation %d", at(g, "spec"), g.GetGeneration())
		p.note("%s", p.managers(g))
	}},
	{"apply: typed", func(p *probe) {
		cm := corev1ac.ConfigMap("a", p.namespace).WithData(map[string]string{"a": "1"})
		p.call("apply", p.Apply(p.ctx, cm, client.FieldOwner("one")))
		p.note("UID %t", cm.UID != nil)
		p.note("data %s", at(p.read(p.configMap("a")), "data"))
	}},
	{"apply: that changes nothing", func(p *probe) {
		p.must(p.applied(p.applicable("a", "1"), "one"))
		p.writes("again", p.configMap("a"), func() error { return p.applied(p.applicable("a", "1"), "one") })
		p.writes("by another", p.configMap("a"), func() error { return p.applied(p.applicable("a", "1"), "two") })
		p.writes("by another again", p.configMap("a"), func() error { return p.applied(p.applicable("a", "1"), "two") })
		p.must(p.applied(p.item("x", "1"), "one"))
		p.writes("Gadget", p.gadget("a", nil), func() error { return p.applied(p.item("x", "1"), "one") })
	}},
	{"apply: conflict", func(p *probe) {
		p.must(p.applied(p.applicable("a", "1"), "one"))
		p.call("other value", p.applied(p.applicable("a", "2"), "two"))
		p.call("same value", p.applied(p.applicable("a", "1"), "two"))
		p.call("first manager", p.applied(p.applicable("a", "3"), "one"))
		p.note("%s", at(p.read(p.configMap("a")), "data"))
	}},
	{"apply: force", func(p *probe) {
		p.must(p.applied(p.applicable("a", "1"), "one"))
		p.call("apply", p.applied(p.applicable("a", "2"), "two", client.ForceOwnership))
		p.note("%s", at(p.read(p.configMap("a")), "data"))
		p.note("%s", p.managers(p.configMap("a")))
		p.call("first manager", p.applied(p.applicable("a", "1"), "one"))
	}},
	{"apply: conflict with an update", func(p *probe) {
		p.must(p.create(p.configMap("a"), client.FieldOwner("creator")))
		p.call("same value", p.applied(p.applicable("a", "1"), "one"))
		p.must(p.patch(p.configMap("a"), merge(`{"data":{"a":"2"}}`), client.FieldOwner("patcher")))
		p.call("other value", p.applied(p.applicable("a", "1"), "one"))
		p.note("%s", p.managers(p.configMap("a")))
	}},
	{"apply: what is no longer applied", func(p *probe) {
		two := p.applicable("a", "1")
		two.Object["data"].(fields)["b"] = "2"
		p.must(p.applied(two, "one"))
		p.must(p.patch(p.configMap("a"), merge(`{"data":{"c":"3"}}`), client.FieldOwner("patcher")))
		p.call("apply", p.applied(p.applicable("a", "1"), "one"))
		p.note("%s", at(p.read(p.configMap("a")), "data"))
		empty := p.applicable("a", "1")
		delete(empty.Object, "data")
		p.call("nothing", p.applied(empty, "one"))
		p.note("%s", at(p.read(p.configMap("a")), "data"))
		p.note("%s", p.managers(p.configMap("a")))
	}},
	{"apply: what another also owns stays", func(p *probe) {
		p.must(p.applied(p.applicable("a", "1"), "one"))
		p.must(p.applied(p.applicable("a", "1"), "two"))
		empty := p.applicable("a", "1")
		delete(empty.Object, "data")
		p.call("nothing", p.applied(empty, "one"))
		p.note("%s", at(p.read(p.configMap("a")), "data"))
	}},
	{"apply: items of a list by two managers", func(p *probe) {
		p.must(p.applied(p.item("x", "1"), "one"))
		p.call("second", p.applied(p.item("y", "2"), "two"))
		p.note("%s", at(p.read(p.gadget("a", nil)), "spec", "items"))
		p.call("conflict", p.applied(p.item("x", "3"), "two"))
		p.call("renamed", p.applied(p.item("z", "1"), "one"))
		p.note("%s", at(p.read(p.gadget("a", nil)), "spec", "items"))
		p.note("%s", p.managers(p.gadget("a", nil)))
	}},
	{"apply: sets and plain lists", func(p *probe) {
		one := custom("gadget", "v1", p.namespace, "a", fields{
			"size": int64(1), "tags": []any{"x"}, "plain": []any{"x"},
		})
		p.must(p.applied(one, "one"))
		p.call("set", p.applied(custom("gadget", "v1", p.namespace, "a", fields{"tags": []any{"y"}}), "two"))
		p.call("list", p.applied(custom("gadget", "v1", p.namespace, "a", fields{"plain": []any{"y"}}), "two"))
		now := p.read(one)
		p.note("%s %s", at(now, "spec", "tags"), at(now, "spec", "plain"))
	}},
	{"apply: containers of a Deployment", func(p *probe) {
		p.must(p.create(p.deployment("a"), client.FieldOwner("creator")))
		p.call("apply", p.applied(p.containers("more"), "one"))
		d := p.deployment("a")
		p.must(p.get(d))
		p.note("%s", containerImages(d.Spec.Template.Spec))
		p.writes("again", d, func() error { return p.applied(p.containers("more"), "one") })
		p.call("other", p.applied(p.containers("other"), "one"))
		d = p.deployment("a")
		p.must(p.get(d))
		p.note("%s", containerImages(d.Spec.Template.Spec))
		p.note("%s", p.managers(d))
	}},
	{"apply: owner references and finalizers of two managers", func(p *probe) {
		for _, manager := range []string{"one", "two"} {
			owner := p.configMap(manager + "-owner")
			p.given(owner)
			u := p.applicable("a", "1")
			delete(u.Object, "data")
			owned(u, owner)
			u.SetFinalizers([]string{finalizer + "-" + manager})
			p.call(manager, p.applied(u, manager))
		}
		now := p.read(p.configMap("a"))
		p.note("owners %d finalizers %v", len(now.GetOwnerReferences()), now.GetFinalizers())
		u := p.applicable("a", "1")
		p.call("given up", p.applied(u, "one"))
		now = p.read(p.configMap("a"))
		p.note("owners %d finalizers %v", len(now.GetOwnerReferences()), now.GetFinalizers())
	}},
	{"apply: with the UID of a dead object", func(p *probe) {
		cm := p.configMap("a")
		p.given(cm)
		p.must(p.remove(cm.DeepCopy()))
		u := p.applicable("a", "1")
		u.SetUID(cm.UID)
		p.call("missing", p.applied(u.DeepCopy(), "one"))
		p.exists("exists", cm)
		p.given(p.configMap("a"))
		p.call("recreated", p.applied(u.DeepCopy(), "one"))
		u.SetUID(p.read(cm).GetUID())
		p.call("right", p.applied(u, "one"))
	}},
	{"apply: with a resource version", func(p *probe) {
		u := p.applicable("a", "1")
		u.SetResourceVersion("1")
		p.call("missing", p.applied(u.DeepCopy(), "one"))
		p.must(client.IgnoreNotFound(p.remove(p.configMap("a"))))
		p.given(p.configMap("a"))
		p.call("old", p.applied(u.DeepCopy(), "one"))
		u.SetResourceVersion(p.read(u).GetResourceVersion())
		p.call("right", p.applied(u, "one"))
	}},
	{"apply: what may not be sent", func(p *probe) {
		u := p.applicable("a", "1")
		u.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "one", Operation: "Apply"}})
		p.call("managed fields", p.applied(u, "one"))
		p.call("no manager", p.Apply(p.ctx, client.ApplyConfigurationFromUnstructured(p.applicable("a", "1"))))
		u = p.applicable("", "1")
		u.SetGenerateName("made-")
		p.call("no name", p.applied(u, "one"))
		u = p.applicable("a", "1")
		u.Object["unknown"] = "x"
		p.call("unknown field", p.applied(u, "one"))
		g := p.item("x", "1")
		g.Object["spec"].(fields)["unknown"] = "x"
		p.call("unknown field of a Gadget", p.applied(g, "one"))
		g = p.item("x", "1")
		g.Object["spec"].(fields)["size"] = int64(-1)
		p.call("invalid", p.applied(g, "one"))
		g = p.item("x", "1")
		g.Object["spec"].(fields)["items"] = []any{fields{"name": "x"}, fields{"name": "x"}}
		p.call("duplicates", p.applied(g, "one"))
		u = p.applicable("a", "1")
		u.Object["data"] = "text"
		p.call("wrong type", p.applied(u, "one"))
	}},
	{"apply: status", func(p *probe) {
		p.must(p.applied(p.item("x", "1"), "one"))
		g := custom("gadget", "v1", p.namespace, "a", nil)
		g.Object["status"] = fields{"phase": "Done"}
		p.call("main", p.applied(g.DeepCopy(), "two"))
		p.note("%s", at(p.read(g), "status"))
		status := client.ApplyConfigurationFromUnstructured(g.DeepCopy())
		p.call("status", p.Status().Apply(p.ctx, status, client.FieldOwner("two")))
		p.note("%s", at(p.read(g), "status"))
		p.writes("again", g, func() error {
			status := client.ApplyConfigurationFromUnstructured(g.DeepCopy())
			return p.Status().Apply(p.ctx, status, client.FieldOwner("two"))
		})
		p.note("%s", p.managers(g))
		missing := custom("gadget", "v1", p.namespace, "b", nil)
		missing.Object["status"] = fields{"phase": "Done"}
		status = client.ApplyConfigurationFromUnstructured(missing)
		p.call("missing", p.Status().Apply(p.ctx, status, client.FieldOwner("two")))
	}},
	{"apply: in another version", func(p *probe) {
		p.must(p.applied(p.item("x", "1"), "one"))
		beta := p.item("y", "2")
		beta.SetAPIVersion(group + "/v1beta1")
		p.call("apply", p.applied(beta, "one"))
		p.note("%s", at(p.read(p.gadget("a", nil)), "spec", "items"))
		p.note("%s", p.managers(p.gadget("a", nil)))
	}},
	{"apply: dry run", func(p *probe) {
		u := p.applicable("a", "1")
		p.call("create", p.applied(u, "one", client.DryRunAll))
		p.exists("exists", u)
		p.given(p.configMap("a"))
		u = p.applicable("a", "2")
		p.call("change", p.applied(u, "one", client.ForceOwnership, client.DryRunAll))
		p.note("answered %s, stored %s", at(u, "data"), at(p.read(u), "data"))
	}},
	{"apply: as a patch", func(p *probe) {
		cm := p.configMap("a")
		cm.SetGroupVersionKind(kind("", "v1", "ConfigMap"))
		//lint:ignore SA1019 many operators still use it
		p.call("apply", p.patch(cm, client.Apply, client.FieldOwner("one"), client.ForceOwnership))
		p.note("UID %t", cm.UID != "")
		p.note("%s", p.managers(cm))
	}},
	{"apply: to a terminating object", func(p *probe) {
		p.given(p.held("a"))
		p.must(p.remove(p.configMap("a")))
		p.call("apply", p.applied(p.applicable("a", "1"), "one"))
		u := p.applicable("a", "1")
		u.SetFinalizers([]string{"example.com/more"})
		p.call("finalizer", p.applied(u, "one"))
	}},

	{"managed fields: of create, update and patch", func(p *probe) {
		cm := p.configMap("a")
		p.must(p.create(cm, client.FieldOwner("creator")))
		p.note("created %s", p.managers(cm))
		cm.Data["b"] = "2"
		p.must(p.update(cm, client.FieldOwner("updater")))
		p.note("updated %s", p.managers(cm))
		p.must(p.patch(cm, merge(`{"data":{"a":"3"}}`), client.FieldOwner("creator")))
		p.must(p.patch(cm, merge(`{"data":{"b":"3"}}`), client.FieldOwner("patcher")))
		p.note("patched %s", p.managers(cm))
	}},
	{"managed fields: of status", func(p *probe) {
		g := p.gadget("a", nil)
		p.must(p.create(g, client.FieldOwner("creator")))
		g.Object["status"] = fields{"phase": "Done"}
		p.must(p.updateStatus(g, client.FieldOwner("creator")))
		p.note("%s", p.managers(g))
	}},
	{"managed fields: reset", func(p *probe) {
		cm := p.configMap("a")
		p.must(p.create(cm, client.FieldOwner("creator")))
		p.call("none sent", p.patch(cm.DeepCopy(), merge(`{"metadata":{"managedFields":null}}`),
			client.FieldOwner("patcher")))
		p.note("%s", p.managers(cm))
		p.call("empty entry", p.patch(cm.DeepCopy(), merge(`{"metadata":{"managedFields":[{}]}}`),
			client.FieldOwner("patcher")))
		p.note("%s", p.managers(cm))
	}},
	{"apply: to an object without managed fields", func(p *probe) {
		for _, subresource := range []string{"", "status"} {
			g := p.gadget("a"+subresource, nil)
			g.SetLabels(map[string]string{"x": "y"})
			p.given(g)
			g.Object["status"] = fields{"phase": "Done", "replicas": int64(1)}
			p.must(p.updateStatus(g))
			p.must(p.patch(g, merge(`{"metadata":{"managedFields":[{}]}}`)))
			u := custom("gadget", "v1", p.namespace, g.GetName(), fields{"size": int64(2)})
			u.Object["status"] = fields{"phase": "Pending"}
			config := client.ApplyConfigurationFromUnstructured(u)
			if subresource == "" {
				p.call("apply", p.Apply(p.ctx, config, client.FieldOwner("one"), client.ForceOwnership))
			} else {
				p.call("status", p.Status().Apply(p.ctx, config, client.FieldOwner("one"), client.ForceOwnership))
			}
			p.note("%s", p.managers(g))
		}
	}},
	{"managed fields: sent by an update", func(p *probe) {
		cm := p.configMap("a")
		p.must(p.create(cm, client.FieldOwner("creator")))
		sent := p.read(cm).(*corev1.ConfigMap)
		for i := range sent.ManagedFields {
			sent.ManagedFields[i].Manager = "renamed"
		}
		p.call("update", p.update(sent, client.FieldOwner("updater")))
		p.note("%s", p.managers(cm))
	}},
	{"managed fields: invalid manager", func(p *probe) {
		p.call("long", p.create(p.configMap("a"), client.FieldOwner(strings.Repeat("x", 129))))
		p.call("unprintable", p.create(p.configMap("a"), client.FieldOwner("a\x01")))
	}},
}

// containers returns a Deployment to be applied, of one container.
func (p *probe) containers(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: fields{"spec": fields{"template": fields{"spec": fields{
		"containers": []any{fields{"name": name, "image": "x"}},
	}}}}}
	u.SetGroupVersionKind(kind("apps", "v1", "Deployment"))
	u.SetNamespace(p.namespace)
	u.SetName("a")
	return u
}
