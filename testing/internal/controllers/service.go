package controllers

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// balancerFinalizer keeps a Service until its load balancer is gone, see "Service: Garbage collecting load balancers"
// in the Kubernetes documentation.
const balancerFinalizer = "service.kubernetes.io/load-balancer-cleanup"

// loadBalancers gives Services of the type LoadBalancer an address. See "Service: type LoadBalancer" in the Kubernetes
// documentation. Services of a class are left to others.
func loadBalancers() *controller {
	return &controller{
		name: "cloud-controller-manager", kinds: []schema.GroupKind{serviceKind},
		decide: func(_ *view, _ key, obj client.Object, _ time.Time) decision {
			return decideBalancer(obj.(*corev1.Service))
		},
	}
}

func decideBalancer(service *corev1.Service) decision {
	next := service.DeepCopy()
	held := slices.Index(service.Finalizers, balancerFinalizer)
	wanted := service.Spec.Type == corev1.ServiceTypeLoadBalancer && service.Spec.LoadBalancerClass == nil &&
		service.DeletionTimestamp == nil
	switch {
	case wanted && held < 0:
		next.Finalizers = append(next.Finalizers, balancerFinalizer)
		return decision{writes: []write{{verb: update, object: next}}}
	case wanted:
		h := fnv.New32a()
		_, _ = h.Write([]byte(service.Namespace + "/" + service.Name))
		next.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{
			IP:     fmt.Sprintf("203.0.113.%d", 1+h.Sum32()%254),
			IPMode: ptr.To(corev1.LoadBalancerIPModeVIP),
		}}
		return decision{writes: changed(updateStatus, next, service)}
	case held >= 0 && len(service.Status.LoadBalancer.Ingress) > 0:
		next.Status.LoadBalancer = corev1.LoadBalancerStatus{}
		return decision{writes: []write{{verb: updateStatus, object: next}}}
	case held >= 0:
		next.Finalizers = slices.Delete(next.Finalizers, held, held+1)
		return decision{writes: []write{{verb: update, object: next}}}
	}
	return decision{}
}

var serviceVersion = corev1.SchemeGroupVersion.WithKind("Service")

// endpointSlices keeps one EndpointSlice for each Service with a selector. See "EndpointSlices" in the Kubernetes
// documentation. Endpoints, which are deprecated, are not kept.
func endpointSlices() *controller {
	return &controller{
		name: "kube-controller-manager", kinds: []schema.GroupKind{serviceKind},
		decide: func(v *view, _ key, obj client.Object, _ time.Time) decision {
			service := obj.(*corev1.Service)
			if len(service.Spec.Selector) == 0 || service.DeletionTimestamp != nil {
				return decision{}
			}
			return decideSlice(service, labeledAs[*corev1.Pod](v, podKind, service.Namespace, service.Spec.Selector),
				controlled[*discoveryv1.EndpointSlice](v, service))
		},
		concerns: func(v *view, _ key, obj client.Object) []key {
			pod, ok := obj.(*corev1.Pod)
			if !ok {
				return nil
			}
			return slices.DeleteFunc(v.selecting(serviceKind, pod.Namespace, pod.Labels), func(k key) bool {
				service, ok := v.find(k).(*corev1.Service)
				return !ok || !labels.SelectorFromSet(service.Spec.Selector).Matches(labelsOf(pod))
			})
		},
	}
}

func labelsOf(obj client.Object) labels.Set { return labels.Set(obj.GetLabels()) }

// decideSlice has a slice tell the Pods that a Service selects and that have an address.
func decideSlice(service *corev1.Service, pods []*corev1.Pod, there []*discoveryv1.EndpointSlice) decision {
	wanted := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: service.Name + "-", Namespace: service.Namespace,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(service, serviceVersion)},
			Labels: with(with(service.Labels, discoveryv1.LabelServiceName, service.Name),
				discoveryv1.LabelManagedBy, "endpointslice-controller.k8s.io"),
		},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	if service.Spec.ClusterIP == corev1.ClusterIPNone {
		wanted.Labels[corev1.IsHeadlessService] = ""
	}
	for _, pod := range pods {
		if pod.Status.PodIP == "" || isFinished(pod) {
			continue
		}
		wanted.Endpoints = append(wanted.Endpoints, endpointOf(pod, service.Spec.PublishNotReadyAddresses))
		if wanted.Ports == nil {
			wanted.Ports = portsOf(service, pod)
		}
	}
	slices.SortFunc(wanted.Endpoints, func(a, b discoveryv1.Endpoint) int {
		return cmp.Compare(a.Addresses[0], b.Addresses[0])
	})
	if len(there) == 0 {
		return decision{writes: []write{{verb: create, object: wanted}}}
	}
	next := there[0].DeepCopy()
	next.Labels, next.Endpoints, next.Ports = wanted.Labels, wanted.Endpoints, wanted.Ports
	var d decision
	if !equality.Semantic.DeepEqual(next, there[0]) {
		d.add(write{verb: update, object: next})
	}
	for _, spare := range there[1:] {
		d.add(write{verb: remove, object: spare})
	}
	return d
}

// endpointOf returns the endpoint of a Pod, see the Kubernetes API reference, EndpointConditions v1 discovery.k8s.io.
func endpointOf(pod *corev1.Pod, notReady bool) discoveryv1.Endpoint {
	_, serving := readySince(pod)
	terminating := pod.DeletionTimestamp != nil
	return discoveryv1.Endpoint{
		Addresses: []string{pod.Status.PodIP}, NodeName: &pod.Spec.NodeName,
		TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Conditions: discoveryv1.EndpointConditions{
			Ready: ptr.To(notReady || serving && !terminating), Serving: &serving, Terminating: &terminating,
		},
	}
}

// portsOf returns the ports of a Service at a Pod.
func portsOf(service *corev1.Service, pod *corev1.Pod) []discoveryv1.EndpointPort {
	ports := []discoveryv1.EndpointPort{}
	for _, port := range service.Spec.Ports {
		number := port.TargetPort.IntVal
		if port.TargetPort.Type == intstr.String {
			for _, container := range pod.Spec.Containers {
				for _, named := range container.Ports {
					if named.Name == port.TargetPort.StrVal {
						number = named.ContainerPort
					}
				}
			}
		}
		if number == 0 {
			number = port.Port
		}
		ports = append(ports, discoveryv1.EndpointPort{
			Name: ptr.To(port.Name), Protocol: ptr.To(cmp.Or(port.Protocol, corev1.ProtocolTCP)), Port: &number,
			AppProtocol: port.AppProtocol,
		})
	}
	return ports
}
