package controllers

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// namespaces deletes what is in a namespace that is being deleted, and then lets it go. See "Namespaces" in the
// Kubernetes documentation.
func namespaces(options Options) *controller {
	return &controller{
		name: "kube-controller-manager", kinds: []schema.GroupKind{namespaceKind},
		decide: func(v *view, _ key, obj client.Object, now time.Time) decision {
			namespace := obj.(*corev1.Namespace)
			if namespace.DeletionTimestamp == nil {
				return decision{}
			}
			if begin := namespace.DeletionTimestamp.Add(options.NamespaceGrace); now.Before(begin) {
				return decision{next: begin}
			}
			return endNamespace(namespace, contentOf(v, namespace.Name), now)
		},
		concerns: func(v *view, k key, _ client.Object) []key {
			namespace := key{GroupKind: namespaceKind, name: k.namespace}
			if obj := v.find(namespace); obj != nil && obj.GetDeletionTimestamp() != nil {
				return []key{namespace}
			}
			return nil
		},
	}
}

// content is what is in a namespace.
type content struct {
	kind     schema.GroupKind
	resource schema.GroupResource
	objects  []client.Object
}

// contentOf returns the kinds of which there are objects in a namespace.
func contentOf(v *view, namespace string) []content {
	var all []content
	for _, kind := range v.kinds() {
		c := content{kind: kind, resource: v.tables[kind].resource}
		for _, k := range v.keys(kind, namespace) {
			c.objects = append(c.objects, v.find(k))
		}
		if len(c.objects) > 0 {
			all = append(all, c)
		}
	}
	return all
}

// endNamespace decides about a namespace that is being deleted. All that is in it is deleted first. What does not go
// away is told in the conditions that the Kubernetes API reference names, NamespaceStatus v1 core.
func endNamespace(namespace *corev1.Namespace, all []content, now time.Time) decision {
	var d decision
	for _, c := range all {
		for _, obj := range c.objects {
			if obj.GetDeletionTimestamp() == nil {
				w := deletion(obj)
				w.kind = c.kind
				d.add(w)
			}
		}
	}
	if len(d.writes) > 0 {
		return d
	}
	next := namespace.DeepCopy()
	setNamespaceConditions(&next.Status, all, now)
	d.add(changed(updateStatus, next, namespace)...)
	i := slices.Index(namespace.Spec.Finalizers, corev1.FinalizerKubernetes)
	if len(d.writes) > 0 || len(all) > 0 || i < 0 {
		return d
	}
	next.Spec.Finalizers = slices.Delete(next.Spec.Finalizers, i, i+1)
	d.add(write{verb: finalize, object: next})
	return d
}

func setNamespaceConditions(status *corev1.NamespaceStatus, all []content, now time.Time) {
	set := func(kind corev1.NamespaceConditionType, value bool, reason, message string) {
		c := corev1.NamespaceCondition{Type: kind, Status: truth(value), Reason: reason, Message: message}
		c.LastTransitionTime.Time = now
		i := slices.IndexFunc(status.Conditions, func(c corev1.NamespaceCondition) bool { return c.Type == kind })
		if i < 0 {
			status.Conditions = append(status.Conditions, c)
			return
		}
		if was := status.Conditions[i]; was.Status == c.Status {
			c.LastTransitionTime = was.LastTransitionTime
		}
		status.Conditions[i] = c
	}
	set(corev1.NamespaceDeletionDiscoveryFailure, false, "ResourcesDiscovered",
		"All resources successfully discovered")
	set(corev1.NamespaceDeletionGVParsingFailure, false, "ParsedGroupVersions",
		"All legacy kube types successfully parsed")
	set(corev1.NamespaceDeletionContentFailure, false, "ContentDeleted",
		"All content successfully deleted, may be waiting on finalization")
	var left []string
	finalizers := map[string]int{}
	for _, c := range all {
		left = append(left,
			fmt.Sprintf("%s.%s has %d resource instances", c.resource.Resource, c.resource.Group, len(c.objects)))
		for _, obj := range c.objects {
			for _, finalizer := range obj.GetFinalizers() {
				finalizers[finalizer]++
			}
		}
	}
	if len(left) > 0 {
		set(corev1.NamespaceContentRemaining, true, "SomeResourcesRemain",
			"Some resources are remaining: "+strings.Join(left, ", "))
	} else {
		set(corev1.NamespaceContentRemaining, false, "ContentRemoved", "All content successfully removed")
	}
	var held []string
	for _, finalizer := range slices.Sorted(maps.Keys(finalizers)) {
		held = append(held, fmt.Sprintf("%s in %d resource instances", finalizer, finalizers[finalizer]))
	}
	if len(held) > 0 {
		set(corev1.NamespaceFinalizersRemaining, true, "SomeFinalizersRemain",
			"Some content in the namespace has finalizers remaining: "+strings.Join(held, ", "))
	} else {
		set(corev1.NamespaceFinalizersRemaining, false, "ContentHasNoFinalizers",
			"All content-preserving finalizers finished")
	}
}

// truth is a condition status.
func truth(is bool) corev1.ConditionStatus {
	if is {
		return corev1.ConditionTrue
	}
	return corev1.ConditionFalse
}
