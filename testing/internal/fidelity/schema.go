package fidelity

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
)

var schemaChecks = []check{
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
	{"kind: scope", func(p *probe) {
		for _, obj := range []client.Object{p.configMap("a"), namespace("a"), p.gadget("a", nil), p.room()} {
			namespaced, err := p.IsObjectNamespaced(obj)
			p.note("%s %t", verdict(err), namespaced)
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

	{"schema: violations", func(p *probe) {
		for _, spec := range []fields{
			{"size": int64(-1)}, {"size": "one"}, {"color": "green"}, {"pattern": "A"}, {"when": "yesterday"},
			{"port": true}, {"words": fields{"a": int64(1)}}, {"nested": "x"}, {"plain": fields{}},
			{"items": []any{fields{"value": "x"}}}, {"template": fields{"a": "b"}},
		} {
			p.note("%s: %s", at(p.gadget("a", spec), "spec"), verdict(p.create(p.gadget("a", spec))))
		}
	}},
	{"schema: required fields", func(p *probe) {
		p.call("size", p.create(custom("gadget", "v1", p.namespace, "a", fields{})))
		p.call("spec", p.create(custom("gadget", "v1", p.namespace, "a", nil)))
		p.given(p.gadget("a", nil))
		p.call("removed", p.patch(p.gadget("a", nil), merge(`{"spec":{"size":null}}`)))
	}},
	{"schema: several violations at once", func(p *probe) {
		p.call("create", p.create(p.gadget("a", fields{"size": int64(-1), "color": "green", "pattern": "A"})))
	}},
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
	{"schema: unknown fields of a built-in kind", func(p *probe) {
		u := p.applicable("a", "1")
		u.Object["unknown"] = "x"
		u.Object["metadata"].(fields)["unknown"] = "x"
		p.call("create", p.create(u))
		p.note("%s %s", at(u, "unknown"), at(u, "metadata", "unknown"))
		p.call("patch", p.patch(p.configMap("a"), merge(`{"unknown":"x"}`)))
		u = p.applicable("b", "1")
		u.Object["data"] = "text"
		p.call("wrong type", p.create(u))
	}},
	{"schema: unknown fields of metadata", func(p *probe) {
		g := p.gadget("a", nil)
		g.Object["metadata"].(fields)["unknown"] = "x"
		p.call("create", p.create(g))
		p.note("%s", at(g, "metadata", "unknown"))
		g = p.gadget("b", nil)
		g.Object["metadata"].(fields)["labels"] = fields{"a": int64(1)}
		p.call("wrong type", p.create(g))
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
	{"schema: null", func(p *probe) {
		for _, field := range []string{"note", "color", "pattern", "anything"} {
			g := p.gadget("a", fields{field: nil})
			p.call(field, p.create(g, client.DryRunAll))
			_, found, _ := unstructured.NestedFieldNoCopy(g.Object, "spec", field)
			p.note("%t %s", found, at(g, "spec", field))
		}
	}},
	{"schema: rule", func(p *probe) {
		p.call("broken", p.create(p.gadget("a", fields{"lowest": int64(2)})))
		p.call("kept", p.create(p.gadget("a", fields{"lowest": int64(1)})))
		p.call("broken by update", p.patch(p.gadget("a", nil), merge(`{"spec":{"lowest":3}}`)))
	}},
	{"schema: transition rule", func(p *probe) {
		p.call("create", p.create(p.gadget("a", fields{"class": "x"})))
		p.call("same", p.patch(p.gadget("a", nil), merge(`{"spec":{"class":"x","size":2}}`)))
		p.call("changed", p.patch(p.gadget("a", nil), merge(`{"spec":{"class":"y"}}`)))
		p.call("removed", p.patch(p.gadget("a", nil), merge(`{"spec":{"class":null}}`)))
	}},
	{"schema: duplicates in lists", func(p *probe) {
		twice := []any{fields{"name": "x"}, fields{"name": "x"}}
		p.call("map", p.create(p.gadget("a", fields{"items": twice})))
		p.call("set", p.create(p.gadget("a", fields{"tags": []any{"x", "x"}})))
		p.call("plain", p.create(p.gadget("a", fields{"plain": []any{"x", "x"}})))
	}},
	{"schema: special types", func(p *probe) {
		g := p.gadget("a", fields{
			"port": "http", "words": fields{"a": "b"},
			"template": fields{"apiVersion": "v1", "kind": "Pod", "metadata": fields{"name": "x"}, "more": "y"},
			"when":     "2001-01-01T00:00:00Z",
		})
		p.call("create", p.create(g))
		p.note("%s", at(g, "spec"))
	}},
	{"schema: status", func(p *probe) {
		g := p.gadget("a", nil)
		g.Object["status"] = fields{"phase": "Lost"}
		p.call("create", p.create(g))
		g.Object["status"] = fields{"phase": "Lost"}
		p.call("update", p.update(g))
		g.Object["status"] = fields{"phase": "Lost"}
		p.call("status", p.updateStatus(g))
		g.Object["status"] = fields{"phase": "Done", "unknown": "x"}
		p.call("valid", p.updateStatus(g))
		p.note("%s", at(g, "status"))
	}},

	{"status: dropped on create", func(p *probe) {
		g := p.gadget("a", nil)
		g.Object["status"] = fields{"phase": "Done"}
		p.given(g)
		p.note("Gadget %s", at(g, "status"))
		d := p.deployment("a")
		d.Status.Replicas = 3
		p.given(d)
		p.note("Deployment %s", at(d, "status", "replicas"))
		room := p.room()
		room.Object["status"] = fields{"phase": "Done"}
		p.given(room)
		p.note("Room %s", at(room, "status"))
		w := &resources.Widget{ObjectMeta: p.metadata("a")}
		w.Status.AddField("a", "b")
		p.given(w)
		p.note("Widget %s", at(w, "status", "fields"))
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
	{"status: update leaves all else of a custom resource", func(p *probe) {
		g := p.gadget("a", nil)
		p.given(g)
		g.Object["spec"].(fields)["size"] = int64(-2)
		g.Object["status"] = fields{"phase": "Done"}
		g.SetLabels(map[string]string{"x": "y"})
		g.SetAnnotations(map[string]string{"x": "y"})
		g.SetFinalizers([]string{finalizer})
		p.call("status", p.updateStatus(g))
		p.note("%s %s", at(g, "spec"), at(g, "status"))
		p.note("%v %v %v", g.GetLabels(), g.GetAnnotations(), g.GetFinalizers())
	}},
	{"status: update of a Deployment", func(p *probe) {
		d := p.deployment("a")
		p.given(d)
		d.Spec.Replicas = new(int32(4))
		d.Status.Replicas = 3
		d.Labels = map[string]string{"x": "y"}
		p.call("status", p.updateStatus(d))
		p.note("%s %s %v", at(d, "spec", "replicas"), at(d, "status", "replicas"), d.Labels)
		d.Status.ReadyReplicas = 9
		p.call("more ready than there are", p.updateStatus(d))
	}},
	{"status: counts of pods", func(p *probe) {
		d, s := p.deployment("a"), p.statefulSet("a")
		rs := &appsv1.ReplicaSet{
			ObjectMeta: p.metadata("a"), Spec: appsv1.ReplicaSetSpec{Selector: selector(), Template: podTemplate()},
		}
		for _, obj := range []client.Object{d, s, rs} {
			p.given(obj)
			for _, status := range []string{
				`{"readyReplicas":1}`, `{"replicas":1,"availableReplicas":1}`, `{"replicas":-1}`,
				`{"replicas":1,"readyReplicas":1,"availableReplicas":1}`, `{"updatedReplicas":7,"currentReplicas":7}`,
				`{"fullyLabeledReplicas":7}`,
			} {
				now := p.read(obj)
				p.call(status, p.Status().Patch(p.ctx, now, merge(`{"status":`+status+`}`)))
			}
		}
	}},
	{"status: versions", func(p *probe) {
		g := p.gadget("a", nil)
		p.given(g)
		old := g.DeepCopy()
		g.Object["status"] = fields{"phase": "Done"}
		p.call("status", p.updateStatus(g))
		old.Object["status"] = fields{"phase": "Pending"}
		p.call("old", p.updateStatus(old))
		p.call("update after status", p.update(old))
	}},
	{"status: patch", func(p *probe) {
		p.given(p.gadget("a", nil))
		g := p.gadget("a", nil)
		p.call("patch", p.Status().Patch(p.ctx, g, merge(`{"spec":{"size":4},"status":{"phase":"Done"}}`)))
		p.note("%s %s", at(g, "spec", "size"), at(g, "status"))
		p.call("missing", p.Status().Patch(p.ctx, p.gadget("b", nil), merge(`{"status":{"phase":"Done"}}`)))
		p.call("dry run", p.Status().Patch(p.ctx, g, merge(`{"status":{"phase":"Pending"}}`), client.DryRunAll))
		p.note("%s", at(p.read(g), "status"))
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
	{"status: typed custom resource", func(p *probe) {
		w := &resources.Widget{ObjectMeta: p.metadata("a")}
		p.given(w)
		w.Status.AddField("a", "b")
		w.Spec.Fields = map[string]string{"x": "y"}
		p.call("status", p.updateStatus(w))
		p.note("%s %s %d", at(w, "spec", "fields"), at(w, "status", "fields"), w.Generation)
		w.Spec.Fields = map[string]string{"x": "y"}
		w.Status.Fields = nil
		p.call("update", p.update(w))
		p.note("%s %s %d", at(w, "spec", "fields"), at(w, "status", "fields"), w.Generation)
	}},
}
