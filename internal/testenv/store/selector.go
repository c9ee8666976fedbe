package store

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fieldValues returns the values of a field that an object has; a server's field has one.
type fieldValues func(*record) []string

// selector returns what the options of a list select.
func (c *Client) selector(r *resource, options *client.ListOptions) (func(*record) bool, error) {
	byLabels := options.LabelSelector
	if byLabels == nil {
		byLabels = labels.Everything()
	}
	byFields, err := c.fieldSelector(r, options.FieldSelector)
	if err != nil {
		return nil, err
	}
	return func(r *record) bool {
		return (byLabels.Empty() || byLabels.Matches(labels.Set(r.object.GetLabels()))) && byFields(r)
	}, nil
}

func (c *Client) fieldSelector(r *resource, selector fields.Selector) (func(*record) bool, error) {
	if selector == nil || selector.Empty() {
		return func(*record) bool { return true }, nil
	}
	requirements := selector.Requirements()
	values := make([]fieldValues, len(requirements))
	for i, requirement := range requirements {
		values[i] = c.valuesOf(r, requirement.Field)
		if values[i] == nil {
			return nil, c.notSelectable(r, requirement.Field)
		}
	}
	return func(r *record) bool {
		for i, requirement := range requirements {
			found := slices.Contains(values[i](r), requirement.Value)
			if found == (requirement.Operator == "!=") {
				return false
			}
		}
		return true
	}, nil
}

func (c *Client) notSelectable(r *resource, name string) error {
	if c.options.View != nil {
		//lint:ignore ST1005 it is the text of client-go
		return fmt.Errorf("Index with name field:%s does not exist", name)
	}
	return apierrors.NewBadRequest(fmt.Sprintf("Unable to find %q that match label selector %q, field selector %q: "+
		"field label not supported: %s", r.resource.WithVersion(r.gvk.Version), "", name, name))
}

// valuesOf returns what returns the values of a field; nil if the kind is not selected by it.
func (c *Client) valuesOf(r *resource, name string) fieldValues {
	switch name {
	case "metadata.name":
		return func(r *record) []string { return []string{r.name} }
	case "metadata.namespace":
		return func(r *record) []string { return []string{r.namespace} }
	}
	if c.options.View != nil {
		if index, ok := c.options.Indexes[r.gvk.GroupKind()][name]; ok {
			return func(r *record) []string { return index(r.object) }
		}
	}
	if path, ok := selectableFields[r.gvk.GroupKind()][name]; ok {
		return path
	}
	return r.selectableField(name)
}

// selectableField returns the values of a field that the definition of the kind lets select.
func (r *resource) selectableField(name string) fieldValues {
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

// atPath returns the value at a JSON path, which is empty if there is none.
func atPath(path string) fieldValues {
	parsed := jsonpath.New(path).AllowMissingKeys(true)
	if err := parsed.Parse("{" + path + "}"); err != nil {
		return nil
	}
	return func(r *record) []string {
		content, err := r.content(r.gvk.GroupVersion())
		if err != nil {
			return []string{""}
		}
		results, err := parsed.FindResults(content)
		if err != nil || len(results) == 0 || len(results[0]) == 0 {
			return []string{""}
		}
		return []string{fmt.Sprint(results[0][0].Interface())}
	}
}

// fieldOf returns the value of a field of a Go type.
func fieldOf[T client.Object](value func(T) string) fieldValues {
	return func(r *record) []string {
		if obj, ok := r.object.(T); ok {
			return []string{value(obj)}
		}
		return []string{""}
	}
}

// selectableFields are those of the built-in kinds, see "Field Selectors" in the Kubernetes documentation.
var selectableFields = map[schema.GroupKind]map[string]fieldValues{
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
