package fidelity

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func eviction() *policyv1.Eviction { return &policyv1.Eviction{} }

// newScale returns an empty scale. The client wants it unstructured for an unstructured object.
func newScale(obj client.Object) client.Object {
	if _, ok := obj.(*unstructured.Unstructured); !ok {
		return &autoscalingv1.Scale{}
	}
	scale := &unstructured.Unstructured{}
	scale.SetGroupVersionKind(autoscalingv1.SchemeGroupVersion.WithKind("Scale"))
	return scale
}

// scales reads and sets the scale of an object.
func (p *probe) scales(obj client.Object) {
	scale, into := newScale(obj), obj.DeepCopyObject().(client.Object)
	p.call("get", p.SubResource("scale").Get(p.ctx, into, scale))
	p.note("%s %s", at(scale, "spec"), at(scale, "status"))
	p.note("same object %t", scale.GetName() == obj.GetName() && scale.GetUID() == obj.GetUID() &&
		scale.GetResourceVersion() == p.read(obj).GetResourceVersion())
	setReplicas(scale, 3)
	p.call("update", p.SubResource("scale").Update(p.ctx, into, client.WithSubResourceBody(scale)))
	p.note("replicas %s", at(p.read(obj), "spec", "replicas"))
	scale.SetResourceVersion("1")
	p.call("old", p.SubResource("scale").Update(p.ctx, into, client.WithSubResourceBody(scale)))
	scale.SetResourceVersion("")
	setReplicas(scale, -1)
	p.call("negative", p.SubResource("scale").Update(p.ctx, into, client.WithSubResourceBody(scale)))
	p.note("replicas %s", at(p.read(obj), "spec", "replicas"))
}

func setReplicas(scale client.Object, replicas int32) {
	switch scale := scale.(type) {
	case *autoscalingv1.Scale:
		scale.Spec.Replicas = replicas
	case *unstructured.Unstructured:
		scale.Object["spec"] = fields{"replicas": int64(replicas)}
	}
}
