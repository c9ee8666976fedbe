package fidelity

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// smokeChecks make a few calls for each thing that is written or set up here around the API server of Kubernetes. What
// that one does by itself needs no checks: it is the same code.
var smokeChecks = []check{
	// The plug-in that says whether a namespace takes objects, and the controller that empties it.
	{"namespace: those of the system", func(p *probe) {
		for _, name := range []string{"default", "kube-system", "kube-public", "kube-node-lease"} {
			p.exists(name, namespace(name))
		}
		p.call("delete default", p.remove(namespace("default"), client.DryRunAll))
		p.call("delete kube-system", p.remove(namespace("kube-system"), client.DryRunAll))
		p.call("delete kube-node-lease", p.remove(namespace("kube-node-lease"), client.DryRunAll))
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
	{"namespace: deleted with objects", func(p *probe) {
		p.given(p.configMap("a"))
		p.given(p.gadget("b", nil))
		p.must(p.remove(namespace(p.namespace)))
		p.exists("object", p.configMap("a"))
		p.eventually("objects gone", func() bool { return p.gone(p.configMap("a")) && p.gone(p.gadget("b", nil)) })
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

	// The garbage collector.
	{"garbage: background", func(p *probe) {
		owner := p.configMap("owner")
		p.given(owner)
		p.given(owned(p.configMap("a"), owner))
		p.given(owned(p.gadget("b", nil), owner))
		p.call("delete", p.remove(owner))
		p.exists("owner", owner)
		p.eventually("dependents gone", func() bool { return p.gone(p.configMap("a")) && p.gone(p.gadget("b", nil)) })
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
	{"garbage: orphan", func(p *probe) {
		owner := p.configMap("owner")
		p.given(owner)
		p.given(owned(p.configMap("a"), owner))
		p.call("delete", p.remove(owner.DeepCopy(), client.PropagationPolicy(metav1.DeletePropagationOrphan)))
		p.eventually("owner gone", func() bool { return p.gone(owner) })
		p.exists("dependent", p.configMap("a"))
		p.note("owners %d", len(p.read(p.configMap("a")).GetOwnerReferences()))
	}},

	// Names, UIDs and versions.
	{"identity: create sets UID, creation time and version", func(p *probe) {
		sent := p.configMap("a")
		p.given(sent)
		stored := p.read(sent)
		p.note("uid %t", stored.GetUID() != "")
		p.note("time %t", !stored.GetCreationTimestamp().Time.IsZero())
		p.note("answered %t", sent.UID != "" && sent.UID == stored.GetUID() &&
			sent.ResourceVersion == stored.GetResourceVersion() && !sent.CreationTimestamp.IsZero())
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

	// Managed fields.
	{"apply: force", func(p *probe) {
		p.must(p.applied(p.applicable("a", "1"), "one"))
		p.call("apply", p.applied(p.applicable("a", "2"), "two", client.ForceOwnership))
		p.note("%s", at(p.read(p.configMap("a")), "data"))
		p.note("%s", p.managers(p.configMap("a")))
		p.call("first manager", p.applied(p.applicable("a", "1"), "one"))
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

	// Pages and watches.
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
	{"watch: what is there, changes and deletion", func(p *probe) {
		p.given(p.configMap("a"))
		p.watching("watch", &corev1.ConfigMapList{}, `DELETED a "2"`, func() {
			p.given(p.configMap("b"))
			p.must(p.patch(p.configMap("a"), merge(`{"data":{"a":"2"}}`)))
			p.must(p.patch(p.configMap("a"), merge(`{"data":{"a":"2"}}`)))
			p.must(p.remove(p.configMap("a")))
		})
	}},
	{"watch: bookmark after what is there", func(p *probe) {
		p.given(p.configMap("a"))
		p.watching("watch", &corev1.ConfigMapList{}, `BOOKMARK {"k8s.io/initial-events-end":"true"}`, nothing,
			&client.ListOptions{Raw: &metav1.ListOptions{
				SendInitialEvents: new(true), AllowWatchBookmarks: true,
				ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
			}})
	}},

	// Strategies of built-in kinds. Those that create or refuse a single object have samples in package registrytest.
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
	{"subresource: scale of a Deployment", func(p *probe) {
		d := p.deployment("a")
		p.given(d)
		p.scales(d)
		p.note("generation %d", p.read(d).GetGeneration())
	}},
	{"subresource: eviction", func(p *probe) {
		p.given(p.pod("a"))
		p.call("create", p.SubResource("eviction").Create(p.ctx, p.pod("a"), eviction()))
		p.exists("exists", p.pod("a"))
		p.call("missing", p.SubResource("eviction").Create(p.ctx, p.pod("a"), eviction()))
	}},
	{"delete: a Pod that no node has", func(p *probe) {
		p.given(p.pod("a"))
		p.call("delete", p.remove(p.pod("a")))
		p.exists("exists", p.pod("a"))
	}},
	{"limit: one node port of two Services", func(p *probe) {
		service := func(name string, port int32, protocol corev1.Protocol) *corev1.Service {
			return &corev1.Service{ObjectMeta: p.metadata(name), Spec: corev1.ServiceSpec{
				Type: corev1.ServiceTypeNodePort,
				Ports: []corev1.ServicePort{
					{Port: 80, TargetPort: intstr.FromInt32(80), NodePort: port, Protocol: protocol},
				},
			}}
		}
		p.call("one", p.create(service("a", 31998, corev1.ProtocolTCP)))
		p.call("same", p.create(service("b", 31998, corev1.ProtocolTCP)))
		p.call("other protocol", p.create(service("c", 31998, corev1.ProtocolUDP)))
		other := service("d", 31997, corev1.ProtocolTCP)
		p.call("other", p.create(other))
		other.Spec.Ports[0].NodePort = 31998
		p.call("update", p.update(other))
		p.call("out of range", p.create(service("e", 80, corev1.ProtocolTCP)))
		for _, name := range []string{"a", "c", "d"} {
			p.must(client.IgnoreNotFound(p.remove(service(name, 0, ""))))
		}
	}},
	{"limit: Event about an object in another namespace", func(p *probe) {
		for _, namespace := range []string{p.namespace, "other", ""} {
			event := &corev1.Event{ObjectMeta: p.metadata("e" + namespace)}
			event.InvolvedObject = corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: "a"}
			p.call("'"+namespace+"'", p.create(event))
			event = &corev1.Event{ObjectMeta: p.metadata("n" + namespace)}
			event.InvolvedObject = corev1.ObjectReference{Kind: "Node", Namespace: namespace, Name: "a"}
			p.call("Node in '"+namespace+"'", p.create(event))
		}
		inDefault := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: p.namespace}}
		inDefault.InvolvedObject = corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "a"}
		p.call("Node in default", p.create(inDefault))
	}},
}
