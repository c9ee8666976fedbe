package store

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fieldValue returns the value of a field of an object.
type fieldValue func(*record) string

// selector returns what an API server selects by the options of a list.
func (r *resource) selector(options *client.ListOptions) (func(*record) bool, error) {
	byFields, err := r.fieldSelector(options.FieldSelector)
	return both(options.LabelSelector, byFields), err
}

// cacheSelector returns what a cache selects by the options of a list. NewItem makes an item of the list.
func (c *memoryClient) cacheSelector(
	r *resource, options *client.ListOptions, newItem func() client.Object,
) (func(*record) bool, error) {
	byFields, err := c.indexSelector(r, options.FieldSelector, newItem)
	return both(options.LabelSelector, byFields), err
}

// both returns what is selected by labels and by fields.
func both(byLabels labels.Selector, byFields func(*record) bool) func(*record) bool {
	if byLabels == nil || byLabels.Empty() {
		return byFields
	}
	return func(r *record) bool { return byLabels.Matches(labels.Set(r.object.GetLabels())) && byFields(r) }
}

func everything(*record) bool { return true }

// fieldSelector returns what an API server selects by fields.
func (r *resource) fieldSelector(selector fields.Selector) (func(*record) bool, error) {
	if selector == nil || selector.Empty() {
		return everything, nil
	}
	requirements := selector.Requirements()
	values := make([]fieldValue, len(requirements))
	for i, requirement := range requirements {
		values[i] = r.valueOf(requirement.Field)
		if values[i] == nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("Unable to find %q that match label selector %q, field "+
				"selector %q: field label not supported: %s",
				r.resource.WithVersion(r.gvk.Version), "", requirement.Field, requirement.Field))
		}
	}
	return func(r *record) bool {
		for i, requirement := range requirements {
			if equal := values[i](r) == requirement.Value; equal == (requirement.Operator == selection.NotEquals) {
				return false
			}
		}
		return true
	}, nil
}

// valueOf returns the function that reads a field; nil if an API server does not select by the field.
func (r *resource) valueOf(name string) fieldValue {
	switch name {
	case "metadata.name":
		return func(r *record) string { return r.name }
	case "metadata.namespace":
		return func(r *record) string { return r.namespace }
	}
	if path, ok := selectableFields[r.gvk.GroupKind()][name]; ok {
		return path
	}
	return r.selectableField(name)
}

// selectableField returns the function that reads a selectable field of the definition of the kind; nil for another.
func (r *resource) selectableField(name string) fieldValue {
	if r.definition == nil {
		return nil
	}
	for _, version := range r.definition.Spec.Versions {
		for _, selectable := range version.SelectableFields {
			if version.Name == r.gvk.Version && selectable.JSONPath == "."+name {
				return atPath(selectable.JSONPath)
			}
		}
	}
	return nil
}

// atPath returns the function that reads the value at a JSON path; it is empty if there is none.
func atPath(path string) fieldValue {
	parsed := jsonpath.New(path).AllowMissingKeys(true)
	if err := parsed.Parse("{" + path + "}"); err != nil {
		return nil
	}
	return func(r *record) string {
		content, err := r.content(r.gvk.GroupVersion())
		if err != nil {
			return ""
		}
		results, err := parsed.FindResults(content)
		if err != nil || len(results) == 0 || len(results[0]) == 0 {
			return ""
		}
		return fmt.Sprint(results[0][0].Interface())
	}
}

// fieldOf returns the function that reads a field of a Go type.
func fieldOf[T client.Object](value func(T) string) fieldValue {
	return func(r *record) string {
		if obj, ok := r.object.(T); ok {
			return value(obj)
		}
		return ""
	}
}

// selectableFields are those of the built-in kinds, see "Field Selectors" in the Kubernetes documentation.
var selectableFields = map[schema.GroupKind]map[string]fieldValue{
	{Kind: "Pod"}: {
		"spec.nodeName":            fieldOf(func(p *corev1.Pod) string { return p.Spec.NodeName }),
		"spec.restartPolicy":       fieldOf(func(p *corev1.Pod) string { return string(p.Spec.RestartPolicy) }),
		"spec.schedulerName":       fieldOf(func(p *corev1.Pod) string { return p.Spec.SchedulerName }),
		"spec.serviceAccountName":  fieldOf(func(p *corev1.Pod) string { return p.Spec.ServiceAccountName }),
		"spec.hostNetwork":         fieldOf(func(p *corev1.Pod) string { return fmt.Sprint(p.Spec.HostNetwork) }),
		"status.phase":             fieldOf(func(p *corev1.Pod) string { return string(p.Status.Phase) }),
		"status.podIP":             fieldOf(func(p *corev1.Pod) string { return p.Status.PodIP }),
		"status.nominatedNodeName": fieldOf(func(p *corev1.Pod) string { return p.Status.NominatedNodeName }),
	},
	{Kind: "Event"}: {
		"involvedObject.kind":       fieldOf(func(e *corev1.Event) string { return e.InvolvedObject.Kind }),
		"involvedObject.namespace":  fieldOf(func(e *corev1.Event) string { return e.InvolvedObject.Namespace }),
		"involvedObject.name":       fieldOf(func(e *corev1.Event) string { return e.InvolvedObject.Name }),
		"involvedObject.uid":        fieldOf(func(e *corev1.Event) string { return string(e.InvolvedObject.UID) }),
		"involvedObject.apiVersion": fieldOf(func(e *corev1.Event) string { return e.InvolvedObject.APIVersion }),
		"involvedObject.resourceVersion": fieldOf(func(e *corev1.Event) string {
			return e.InvolvedObject.ResourceVersion
		}),
		"involvedObject.fieldPath": fieldOf(func(e *corev1.Event) string { return e.InvolvedObject.FieldPath }),
		"reason":                   fieldOf(func(e *corev1.Event) string { return e.Reason }),
		"reportingComponent":       fieldOf(func(e *corev1.Event) string { return e.ReportingController }),
		"source":                   fieldOf(func(e *corev1.Event) string { return e.Source.Component }),
		"type":                     fieldOf(func(e *corev1.Event) string { return e.Type }),
	},
	{Kind: "Namespace"}: {
		"status.phase": fieldOf(func(n *corev1.Namespace) string { return string(n.Status.Phase) }),
	},
	{Kind: "Node"}: {
		"spec.unschedulable": fieldOf(func(n *corev1.Node) string { return fmt.Sprint(n.Spec.Unschedulable) }),
	},
	{Kind: "Secret"}: {
		"type": fieldOf(func(s *corev1.Secret) string { return string(s.Type) }),
	},
}
