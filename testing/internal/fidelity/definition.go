package fidelity

import (
	"encoding/json"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var definitionChecks = []check{
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
	{"definition: what is read is not stored until it is written", func(p *probe) {
		d := p.ownDefinition()
		p.given(d)
		p.serves(d)
		old := p.instance(d, "a")
		old.Object["dropped"] = "x"
		p.given(old)
		p.evolves(d, `{"type":"object","properties":{"word":{"type":"string","maxLength":2}}}`)
		p.note("dropped %s", at(p.read(old), "dropped"))
		p.evolves(d, `{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"word":`+
			`{"type":"string","maxLength":1}}}`)
		p.note("again %s", at(p.read(old), "dropped"))
		p.evolves(d, `{"type":"object","properties":{"word":{"type":"string","maxLength":2}}}`)
		p.writes("update", old, func() error { return p.update(p.read(old)) })
		p.writes("update", old, func() error { return p.update(p.read(old)) })
		p.note("generation %d", p.read(old).GetGeneration())
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
	{"definition: short name of another is added", func(p *probe) {
		d, second := p.ownDefinition(), definition("x"+p.namespace)
		p.given(d)
		p.given(second)
		p.serves(d)
		p.eventually("established", func() bool { return condition(p.read(second), "Established") == "True" })
		p.must(p.patch(second.DeepCopy(), merge(`{"spec":{"names":{"shortNames":["`+p.namespace+`","`+
			p.namespace+`z"]}}}`)))
		p.eventually("refused", func() bool { return condition(p.read(second), "NamesAccepted") == "False" })
		p.conditions(second)
		p.call("create", p.create(custom("x"+p.namespace, "v1", p.namespace, "a", nil)))
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
