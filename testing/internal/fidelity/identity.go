package fidelity

import (
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var identityChecks = []check{
	{"identity: create sets UID, creation time and version", func(p *probe) {
		sent := p.configMap("a")
		p.given(sent)
		stored := p.read(sent)
		p.note("uid %t", stored.GetUID() != "")
		p.note("time %t", !stored.GetCreationTimestamp().Time.IsZero())
		p.note("answered %t", sent.UID != "" && sent.UID == stored.GetUID() &&
			sent.ResourceVersion == stored.GetResourceVersion() && !sent.CreationTimestamp.IsZero())
	}},
	{"identity: create ignores the identity it is sent", func(p *probe) {
		sent := p.configMap("a")
		sent.UID, sent.Generation = "mine", 5
		sent.CreationTimestamp = metav1.NewTime(time.UnixMilli(1000))
		sent.DeletionTimestamp, sent.DeletionGracePeriodSeconds = new(metav1.Now()), new(int64(7))
		p.call("create", p.create(sent))
		p.note("uid kept %t", sent.UID == "mine")
		p.note("generation %d", sent.Generation)
		p.note("time kept %t", sent.CreationTimestamp.Equal(new(metav1.NewTime(time.UnixMilli(1000)))))
		p.note("terminating %t", sent.DeletionTimestamp != nil || sent.DeletionGracePeriodSeconds != nil)
	}},
	{"identity: create with a resource version", func(p *probe) {
		sent := p.configMap("a")
		sent.ResourceVersion = "1"
		p.call("create", p.create(sent))
		p.exists("exists", sent)
	}},
	{"identity: create of what exists", func(p *probe) {
		p.given(p.configMap("a"))
		p.call("create", p.create(p.configMap("a")))
	}},
	{"identity: generation of plain built-in kinds", func(p *probe) {
		for _, obj := range []client.Object{
			p.configMap("a"), &corev1.Secret{ObjectMeta: p.metadata("a")}, p.service("a"),
			&corev1.ServiceAccount{ObjectMeta: p.metadata("a")}, &rbacv1.Role{ObjectMeta: p.metadata("a")},
			&coordinationv1.Lease{ObjectMeta: p.metadata("a")},
			&corev1.PersistentVolumeClaim{ObjectMeta: p.metadata("a"), Spec: claimSpec()},
		} {
			err := p.create(obj)
			p.note("%T %s %d", obj, verdict(err), obj.GetGeneration())
		}
	}},
	{"identity: generation of built-in kinds with a desired state", func(p *probe) {
		for _, obj := range []client.Object{
			p.deployment("a"), p.pod("a"),
			&appsv1.StatefulSet{
				ObjectMeta: p.metadata("a"),
				Spec:       appsv1.StatefulSetSpec{Selector: selector(), Template: podTemplate()},
			},
			&appsv1.DaemonSet{
				ObjectMeta: p.metadata("a"), Spec: appsv1.DaemonSetSpec{Selector: selector(), Template: podTemplate()},
			},
			&batchv1.Job{ObjectMeta: p.metadata("a"), Spec: jobSpec()},
			&batchv1.CronJob{ObjectMeta: p.metadata("a"), Spec: cronJobSpec()},
			&networkingv1.Ingress{ObjectMeta: p.metadata("a"), Spec: ingressSpec()},
			&networkingv1.NetworkPolicy{ObjectMeta: p.metadata("a")},
			&policyv1.PodDisruptionBudget{ObjectMeta: p.metadata("a")},
			&autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: p.metadata("a"), Spec: autoscalerSpec()},
		} {
			err := p.create(obj)
			p.note("%T %s %d", obj, verdict(err), obj.GetGeneration())
		}
	}},
	{"identity: generation of a custom resource", func(p *probe) {
		g := p.gadget("a", nil)
		g.SetGeneration(7)
		p.given(g)
		p.note("created %d", g.GetGeneration())
		g.SetLabels(map[string]string{"x": "y"})
		p.must(p.update(g))
		p.note("label %d", g.GetGeneration())
		g.Object["status"] = fields{"phase": "Done"}
		p.must(p.updateStatus(g))
		p.note("status %d", g.GetGeneration())
		g.Object["spec"].(fields)["size"] = int64(2)
		p.must(p.update(g))
		p.note("spec %d", g.GetGeneration())
		g.SetGeneration(99)
		p.must(p.update(g))
		p.note("sent %d", g.GetGeneration())
	}},
	{"identity: generation of a custom resource without a status subresource", func(p *probe) {
		room := p.room()
		p.given(room)
		p.note("created %d", room.GetGeneration())
		room.SetLabels(map[string]string{"x": "y"})
		p.must(p.update(room))
		p.note("label %d", room.GetGeneration())
		room.Object["status"] = fields{"phase": "Done"}
		p.must(p.update(room))
		p.note("status %d", room.GetGeneration())
		room.Object["other"] = "field"
		p.must(p.update(room))
		p.note("field %d", room.GetGeneration())
	}},
	{"identity: generation of a Deployment", func(p *probe) {
		d := p.deployment("a")
		p.given(d)
		d.Annotations = map[string]string{"x": "y"}
		p.must(p.update(d))
		p.note("annotation %d", d.Generation)
		d.Status.Replicas = 1
		p.must(p.updateStatus(d))
		p.note("status %d", d.Generation)
		d.Spec.Replicas = new(int32(2))
		p.must(p.update(d))
		p.note("spec %d", d.Generation)
	}},

	{"version: update that changes nothing", func(p *probe) {
		for _, obj := range []client.Object{p.configMap("a"), p.deployment("a"), p.gadget("a", nil), p.room()} {
			p.given(obj)
			p.writes("update", obj, func() error { return p.update(obj) })
		}
	}},
	{"version: update without what the server has set", func(p *probe) {
		p.given(p.deployment("a"))
		p.given(p.service("a"))
		p.writes("Deployment", p.deployment("a"), func() error { return p.update(p.deployment("a")) })
		p.writes("Service", p.service("a"), func() error { return p.update(p.service("a")) })
	}},
	{"version: status update that changes nothing", func(p *probe) {
		g := p.gadget("a", nil)
		p.given(g)
		g.Object["status"] = fields{"phase": "Done"}
		p.must(p.updateStatus(g))
		p.writes("status", g, func() error { return p.updateStatus(g) })
	}},
	{"version: merge patch that changes nothing", func(p *probe) {
		cm := p.configMap("a")
		p.given(cm)
		p.writes("same", cm, func() error { return p.patch(cm, merge(`{"data":{"a":"1"}}`)) })
		p.writes("empty", cm, func() error { return p.patch(cm, merge(`{}`)) })
	}},
	{"version: JSON patch that changes nothing", func(p *probe) {
		cm := p.configMap("a")
		p.given(cm)
		p.writes("replace", cm, func() error {
			return p.patch(cm, jsonPatch(`[{"op":"replace","path":"/data/a","value":"1"}]`))
		})
	}},
	{"version: update with equal quantities written otherwise", func(p *probe) {
		d := p.deployment("a")
		d.Spec.Template.Spec.Containers[0].Resources.Requests = resourceList("cpu", "1")
		p.given(d)
		d.Spec.Template.Spec.Containers[0].Resources.Requests = resourceList("cpu", "1000m")
		p.writes("update", d, func() error { return p.update(d) })
	}},
	{"version: empty and missing maps are one", func(p *probe) {
		g := p.gadget("a", nil)
		p.given(g)
		p.writes("annotations", g, func() error {
			return p.patch(g, merge(`{"metadata":{"annotations":{}}}`))
		})
		p.writes("labels", g, func() error { return p.patch(g, merge(`{"metadata":{"labels":{}}}`)) })
	}},
	{"version: unique and increasing", func(p *probe) {
		a, b := p.configMap("a"), p.gadget("b", nil)
		p.given(a)
		p.given(b)
		p.note("second higher %t", revision(b.GetResourceVersion()) > revision(a.GetResourceVersion()))
		a.Data["a"] = "2"
		p.must(p.update(a))
		p.note("updated higher %t", revision(a.GetResourceVersion()) > revision(b.GetResourceVersion()))
	}},
	{"version: of a list", func(p *probe) {
		cm := p.configMap("a")
		p.given(cm)
		list := &corev1.ConfigMapList{}
		p.must(p.List(p.ctx, list, client.InNamespace(p.namespace)))
		p.note("set %t", revision(list.ResourceVersion) > 0)
		p.note("not before its objects %t", revision(list.ResourceVersion) >= revision(cm.ResourceVersion))
		p.must(p.List(p.ctx, list, client.InNamespace(p.namespace+"-none")))
		p.note("set if empty %t", revision(list.ResourceVersion) > 0)
	}},
	{"version: update is answered with the new one", func(p *probe) {
		cm := p.configMap("a")
		p.given(cm)
		before := cm.ResourceVersion
		cm.Data["a"] = "2"
		p.must(p.update(cm))
		p.note("changed %t", cm.ResourceVersion != before)
		p.note("stored %t", p.read(cm).GetResourceVersion() == cm.ResourceVersion)
	}},
	{"version: update with an old one", func(p *probe) {
		cm := p.configMap("a")
		p.given(cm)
		old := cm.DeepCopy()
		cm.Data["a"] = "2"
		p.must(p.update(cm))
		old.Data["b"] = "3"
		p.call("update", p.update(old))
		same := cm.DeepCopy()
		same.ResourceVersion = old.ResourceVersion
		p.call("without change", p.update(same))
		same.ResourceVersion = "x"
		p.call("malformed", p.update(same))
	}},
	{"version: update of a recreated object with the copy from before", func(p *probe) {
		cm := p.configMap("a")
		p.given(cm)
		p.must(p.remove(cm.DeepCopy()))
		p.given(p.configMap("a"))
		cm.Data["a"] = "2"
		p.call("with version", p.update(cm))
		cm.ResourceVersion = ""
		p.call("with UID", p.update(cm))
	}},
	{"version: update with another UID", func(p *probe) {
		cm := p.configMap("a")
		p.given(cm)
		cm.UID = "other"
		p.call("update", p.update(cm))
		p.call("patch", p.patch(p.configMap("a"), merge(`{"metadata":{"uid":"other"}}`)))
	}},
	{"version: update of a custom resource without one", func(p *probe) {
		g := p.gadget("a", nil)
		p.given(g)
		g.SetResourceVersion("")
		p.call("update", p.update(g))
		p.call("status", p.updateStatus(g))
		room := p.room()
		p.given(room)
		room.SetResourceVersion("")
		p.call("update", p.update(room))
	}},
	{"version: update of built-in kinds without one", func(p *probe) {
		for _, obj := range []client.Object{
			p.configMap("a"), p.deployment("a"), p.service("a"), &corev1.Secret{ObjectMeta: p.metadata("a")},
			&coordinationv1.Lease{ObjectMeta: p.metadata("a")}, &rbacv1.Role{ObjectMeta: p.metadata("a")},
			&policyv1.PodDisruptionBudget{ObjectMeta: p.metadata("a")},
			&networkingv1.Ingress{ObjectMeta: p.metadata("a"), Spec: ingressSpec()},
		} {
			p.given(obj)
			obj.SetLabels(map[string]string{"x": "y"})
			obj.SetResourceVersion("")
			err := p.update(obj)
			p.note("%T %s", obj, verdict(err))
		}
	}},
	{"version: update of what does not exist", func(p *probe) {
		cm := p.configMap("a")
		p.call("plain", p.update(cm.DeepCopy()))
		cm.UID = "other"
		p.call("with UID", p.update(cm.DeepCopy()))
		cm.UID, cm.ResourceVersion = "", "1"
		p.call("with version", p.update(cm))
		p.call("custom resource", p.update(p.gadget("a", nil)))
		p.call("status", p.updateStatus(p.gadget("a", nil)))
	}},
	{"version: update that creates", func(p *probe) {
		for _, obj := range []client.Object{
			&coordinationv1.Lease{ObjectMeta: p.metadata("a")}, &rbacv1.Role{ObjectMeta: p.metadata("a")},
		} {
			err := p.update(obj)
			p.note("%T %s, UID %t", obj, verdict(err), obj.GetUID() != "")
		}
	}},

	{"name: generated", func(p *probe) {
		one, two := p.configMap(""), p.configMap("")
		one.GenerateName, two.GenerateName = "made-", "made-"
		p.call("create", p.create(one))
		p.call("again", p.create(two))
		p.note("prefix %t", strings.HasPrefix(one.Name, "made-") && one.Name != "made-")
		p.note("different %t", one.Name != two.Name)
		p.note("kept %q", one.GenerateName)
	}},
	{"name: generated from a prefix that is too long", func(p *probe) {
		prefix := strings.Repeat("abcdefghij", 7)
		cm := p.configMap("")
		cm.GenerateName = prefix
		p.call("create", p.create(cm))
		p.note("at most 63 %t", len(cm.Name) <= 63 && cm.Name != "")
		p.note("beginning kept %t", strings.HasPrefix(cm.Name, prefix[:55]))
	}},
	{"name: given and to be generated", func(p *probe) {
		cm := p.configMap("a")
		cm.GenerateName = "made-"
		p.call("create", p.create(cm))
		p.note("name %s", cm.Name)
	}},
	{"name: neither given nor to be generated", func(p *probe) {
		p.call("ConfigMap", p.create(p.configMap("")))
		p.call("Gadget", p.create(p.gadget("", nil)))
	}},
	{"name: changed by a patch", func(p *probe) {
		cm := p.configMap("a")
		p.given(cm)
		p.call("name", p.patch(cm.DeepCopy(), merge(`{"metadata":{"name":"b"}}`)))
		p.call("namespace", p.patch(cm.DeepCopy(), merge(`{"metadata":{"namespace":"other"}}`)))
		p.call("kind", p.patch(cm.DeepCopy(), merge(`{"kind":"Secret"}`)))
		p.call("version", p.patch(cm.DeepCopy(), merge(`{"apiVersion":"v2"}`)))
	}},
	{"identity: what a patch may not change", func(p *probe) {
		g := p.gadget("a", nil)
		p.given(g)
		before := p.read(g)
		p.call("time", p.patch(g.DeepCopy(), merge(`{"metadata":{"creationTimestamp":"2001-01-01T00:00:00Z"}}`)))
		p.call("generation", p.patch(g.DeepCopy(), merge(`{"metadata":{"generation":9}}`)))
		p.call("deletion", p.patch(g.DeepCopy(), merge(`{"metadata":{"deletionTimestamp":"2001-01-01T00:00:00Z"}}`)))
		now := p.read(g)
		p.note("time kept %t", now.GetCreationTimestamp().Time.Equal(before.GetCreationTimestamp().Time))
		p.note("generation %d", now.GetGeneration())
		p.note("terminating %t", now.GetDeletionTimestamp() != nil)
	}},
}

func merge(patch string) client.Patch {
	return client.RawPatch(types.MergePatchType, []byte(patch))
}

func jsonPatch(patch string) client.Patch {
	return client.RawPatch(types.JSONPatchType, []byte(patch))
}

func strategic(patch string) client.Patch {
	return client.RawPatch(types.StrategicMergePatchType, []byte(patch))
}
