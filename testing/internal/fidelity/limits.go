package fidelity

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// limitChecks are about what an API server refuses because of its size, or of other objects.
var limitChecks = []check{
	{"limit: size of a custom resource", func(p *probe) {
		for _, size := range []struct {
			what  string
			bytes int
		}{{"1 MiB", 1 << 20}, {"2 MiB", 2 << 20}, {"4 MiB", 4 << 20}} {
			w := p.gadget("a", nil)
			w.Object["spec"].(fields)["note"] = strings.Repeat("x", size.bytes)
			p.call(size.what, p.create(w))
			p.must(client.IgnoreNotFound(p.remove(w)))
		}
	}},
	{"limit: size of a request", func(p *probe) {
		cm := p.configMap("a")
		for _, size := range []struct {
			what  string
			bytes int
		}{{"2 MiB", 2 << 20}, {"4 MiB", 4 << 20}} {
			cm.Data = map[string]string{"a": strings.Repeat("x", size.bytes)}
			p.call(size.what, p.create(cm))
		}
		cm = p.configMap("a")
		p.given(cm)
		cm.Data = map[string]string{"a": strings.Repeat("x", 4<<20)}
		p.call("update", p.update(cm))
		p.call("patch", p.patch(cm, merge(`{"data":{"a":"`+strings.Repeat("x", 4<<20)+`"}}`)))
	}},
	{"limit: Event about an object in another namespace", func(p *probe) {
		for _, namespace := range []string{p.namespace, "other", ""} {
			event := &corev1.Event{ObjectMeta: p.metadata("e" + namespace)}
			event.InvolvedObject = corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: "a"}
			p.call("'"+namespace+"'", p.create(event))
			event = &corev1.Event{ObjectMeta: p.metadata("n" + namespace)}
			event.InvolvedObject = corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Namespace: namespace, Name: "a"}
			p.call("Node in '"+namespace+"'", p.create(event))
		}
		inDefault := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: p.namespace}}
		inDefault.InvolvedObject = corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "a"}
		p.call("Node in default", p.create(inDefault))
	}},
	{"limit: deadline of a Pod", func(p *probe) {
		for _, change := range []struct {
			what     string
			was, now *int64
		}{
			{"set", nil, new(int64(9))}, {"lowered", new(int64(9)), new(int64(8))},
			{"raised", new(int64(9)), new(int64(10))}, {"removed", new(int64(9)), nil},
		} {
			pod := p.pod(change.what)
			pod.Spec.ActiveDeadlineSeconds = change.was
			p.given(pod)
			pod.Spec.ActiveDeadlineSeconds = change.now
			p.call(change.what, p.update(pod))
		}
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
	{"limit: deletion time that a client sets", func(p *probe) {
		at := metav1.Unix(1000000000, 0)
		cm := p.configMap("a")
		cm.DeletionTimestamp = &at
		p.call("create", p.create(cm))
		p.note("terminating %t", cm.DeletionTimestamp != nil)
		held := p.held("b")
		p.given(held)
		held.DeletionTimestamp = &at
		p.call("update", p.update(held))
		g := p.gadget("c", nil)
		p.given(g)
		g.SetDeletionTimestamp(&at)
		p.call("Gadget", p.update(g))
		g = p.gadget("c", nil)
		p.must(p.get(g))
		g.SetDeletionGracePeriodSeconds(new(int64(5)))
		p.call("grace period", p.update(g))
	}},
}
