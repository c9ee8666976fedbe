package registry

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// FilledIn returns a function that takes back what an API server fills in when it stores an object of a kind, such as
// the address of a Service: completed then has there what sent has. Defaults stay. Field managers see an object as it
// is before that, so nobody manages what is filled in. FilledIn returns nil for a kind of which nothing is filled in.
//
// The function changes completed, which may share memory with sent afterwards.
func FilledIn(kind schema.GroupKind) func(completed, sent client.Object) { return filledIn[kind] }

var filledIn = map[schema.GroupKind]func(completed, sent client.Object){
	{Kind: "Namespace"}: func(completed, sent client.Object) {
		completed.(*corev1.Namespace).Spec.Finalizers = sent.(*corev1.Namespace).Spec.Finalizers
	},
	{Kind: "PersistentVolumeClaim"}: func(completed, sent client.Object) {
		to, from := completed.(*corev1.PersistentVolumeClaim), sent.(*corev1.PersistentVolumeClaim)
		to.Spec.DataSource, to.Spec.DataSourceRef = from.Spec.DataSource, from.Spec.DataSourceRef
	},
	{Kind: "Service"}: func(completed, sent client.Object) {
		to, from := &completed.(*corev1.Service).Spec, &sent.(*corev1.Service).Spec
		to.ClusterIP, to.ClusterIPs = from.ClusterIP, from.ClusterIPs
		to.IPFamilies, to.IPFamilyPolicy = from.IPFamilies, from.IPFamilyPolicy
		to.HealthCheckNodePort = from.HealthCheckNodePort
		for i := range to.Ports {
			to.Ports[i].NodePort = from.Ports[i].NodePort
		}
	},
	{Group: "batch", Kind: "Job"}: func(completed, sent client.Object) {
		to, from := &completed.(*batchv1.Job).Spec, &sent.(*batchv1.Job).Spec
		to.Selector, to.Template.Labels = from.Selector, from.Template.Labels
		if labels := sent.GetLabels(); len(labels) > 0 {
			completed.SetLabels(labels)
		} else if len(completed.GetLabels()) > 0 {
			completed.SetLabels(from.Template.Labels)
		}
	},
}
