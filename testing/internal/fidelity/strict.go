package fidelity

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Gizmo is a Go type with more fields than its definition.
type Gizmo struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   GizmoFields `json:"spec,omitempty"`
	Status GizmoFields `json:"status,omitempty"`
}

// GizmoFields are the fields of its spec and status. The definition does not have the second.
type GizmoFields struct {
	Known   string `json:"known,omitempty"`
	Unknown string `json:"unknown,omitempty"`
}

// DeepCopyObject implements [runtime.Object].
func (g *Gizmo) DeepCopyObject() runtime.Object {
	out := *g
	g.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

const gizmoDefinition = `
metadata:
  name: gizmos.fidelity.espalier.dev
spec:
  group: fidelity.espalier.dev
  scope: Namespaced
  names: {plural: gizmos, singular: gizmo, kind: Gizmo, listKind: GizmoList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {known: {type: string}}}
          status: {type: object, properties: {known: {type: string}}}
`

func addGizmo(scheme *runtime.Scheme) {
	version := schema.GroupVersion{Group: group, Version: "v1"}
	scheme.AddKnownTypes(version, &Gizmo{})
	metav1.AddToGroupVersion(scheme, version)
}

// strict returns a client that asks for requests with unknown fields to be refused.
func (p *probe) strict() client.Client {
	return client.WithFieldValidation(p, metav1.FieldValidationStrict)
}

// applyPatch is an apply of an object that is no apply configuration.
//
//lint:ignore SA1019 many operators still use it
var applyPatch = client.Apply

// with returns a copy of an object with the value at a path.
func (p *probe) with(obj client.Object, value any, path ...string) *unstructured.Unstructured {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj.DeepCopyObject())
	p.must(err)
	p.must(unstructured.SetNestedField(content, value, path...))
	return &unstructured.Unstructured{Object: content}
}

var strictChecks = []check{
	{"strict: items of a list", func(p *probe) {
		strict := p.strict()
		items := []any{fields{"name": "x"}, fields{"name": "y", "unknown": "z"}}
		p.call("create", strict.Create(p.ctx, p.gadget("a", fields{"items": items})))
		p.given(p.gadget("a", nil))
		now := p.read(p.gadget("a", nil))
		p.call("update", strict.Update(p.ctx, p.with(now, items, "spec", "items")))
		p.call("patch", strict.Patch(p.ctx, p.gadget("a", nil),
			merge(`{"spec":{"items":[{"name":"x","unknown":"y"}]}}`)))
		p.call("JSON patch", strict.Patch(p.ctx, p.gadget("a", nil),
			jsonPatch(`[{"op":"add","path":"/spec/items","value":[{"name":"x","unknown":"y"}]}]`)))
		p.call("known", strict.Patch(p.ctx, p.gadget("a", nil), merge(`{"spec":{"items":[{"name":"x"}]}}`)))
		p.note("%s", at(p.read(now), "spec", "items"))
	}},
	{"strict: items of a list of a built-in kind", func(p *probe) {
		strict := p.strict()
		d := p.deployment("a")
		d.SetGroupVersionKind(kind("apps", "v1", "Deployment"))
		containers := []any{fields{"name": "main", "image": "nginx", "unknown": "x"}}
		bad := p.with(d, containers, "spec", "template", "spec", "containers")
		p.call("create", strict.Create(p.ctx, bad))
		p.given(d)
		now := p.read(d)
		now.GetObjectKind().SetGroupVersionKind(kind("apps", "v1", "Deployment"))
		p.call("update", strict.Update(p.ctx, p.with(now, containers, "spec", "template", "spec", "containers")))
		p.call("strategic patch", strict.Patch(p.ctx, p.deployment("a"), strategic(
			`{"spec":{"template":{"spec":{"containers":[{"name":"main","unknown":"x"}]}}}}`)))
		p.call("metadata", strict.Update(p.ctx, p.with(now, "x", "metadata", "unknown")))
		p.call("wrong case", strict.Update(p.ctx, p.with(now, int64(2), "spec", "Replicas")))
	}},
	{"strict: status", func(p *probe) {
		strict := p.strict()
		p.given(p.gadget("a", nil))
		now := p.read(p.gadget("a", nil))
		p.call("update", strict.Status().Update(p.ctx, p.with(now, "x", "status", "unknown")))
		p.call("patch", strict.Status().Patch(p.ctx, p.gadget("a", nil), merge(`{"status":{"unknown":"x"}}`)))
		p.call("spec", strict.Status().Update(p.ctx, p.with(now, "x", "spec", "unknown")))
		p.call("known", strict.Status().Update(p.ctx, p.with(now, "Done", "status", "phase")))
		p.call("in a main update", strict.Update(p.ctx, p.with(p.read(now), "x", "status", "unknown")))
		p.call("in a create", strict.Create(p.ctx, p.with(p.gadget("b", nil), "x", "status", "unknown")))
		d := p.deployment("a")
		p.given(d)
		d.SetGroupVersionKind(kind("apps", "v1", "Deployment"))
		p.call("Deployment", strict.Status().Update(p.ctx, p.with(d, "x", "status", "unknown")))
		p.note("%s", at(p.read(now), "status"))
	}},
	{"strict: other places", func(p *probe) {
		strict := p.strict()
		for _, test := range []struct {
			value any
			path  []string
		}{
			{"x", []string{"unknown"}},
			{"x", []string{"metadata", "unknown"}},
			{nil, []string{"spec", "unknown"}},
			{fields{}, []string{"spec", "unknown"}},
			{nil, []string{"spec", "color"}},
			{"x", []string{"spec", "nested", "unknown"}},
			{"x", []string{"spec", "anything", "unknown"}},
			{"x", []string{"spec", "words", "unknown"}},
			{
				fields{"apiVersion": "v1", "kind": "Pod", "metadata": fields{"unknown": "x"}},
				[]string{"spec", "template"},
			},
		} {
			err := strict.Create(p.ctx, p.with(p.gadget("a", nil), test.value, test.path...), client.DryRunAll)
			p.call(strings.Join(test.path, ".")+" "+at(test.value), err)
		}
	}},
	{"strict: a Go type with more fields than the definition", func(p *probe) {
		g := &Gizmo{ObjectMeta: p.metadata("a"), Spec: GizmoFields{Known: "x", Unknown: "y"}}
		p.call("create", p.strict().Create(p.ctx, g.DeepCopyObject().(client.Object)))
		p.call("without", p.create(g))
		p.note("%s", at(g, "spec"))
		g.Spec.Unknown = "y"
		p.call("update", p.strict().Update(p.ctx, g.DeepCopyObject().(client.Object)))
		g.Spec.Unknown, g.Status = "", GizmoFields{Unknown: "y"}
		p.call("status", p.strict().Status().Update(p.ctx, g.DeepCopyObject().(client.Object)))
		g.Status.Unknown = ""
		p.call("known", p.strict().Update(p.ctx, g))
	}},
	{"strict: apply", func(p *probe) {
		u := p.gadget("a", fields{"unknown": "x"})
		p.call("spec", p.applied(u, "one"))
		p.exists("exists", u)
		p.call("item", p.applied(p.gadget("a", fields{"items": []any{fields{"name": "x", "unknown": "y"}}}), "one"))
		p.call("metadata", p.applied(p.with(p.gadget("a", nil), "x", "metadata", "unknown"), "one"))
		p.call("built-in", p.applied(p.with(p.applicable("a", "1"), "x", "unknown"), "one"))
		p.call("as a patch", p.patch(p.gadget("b", fields{"unknown": "x"}), applyPatch, client.FieldOwner("one")))
	}},
	{"apply: as a patch of an unstructured object", func(p *probe) {
		apply := func(u *unstructured.Unstructured, opts ...client.PatchOption) error {
			return p.patch(u, applyPatch, opts...)
		}
		g := p.gadget("a", fields{"items": []any{fields{"name": "x", "value": "1"}}})
		p.call("no manager", apply(g.DeepCopy()))
		p.call("create", apply(g, client.FieldOwner("one")))
		p.note("%s %s generation %d", g.GetKind(), at(g, "spec"), g.GetGeneration())
		p.call("with managed fields", apply(g.DeepCopy(), client.FieldOwner("one")))
		second := p.gadget("a", fields{"size": int64(2)})
		p.call("conflict", apply(second.DeepCopy(), client.FieldOwner("two")))
		p.call("forced", apply(second, client.FieldOwner("two"), client.ForceOwnership))
		p.note("%s", at(second, "spec"))
		p.call("dropped", apply(p.gadget("a", nil), client.FieldOwner("one"), client.ForceOwnership))
		p.note("%s", p.managers(second))
		withStatus := p.with(p.gadget("a", nil), "Done", "status", "phase")
		p.call("status", p.Status().Patch(p.ctx, withStatus, applyPatch, client.FieldOwner("three")))
		p.note("%s", at(withStatus, "status"))
		p.call("dry run", apply(p.gadget("b", nil), client.FieldOwner("one"), client.DryRunAll))
		p.exists("exists", p.gadget("b", nil))
	}},
}
