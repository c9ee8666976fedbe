package fidelity

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var callChecks = []check{
	{"dry run: create", func(p *probe) {
		cm := p.configMap("a")
		p.call("create", p.create(cm, client.DryRunAll))
		p.note("UID %t, time %t, version %t", cm.UID != "", !cm.CreationTimestamp.IsZero(), cm.ResourceVersion != "")
		p.exists("exists", cm)
		g := p.gadget("a", nil)
		p.call("Gadget", p.create(g, client.DryRunAll))
		p.note("%s", at(g, "spec"))
		p.call("invalid", p.create(p.gadget("a", fields{"size": int64(-1)}), client.DryRunAll))
		generated := p.configMap("")
		generated.GenerateName = "made-"
		p.call("generated", p.create(generated, client.DryRunAll))
		p.note("named %t", len(generated.Name) > len("made-"))
		created := p.configMap("a")
		p.given(created)
		p.note("other UID %t", created.UID != cm.UID)
		p.call("existing", p.create(p.configMap("a"), client.DryRunAll))
	}},
	{"dry run: update", func(p *probe) {
		g := p.gadget("a", nil)
		p.given(g)
		version := g.GetResourceVersion()
		g.Object["spec"].(fields)["size"] = int64(2)
		p.call("update", p.update(g, client.DryRunAll))
		p.note("answered %s generation %d", at(g, "spec"), g.GetGeneration())
		p.note("version changed %t", g.GetResourceVersion() != version)
		p.note("stored %s", at(p.read(g), "spec"))
		g.SetResourceVersion("1")
		p.call("old", p.update(g, client.DryRunAll))
		g.SetResourceVersion(version)
		g.Object["spec"].(fields)["size"] = int64(-1)
		p.call("invalid", p.update(g, client.DryRunAll))
	}},
	{"dry run: patch", func(p *probe) {
		cm := p.configMap("a")
		p.given(cm)
		p.writes("patch", cm, func() error {
			return p.patch(cm, merge(`{"data":{"a":"2"}}`), client.DryRunAll)
		})
		p.note("answered %s, stored %s", at(cm, "data"), at(p.read(cm), "data"))
		p.call("missing", p.patch(p.configMap("b"), merge(`{}`), client.DryRunAll))
	}},
	{"dry run: removal of the last finalizer", func(p *probe) {
		p.given(p.held("a"))
		p.must(p.remove(p.configMap("a")))
		p.call("patch", p.patch(p.configMap("a"), merge(`{"metadata":{"finalizers":null}}`), client.DryRunAll))
		p.exists("exists", p.configMap("a"))
	}},

	{"patch: JSON patch", func(p *probe) {
		cm := p.configMap("a")
		p.given(cm)
		for _, patch := range []string{
			`[{"op":"test","path":"/data/a","value":"1"},{"op":"add","path":"/data/b","value":"2"}]`,
			`[{"op":"test","path":"/data/a","value":"x"},{"op":"add","path":"/data/b","value":"3"}]`,
			`[{"op":"remove","path":"/data/none"}]`, `[{"op":"replace","path":"/data/none","value":"x"}]`,
			`[{"op":"add","path":"/none/a","value":"x"}]`, `{"op":"add"}`, `[{"op":"turn","path":"/data"}]`,
			`[{"op":"move","from":"/data/b","path":"/data/c"}]`,
		} {
			p.call(patch, p.patch(cm, jsonPatch(patch)))
		}
		p.note("%s", at(p.read(cm), "data"))
	}},
	{"patch: strategic merge", func(p *probe) {
		d := p.deployment("a")
		p.given(d)
		p.call("add", p.patch(d, strategic(
			`{"spec":{"template":{"spec":{"containers":[{"name":"more","image":"x"}]}}}}`)))
		p.note("%s", containerImages(d.Spec.Template.Spec))
		p.call("change", p.patch(d, strategic(
			`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"y"}]}}}}`)))
		p.note("%s", containerImages(d.Spec.Template.Spec))
		p.call("delete", p.patch(d, strategic(
			`{"spec":{"template":{"spec":{"containers":[{"name":"more","$patch":"delete"}]}}}}`)))
		p.note("%s", containerImages(d.Spec.Template.Spec))
		p.call("invalid", p.patch(d, strategic(`{"spec":{"template":{"spec":{"containers":[{"image":"z"}]}}}}`)))
	}},
	{"patch: strategic merge of a custom resource", func(p *probe) {
		p.given(p.gadget("a", nil))
		p.call("patch", p.patch(p.gadget("a", nil), strategic(`{"spec":{"size":2}}`)))
	}},
	{"patch: merge", func(p *probe) {
		cm := p.configMap("a")
		p.given(cm)
		p.call("patch", p.patch(cm, merge(`{"data":{"a":null,"b":"2"},"metadata":{"labels":{"x":"y"}}}`)))
		p.note("%s %v", at(cm, "data"), cm.Labels)
		p.call("malformed", p.patch(cm, merge(`{"data":`)))
		p.call("list", p.patch(cm, merge(`[]`)))
		p.call("wrong type", p.patch(cm, merge(`{"data":"x"}`)))
		p.call("missing", p.patch(p.configMap("b"), merge(`{"data":{"a":"2"}}`)))
		p.call("invalid", p.patch(cm, merge(`{"data":{"a/b":"2"}}`)))
		g := p.gadget("a", nil)
		p.given(g)
		p.call("invalid Gadget", p.patch(g, merge(`{"spec":{"size":-2}}`)))
	}},
	{"patch: with a resource version", func(p *probe) {
		cm := p.configMap("a")
		p.given(cm)
		old := cm.ResourceVersion
		p.call("right", p.patch(cm, merge(`{"metadata":{"resourceVersion":"`+old+`"},"data":{"a":"2"}}`)))
		p.call("old", p.patch(cm, merge(`{"metadata":{"resourceVersion":"`+old+`"},"data":{"a":"3"}}`)))
		stale := cm.DeepCopy()
		p.must(p.patch(cm, merge(`{"data":{"a":"4"}}`)))
		changed := stale.DeepCopy()
		changed.Data["b"] = "5"
		p.call("optimistic lock", p.patch(changed.DeepCopy(),
			client.MergeFromWithOptions(stale, client.MergeFromWithOptimisticLock{})))
		p.call("without lock", p.patch(changed, client.MergeFrom(stale)))
		p.note("%s", at(changed, "data"))
	}},

	{"read: what is missing", func(p *probe) {
		p.call("ConfigMap", p.get(p.configMap("a")))
		p.call("Gadget", p.get(p.gadget("a", nil)))
		p.call("Room", p.get(p.room()))
	}},
	{"read: kind of what is answered", func(p *probe) {
		cm := p.configMap("a")
		p.given(cm)
		p.note("created %q", cm.Kind)
		cm = &corev1.ConfigMap{}
		p.must(p.Get(p.ctx, client.ObjectKey{Namespace: p.namespace, Name: "a"}, cm))
		p.note("get %q", cm.Kind)
		list := &corev1.ConfigMapList{}
		p.must(p.List(p.ctx, list, client.InNamespace(p.namespace)))
		p.note("list %q item %q", list.Kind, list.Items[0].Kind)
		u := p.applicable("a", "1")
		p.must(p.get(u))
		p.note("unstructured %s %s", u.GetAPIVersion(), u.GetKind())
		ul := &unstructured.UnstructuredList{}
		ul.SetGroupVersionKind(kind("", "v1", "ConfigMapList"))
		p.must(p.List(p.ctx, ul, client.InNamespace(p.namespace)))
		p.note("unstructured list %s item %s", ul.GetKind(), ul.Items[0].GetKind())
	}},
	{"read: unstructured object of a built-in kind", func(p *probe) {
		d := p.deployment("a")
		p.given(d)
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(kind("apps", "v1", "Deployment"))
		u.SetNamespace(p.namespace)
		u.SetName("a")
		p.must(p.get(u))
		p.note("%s", at(u, "spec", "strategy"))
		p.note("empty fields %s", at(u, "spec", "template", "metadata"))
		p.must(unstructured.SetNestedField(u.Object, int64(2), "spec", "replicas"))
		p.call("update", p.update(u))
		p.note("%d", u.GetGeneration())
	}},
	{"read: list by label", func(p *probe) {
		for _, name := range []string{"b", "a", "c"} {
			cm := p.configMap(name)
			cm.Labels = map[string]string{"name": name}
			p.given(cm)
		}
		p.given(p.configMap("d"))
		p.note("all %s", p.names(&corev1.ConfigMapList{}))
		for _, selector := range []string{
			"name=a", "name!=a", "name in (a,b)", "name notin (a,b)", "name", "!name", "none",
		} {
			parsed, err := labels.Parse(selector)
			p.must(err)
			p.note("%s %s", selector, p.names(&corev1.ConfigMapList{}, client.MatchingLabelsSelector{Selector: parsed}))
		}
	}},
	{"read: list by field", func(p *probe) {
		p.given(p.configMap("a"))
		p.given(p.configMap("b"))
		p.note("name %s", p.names(&corev1.ConfigMapList{}, client.MatchingFields{"metadata.name": "a"}))
		in := client.MatchingFields{"metadata.namespace": p.namespace}
		p.note("namespace %s", p.names(&corev1.ConfigMapList{}, in))
		p.note("label %s", p.names(&corev1.ConfigMapList{}, client.MatchingFields{"metadata.labels": "x"}))
		p.note("data %s", p.names(&corev1.ConfigMapList{}, client.MatchingFields{"data": "x"}))
	}},
	{"read: list by a field of the kind", func(p *probe) {
		pod := p.pod("a")
		pod.Spec.NodeName = "node"
		p.given(pod)
		p.given(p.pod("b"))
		p.note("node %s", p.names(&corev1.PodList{}, client.MatchingFields{"spec.nodeName": "node"}))
		p.note("phase %s", p.names(&corev1.PodList{}, client.MatchingFields{"status.phase": "Pending"}))
		p.given(&corev1.Secret{ObjectMeta: p.metadata("a")})
		p.note("type %s", p.names(&corev1.SecretList{}, client.MatchingFields{"type": "Opaque"}))
		p.given(p.gadget("a", fields{"color": "red"}))
		p.given(p.gadget("b", nil))
		p.note("color %s", p.names(gadgetList(), client.MatchingFields{"spec.color": "blue"}))
		p.note("size %s", p.names(gadgetList(), client.MatchingFields{"spec.size": "1"}))
	}},
	{"read: list with a limit", func(p *probe) {
		for _, name := range []string{"c", "a", "b"} {
			p.given(p.configMap(name))
		}
		list := &corev1.ConfigMapList{}
		p.note("first %s", p.names(list, client.Limit(2)))
		p.note("continue %t remaining %s", list.Continue != "", at(list, "metadata", "remainingItemCount"))
		p.note("next %s", p.names(list, client.Limit(2), client.Continue(list.Continue)))
		p.note("continue %t remaining %s", list.Continue != "", at(list, "metadata", "remainingItemCount"))
		p.note("malformed %s", p.names(list, client.Limit(2), client.Continue("x")))
		p.note("high %s", p.names(list, client.Limit(9)))
		p.note("continue %t", list.Continue != "")
	}},
	{"read: pages are of one revision", func(p *probe) {
		p.given(p.configMap("a"))
		p.given(p.configMap("b"))
		list := &corev1.ConfigMapList{}
		p.note("first %s", p.names(list, client.Limit(1)))
		version := list.ResourceVersion
		p.must(p.remove(p.configMap("b")))
		p.given(p.configMap("c"))
		p.note("next %s", p.names(list, client.Limit(1), client.Continue(list.Continue)))
		p.note("same revision %t", list.ResourceVersion == version)
	}},
	{"read: order of a list of all namespaces", func(p *probe) {
		p.given(p.configMap("b"))
		other := namespace(p.namespace + "-0")
		p.given(other)
		elsewhere := p.configMap("a")
		elsewhere.Namespace = other.Name
		elsewhere.Labels = map[string]string{"of": p.namespace}
		p.given(elsewhere)
		p.must(p.patch(p.configMap("b"), merge(`{"metadata":{"labels":{"of":"`+p.namespace+`"}}}`)))
		list := &corev1.ConfigMapList{}
		p.must(p.List(p.ctx, list, client.MatchingLabels{"of": p.namespace}))
		for _, item := range list.Items {
			p.note("%s/%s", item.Namespace, item.Name)
		}
	}},
	{"read: metadata only", func(p *probe) {
		cm := p.configMap("a")
		cm.Labels = map[string]string{"x": "y"}
		p.given(cm)
		only := p.metadataOnly("a")
		p.call("get", p.get(only))
		p.note("%s %s %v %t", only.APIVersion, only.Kind, only.Labels, only.UID == cm.UID)
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind("", "v1", "ConfigMapList"))
		p.note("list %s", p.names(list))
		p.note("%s item %q", list.Kind, list.Items[0].Kind)
		p.call("patch", p.patch(only, merge(`{"metadata":{"labels":{"x":"z"}}}`)))
		p.note("%v %s", only.Labels, at(p.read(cm), "data"))
		p.call("create", p.create(p.metadataOnly("b")))
		p.call("update", p.update(only))
		p.call("delete", p.remove(only))
		p.exists("exists", cm)
	}},

	{"subresource: scale of a Deployment", func(p *probe) {
		d := p.deployment("a")
		p.given(d)
		p.scales(d)
		p.note("generation %d", p.read(d).GetGeneration())
	}},
	{"subresource: scale of a custom resource", func(p *probe) {
		g := p.gadget("a", fields{"replicas": int64(1)})
		p.given(g)
		p.scales(g)
		p.note("generation %d", p.read(g).GetGeneration())
	}},
	{"subresource: objects of other clients", func(p *probe) {
		d := p.deployment("a")
		p.given(d)
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(kind("apps", "v1", "Deployment"))
		u.SetNamespace(p.namespace)
		u.SetName("a")
		typed, untyped := newScale(d), newScale(u)
		p.call("typed of unstructured", p.SubResource("scale").Get(p.ctx, u, newScale(d)))
		p.call("unstructured of typed", p.SubResource("scale").Get(p.ctx, d, untyped))
		p.must(p.SubResource("scale").Get(p.ctx, d, typed))
		p.call("update typed", p.SubResource("scale").Update(p.ctx, u, client.WithSubResourceBody(typed)))
		pod := &unstructured.Unstructured{}
		pod.SetGroupVersionKind(kind("", "v1", "Pod"))
		pod.SetNamespace(p.namespace)
		pod.SetName("a")
		p.given(p.pod("a"))
		p.call("eviction", p.SubResource("eviction").Create(p.ctx, pod, eviction()))
		p.exists("exists", p.pod("a"))
		cm := p.configMap("a")
		p.given(cm)
		p.call("get of metadata", p.SubResource("status").Get(p.ctx, p.metadataOnly("a"), cm))
		p.call("create of metadata", p.SubResource("status").Create(p.ctx, p.metadataOnly("a"), cm))
	}},
	{"subresource: scale of kinds without it", func(p *probe) {
		room, cm := p.room(), p.configMap("a")
		p.given(room)
		p.given(cm)
		p.call("Room", p.SubResource("scale").Get(p.ctx, room, newScale(room)))
		p.call("ConfigMap", p.SubResource("scale").Get(p.ctx, cm, newScale(cm)))
		p.call("unknown", p.SubResource("unknown").Get(p.ctx, p.configMap("a"), p.configMap("a")))
	}},
	{"subresource: eviction", func(p *probe) {
		p.given(p.pod("a"))
		p.call("create", p.SubResource("eviction").Create(p.ctx, p.pod("a"), eviction()))
		p.exists("exists", p.pod("a"))
		p.call("missing", p.SubResource("eviction").Create(p.ctx, p.pod("a"), eviction()))
	}},
	{"subresource: token of a ServiceAccount", func(p *probe) {
		account := &corev1.ServiceAccount{ObjectMeta: p.metadata("a")}
		p.given(account)
		request := tokenRequest()
		p.call("create", p.SubResource("token").Create(p.ctx, account, request))
		p.note("token %t expires %s", request.Status.Token != "", at(request, "spec", "expirationSeconds"))
	}},
}
