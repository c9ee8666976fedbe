package server

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/storage"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/registry"
)

// selectable are the values of the fields that selectors can name besides name and namespace, see "Field Selectors" in
// the Kubernetes documentation. They take the object in the Go type of the hub.
var selectable = map[schema.GroupKind]func(obj runtime.Object) fields.Set{
	{Kind: "Pod"}:   fieldsOf(podFields),
	{Kind: "Event"}: fieldsOf(eventFields),
	{Kind: "Namespace"}: fieldsOf(func(n *corev1.Namespace) fields.Set {
		return fields.Set{"status.phase": string(n.Status.Phase)}
	}),
	{Kind: "Node"}: fieldsOf(func(n *corev1.Node) fields.Set {
		return fields.Set{"spec.unschedulable": fmt.Sprint(n.Spec.Unschedulable)}
	}),
	{Kind: "Secret"}: fieldsOf(func(s *corev1.Secret) fields.Set { return fields.Set{"type": string(s.Type)} }),
	{Kind: "Service"}: fieldsOf(func(s *corev1.Service) fields.Set {
		return fields.Set{"spec.clusterIP": s.Spec.ClusterIP, "spec.type": string(s.Spec.Type)}
	}),
}

func fieldsOf[T runtime.Object](values func(T) fields.Set) func(runtime.Object) fields.Set {
	return func(obj runtime.Object) fields.Set { return values(obj.(T)) }
}

func podFields(p *corev1.Pod) fields.Set {
	return fields.Set{
		"spec.nodeName":            p.Spec.NodeName,
		"spec.restartPolicy":       string(p.Spec.RestartPolicy),
		"spec.schedulerName":       p.Spec.SchedulerName,
		"spec.serviceAccountName":  p.Spec.ServiceAccountName,
		"spec.hostNetwork":         fmt.Sprint(p.Spec.HostNetwork),
		"status.phase":             string(p.Status.Phase),
		"status.podIP":             p.Status.PodIP,
		"status.nominatedNodeName": p.Status.NominatedNodeName,
	}
}

func eventFields(e *corev1.Event) fields.Set {
	source := e.Source.Component
	if source == "" {
		source = e.ReportingController
	}
	return fields.Set{
		"involvedObject.kind":            e.InvolvedObject.Kind,
		"involvedObject.namespace":       e.InvolvedObject.Namespace,
		"involvedObject.name":            e.InvolvedObject.Name,
		"involvedObject.uid":             string(e.InvolvedObject.UID),
		"involvedObject.apiVersion":      e.InvolvedObject.APIVersion,
		"involvedObject.resourceVersion": e.InvolvedObject.ResourceVersion,
		"involvedObject.fieldPath":       e.InvolvedObject.FieldPath,
		"reason":                         e.Reason,
		"reportingComponent":             e.ReportingController,
		"source":                         source,
		"type":                           e.Type,
	}
}

// attributes returns what selectors of a kind look at.
func (k kind) attributes() storage.AttrFunc {
	own := selectable[k.Kind]
	return func(obj runtime.Object) (labels.Set, fields.Set, error) {
		o, ok := obj.(client.Object)
		if !ok {
			return nil, nil, fmt.Errorf("%T is not an object", obj)
		}
		set := fields.Set{}
		if own != nil {
			set = own(obj)
		}
		set["metadata.name"] = o.GetName()
		if k.Scope == registry.Namespaced {
			set["metadata.namespace"] = o.GetNamespace()
		}
		return o.GetLabels(), set, nil
	}
}

// addFieldLabels lets requests name the fields of a kind.
func addFieldLabels(s *runtime.Scheme, k kind) {
	own := selectable[k.Kind]
	if own == nil {
		return
	}
	known := own(k.object())
	utilruntime.Must(s.AddFieldLabelConversionFunc(k.hub(), func(label, value string) (string, string, error) {
		if _, ok := known[label]; ok {
			return label, value, nil
		}
		return runtime.DefaultMetaV1FieldSelectorConversion(label, value)
	}))
}
