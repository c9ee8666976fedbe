package controllers

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// mark is what objects of a kind in a namespace are found by, so that a look takes no longer if there are more objects
// that it does not concern.
type mark struct {
	kind      schema.GroupKind
	namespace string
	by        markType
	name      string
	value     string
}

type markType int

const (
	// byLabel is a label of Pods and ReplicaSets.
	byLabel markType = iota
	// bySelector is the first label in the selector of an object. It is empty if the selector has no labels.
	bySelector
	// byClaim is the namespace and name of a claim that a Pod uses, or a volume is for. They are empty for a volume
	// that is for none.
	byClaim
)

// marksOf returns all marks of an object.
func marksOf(k key, obj client.Object) []mark {
	var all []mark
	add := func(by markType, name, value string) {
		all = append(all, mark{k.GroupKind, k.namespace, by, name, value})
	}
	addLabels := func() {
		for name, value := range obj.GetLabels() {
			add(byLabel, name, value)
		}
	}
	addSelector := func(selector map[string]string) {
		name := firstOf(selector)
		add(bySelector, name, selector[name])
	}
	switch obj := obj.(type) {
	case *corev1.Pod:
		addLabels()
		for _, volume := range obj.Spec.Volumes {
			if volume.PersistentVolumeClaim != nil {
				add(byClaim, k.namespace, volume.PersistentVolumeClaim.ClaimName)
			}
		}
	case *corev1.PersistentVolume:
		if ref := obj.Spec.ClaimRef; ref != nil {
			add(byClaim, ref.Namespace, ref.Name)
		} else {
			add(byClaim, "", "")
		}
	case *corev1.Service:
		addSelector(obj.Spec.Selector)
	case *appsv1.ReplicaSet:
		addLabels()
		addSelector(matchLabels(obj.Spec.Selector))
	case *appsv1.Deployment:
		addSelector(matchLabels(obj.Spec.Selector))
	case *appsv1.StatefulSet:
		addSelector(matchLabels(obj.Spec.Selector))
	}
	return all
}

func matchLabels(selector *metav1.LabelSelector) map[string]string {
	if selector == nil {
		return nil
	}
	return selector.MatchLabels
}

// firstOf returns the first name of a map, empty if there is none.
func firstOf(m map[string]string) string {
	if len(m) == 0 {
		return ""
	}
	return slices.Min(slices.Collect(maps.Keys(m)))
}

// markedKeys returns the objects with a mark, in their order.
func (v *view) markedKeys(m mark) []key {
	return slices.SortedFunc(maps.Keys(v.marked[m]), compareKeys)
}

// marked returns the objects with a mark, in their order.
func marked[T client.Object](v *view, m mark) []T {
	var all []T
	for _, k := range v.markedKeys(m) {
		if obj, ok := v.find(k).(T); ok {
			all = append(all, obj)
		}
	}
	return all
}

// labeledAs returns the objects of a kind in a namespace that have all of some labels.
func labeledAs[T client.Object](v *view, kind schema.GroupKind, namespace string, wanted map[string]string) []T {
	if len(wanted) == 0 {
		return list[T](v, kind, namespace)
	}
	var rarest mark
	for name, value := range wanted {
		m := mark{kind, namespace, byLabel, name, value}
		if rarest.name == "" || len(v.marked[m]) < len(v.marked[rarest]) {
			rarest = m
		}
	}
	selector := labels.SelectorFromSet(wanted)
	return slices.DeleteFunc(marked[T](v, rarest), func(obj T) bool {
		return !selector.Matches(labels.Set(obj.GetLabels()))
	})
}

// selecting returns the objects of a kind in a namespace whose selectors may select some labels.
func (v *view) selecting(kind schema.GroupKind, namespace string, labels map[string]string) []key {
	all := v.markedKeys(mark{kind, namespace, bySelector, "", ""})
	for name, value := range labels {
		all = append(all, v.markedKeys(mark{kind, namespace, bySelector, name, value})...)
	}
	slices.SortFunc(all, compareKeys)
	return all
}

// orphans returns the objects of a kind in a namespace that have no controller and the labels of a selector.
func orphans[T client.Object](v *view, kind schema.GroupKind, namespace string, selector *metav1.LabelSelector) []T {
	all := labeledAs[T](v, kind, namespace, matchLabels(selector))
	return slices.DeleteFunc(all, func(obj T) bool { return metav1.GetControllerOfNoCopy(obj) != nil })
}
