package fidelity

import (
	"encoding/json"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
)

// definitionChecks are about definitions, the kinds that are served, and the handler that each definition has.
var definitionChecks = []check{
	// Names that are accepted, and instances of a definition that is deleted or changed.
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
	{"definition: schema that changes under what is stored", func(p *probe) {
		d := p.ownDefinition()
		p.given(d)
		p.serves(d)
		old := p.instance(d, "a")
		old.Object["word"], old.Object["dropped"] = "long", "x"
		old.SetFinalizers([]string{finalizer})
		p.given(old)
		p.evolves(d, `{"type":"object","required":["needed"],"properties":{"word":{"type":"string","maxLength":2},`+
			`"needed":{"type":"string"},"added":{"type":"string","default":"y"}}}`)
		now := p.read(old)
		p.note("word %s dropped %s added %s", at(now, "word"), at(now, "dropped"), at(now, "added"))
		p.note("same version %t", now.GetResourceVersion() == old.GetResourceVersion())
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind(group, "v1", kindOf(p.namespace)+"List"))
		p.note("listed %s", p.names(list))
		p.call("label", p.patch(old.DeepCopy(), merge(`{"metadata":{"labels":{"x":"y"}}}`)))
		p.call("needed", p.patch(old.DeepCopy(), merge(`{"needed":"z"}`)))
		p.call("needed again", p.patch(old.DeepCopy(), merge(`{"needed":null}`)))
		p.must(p.remove(old.DeepCopy()))
		p.call("finalizer", p.patch(old.DeepCopy(), merge(`{"metadata":{"finalizers":null}}`)))
		p.exists("exists", old)
	}},
	{"definition: kind of another", func(p *probe) {
		d := p.ownDefinition()
		p.given(d)
		p.serves(d)
		p.given(p.instance(d, "a"))
		second := definition("x" + p.namespace)
		second.Spec.Names.Kind = d.Spec.Names.Kind
		p.call("create", p.create(second))
		p.eventually("refused", func() bool { return condition(p.read(second), "NamesAccepted") == "False" })
		p.conditions(second)
		p.reconnect()
		p.call("first", p.get(p.instance(d, "a")))
		mapping, err := p.RESTMapper().RESTMapping(kind(group, "v1", kindOf(p.namespace)).GroupKind(), "v1")
		p.must(err)
		p.note("%s", mapping.Resource.Resource)
		p.must(p.remove(second.DeepCopy()))
		p.eventually("second gone", func() bool { return p.gone(second) })
		p.call("first", p.get(p.instance(d, "a")))
	}},
	{"definition: plural of another", func(p *probe) {
		d := p.ownDefinition()
		d.Spec.Names.ShortNames = []string{p.namespace + "z"}
		p.given(d)
		p.serves(d)
		second := definition(p.namespace)
		second.Name, second.Spec.Names.Plural = p.namespace+"z."+group, p.namespace+"z"
		second.Spec.Names.Kind, second.Spec.Names.Singular = "X"+p.namespace, "x"+p.namespace
		p.call("create", p.create(second))
		p.eventually("refused", func() bool { return condition(p.read(second), "NamesAccepted") == "False" })
		p.conditions(second)
		p.reconnect()
		other := custom("x"+p.namespace, "v1", p.namespace, "a", nil)
		p.call("create", p.create(other.DeepCopy()))
		p.must(p.remove(d.DeepCopy()))
		p.eventually("first gone", func() bool { return p.gone(d) })
		p.eventually("accepted", func() bool { return condition(p.read(second), "Established") == "True" })
		p.conditions(second)
		p.eventually("served", func() bool {
			p.reconnect()
			return p.create(other.DeepCopy(), client.DryRunAll) == nil
		})
	}},

	// Kinds and versions that are served.
	{"kind: without a definition", func(p *probe) {
		u := custom("nothing", "v1", p.namespace, "a", nil)
		p.call("get", p.get(u.DeepCopy()))
		p.call("create", p.create(u.DeepCopy()))
		p.call("update", p.update(u.DeepCopy()))
		p.call("delete", p.remove(u.DeepCopy()))
		p.call("patch", p.patch(u.DeepCopy(), merge(`{}`)))
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind(group, "v1", "NothingList"))
		p.call("list", p.List(p.ctx, list))
		u.SetGroupVersionKind(kind("nowhere.example.com", "v1", "Nothing"))
		p.call("other group", p.get(u))
	}},
	{"kind: Go type without a definition", func(p *probe) {
		a := resources.NewAssembly(p.namespace, "a")
		p.call("get", p.get(a))
		p.call("create", p.create(a))
		p.call("list", p.List(p.ctx, &resources.AssemblyList{}))
	}},
	{"kind: mapping", func(p *probe) {
		for _, gvk := range []struct{ group, version, kind string }{
			{"", "v1", "ConfigMap"}, {"apps", "v1", "Deployment"}, {"networking.k8s.io", "v1", "Ingress"},
			{"", "v1", "Endpoints"}, {"rbac.authorization.k8s.io", "v1", "ClusterRole"}, {group, "v1", "Room"},
			{group, "v1beta1", "Gadget"}, {group, "v1alpha1", "Gadget"}, {group, "v1", "Nothing"},
			{"apps", "v1beta1", "Deployment"},
		} {
			k := kind(gvk.group, gvk.version, gvk.kind)
			mapping, err := p.RESTMapper().RESTMapping(k.GroupKind(), k.Version)
			if !p.call(k.Kind+" "+k.Version, err) {
				continue
			}
			p.note("%s %s", mapping.Resource.Resource, mapping.Scope.Name())
		}
	}},
	{"kind: other served version", func(p *probe) {
		p.given(p.gadget("a", fields{"color": "red"}))
		beta := custom("gadget", "v1beta1", p.namespace, "a", nil)
		p.call("get", p.get(beta))
		p.note("%s %s", beta.GetAPIVersion(), at(beta, "spec"))
		beta = custom("gadget", "v1beta1", p.namespace, "b", fields{"size": int64(2)})
		p.call("create", p.create(beta))
		p.note("%s", beta.GetAPIVersion())
		g := p.gadget("b", nil)
		p.call("get", p.get(g))
		p.note("%s %s", g.GetAPIVersion(), at(g, "spec"))
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind(group, "v1beta1", "GadgetList"))
		p.note("list %s", p.names(list))
		p.note("%s %s", list.GetAPIVersion(), list.Items[0].GetAPIVersion())
	}},
	{"kind: version that is not served", func(p *probe) {
		p.given(p.gadget("a", nil))
		p.call("get", p.get(custom("gadget", "v1alpha1", p.namespace, "a", nil)))
		p.call("unknown", p.get(custom("gadget", "v7", p.namespace, "a", nil)))
	}},

	// What the handler of a definition does to its objects.
	{"schema: unknown fields", func(p *probe) {
		g := p.gadget("a", fields{
			"unknown": "x", "nested": fields{"known": "y", "unknown": "z"}, "anything": fields{"unknown": "kept"},
		})
		g.Object["unknown"] = "x"
		p.call("create", p.create(g))
		p.note("answered %s %s", at(g, "spec"), at(g, "unknown"))
		p.note("stored %s", at(p.read(g), "spec"))
		p.call("patch", p.patch(g, merge(`{"spec":{"unknown":"x","size":2}}`)))
		p.note("stored %s", at(p.read(g), "spec"))
	}},
	{"schema: unknown fields are refused if asked", func(p *probe) {
		strict := client.WithFieldValidation(p, client.FieldValidation("Strict"))
		p.call("custom resource", strict.Create(p.ctx, p.gadget("a", fields{"unknown": "x"})))
		u := p.applicable("a", "1")
		u.Object["unknown"] = "x"
		p.call("built-in", strict.Create(p.ctx, u))
		p.given(p.gadget("a", nil))
		p.call("patch", strict.Patch(p.ctx, p.gadget("a", nil), merge(`{"spec":{"unknown":"x"}}`)))
	}},
	{"schema: defaults", func(p *probe) {
		g := p.gadget("a", fields{"nested": fields{}})
		p.given(g)
		p.note("answered %s", at(g, "spec"))
		p.note("stored %s", at(p.read(g), "spec"))
		p.must(p.patch(g, merge(`{"spec":{"color":null}}`)))
		p.note("removed %s", at(g, "spec"))
		g = p.gadget("b", fields{"color": "red"})
		p.given(g)
		p.note("given %s", at(g, "spec"))
	}},
	{"schema: rule", func(p *probe) {
		p.call("broken", p.create(p.gadget("a", fields{"lowest": int64(2)})))
		p.call("kept", p.create(p.gadget("a", fields{"lowest": int64(1)})))
		p.call("broken by update", p.patch(p.gadget("a", nil), merge(`{"spec":{"lowest":3}}`)))
	}},
	{"status: left by an update", func(p *probe) {
		g := p.gadget("a", nil)
		p.given(g)
		g.Object["status"] = fields{"phase": "Done"}
		p.must(p.updateStatus(g))
		g.Object["status"] = fields{"phase": "Pending"}
		g.Object["spec"].(fields)["size"] = int64(2)
		p.call("update", p.update(g))
		p.note("%s %s", at(g, "spec", "size"), at(g, "status"))
		p.call("patch", p.patch(g, merge(`{"status":{"phase":"Pending"}}`)))
		p.note("%s", at(g, "status"))
		d := p.deployment("a")
		p.given(d)
		p.writes("Deployment", d, func() error { return p.patch(d.DeepCopy(), merge(`{"status":{"replicas":3}}`)) })
	}},
	{"status: of kinds without it", func(p *probe) {
		room := p.room()
		p.given(room)
		room.Object["status"] = fields{"phase": "Done"}
		p.call("update", p.updateStatus(room))
		p.call("patch", p.Status().Patch(p.ctx, room, merge(`{"status":{"phase":"Done"}}`)))
		cm := p.configMap("a")
		p.given(cm)
		p.call("ConfigMap", p.updateStatus(cm))
	}},
	{"subresource: scale of a custom resource", func(p *probe) {
		g := p.gadget("a", fields{"replicas": int64(1)})
		p.given(g)
		p.scales(g)
		p.note("generation %d", p.read(g).GetGeneration())
	}},
}

// evolves gives the version of a definition another schema, and waits until it is in force. Each schema limits the
// field word to another length.
func (p *probe) evolves(d *apiextensionsv1.CustomResourceDefinition, openAPISchema string) {
	now := p.read(d).(*apiextensionsv1.CustomResourceDefinition)
	properties := &apiextensionsv1.JSONSchemaProps{}
	p.must(json.Unmarshal([]byte(openAPISchema), properties))
	now.Spec.Versions[0].Schema.OpenAPIV3Schema = properties
	p.must(p.update(now))
	limit := int(*properties.Properties["word"].MaxLength)
	in := p.instance(d, "trial")
	in.Object["needed"] = "x"
	p.eventually("in force", func() bool {
		in.Object["word"] = strings.Repeat("x", limit)
		fits := p.create(in.DeepCopy(), client.DryRunAll)
		in.Object["word"] = strings.Repeat("x", limit+1)
		return fits == nil && verdict(p.create(in.DeepCopy(), client.DryRunAll)) == "Invalid word"
	})
}

// conditions notes the conditions of a definition, and the names that are accepted.
func (p *probe) conditions(d *apiextensionsv1.CustomResourceDefinition) {
	now := p.read(d).(*apiextensionsv1.CustomResourceDefinition)
	for _, condition := range now.Status.Conditions {
		p.note("%s %s %s %s", condition.Type, condition.Status, condition.Reason, condition.Message)
	}
	p.note("accepted %s", at(now, "status", "acceptedNames"))
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
