// Package resources has custom resources for the tests of this module: Widget, a typical resource of an operator, and
// Assembly, a component.
package resources

import (
	"context"
	"maps"

	"github.com/espalier-dev/espalier/apis"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// GroupVersion is the group and version of Widget and Assembly.
var GroupVersion = schema.GroupVersion{Group: "test.espalier.dev", Version: "v1"}

// The conditions of a Widget.
const (
	WidgetReady      = apis.ConditionReady
	WidgetChildReady = "ChildReady"
)

var widgetConditions = apis.NewLivingConditionSet(WidgetChildReady)

// Widget is a namespaced resource with conditions.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   WidgetSpec   `json:"spec,omitempty"`
	Status WidgetStatus `json:"status,omitempty"`
}

// WidgetSpec is the desired state of a Widget.
type WidgetSpec struct {
	// Fields have the meaning that a test gives them.
	Fields map[string]string `json:"fields,omitempty"`
}

// WidgetStatus is the observed state of a Widget.
type WidgetStatus struct {
	apis.Status          `json:",inline"`
	apis.LifecycleStatus `json:",inline"`
	apis.ItemsStatus     `json:",inline"`

	// Fields have the meaning that a test gives them.
	Fields map[string]string `json:"fields,omitempty"`
}

// InitializeConditions sets up the conditions of a Widget.
func (s *WidgetStatus) InitializeConditions(ctx context.Context) {
	widgetConditions.ManageWithContext(ctx, s).InitializeConditions()
}

// MarkChildReady marks the child as ready.
func (s *WidgetStatus) MarkChildReady(ctx context.Context) {
	widgetConditions.ManageWithContext(ctx, s).MarkTrue(WidgetChildReady, "Ready", "")
}

// MarkChildNotReady marks the child as not ready, with a reason.
func (s *WidgetStatus) MarkChildNotReady(ctx context.Context, reason, message string) {
	widgetConditions.ManageWithContext(ctx, s).MarkFalse(WidgetChildReady, reason, "%s", message)
}

// AddField sets a field of the status.
func (s *WidgetStatus) AddField(key, value string) {
	if s.Fields == nil {
		s.Fields = map[string]string{}
	}
	s.Fields[key] = value
}

// WidgetList is a list of Widgets.
type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Widget `json:"items"`
}

// NewScheme returns a scheme with Widget, Assembly and all types of client-go.
func NewScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	add := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, AddToScheme)
	if err := add.AddToScheme(scheme); err != nil {
		panic(err) // the types are fixed when this is compiled
	}
	return scheme
}

// AddToScheme adds Widget and Assembly to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Widget{}, &WidgetList{}, &Assembly{}, &AssemblyList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// DeepCopy returns a copy that shares nothing with w.
func (w *Widget) DeepCopy() *Widget {
	if w == nil {
		return nil
	}
	out := &Widget{TypeMeta: w.TypeMeta}
	w.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Fields = maps.Clone(w.Spec.Fields)
	w.Status.Status.DeepCopyInto(&out.Status.Status)
	w.Status.LifecycleStatus.DeepCopyInto(&out.Status.LifecycleStatus)
	w.Status.ItemsStatus.DeepCopyInto(&out.Status.ItemsStatus)
	out.Status.Fields = maps.Clone(w.Status.Fields)
	return out
}

// DeepCopyObject is DeepCopy for a runtime.Object.
func (w *Widget) DeepCopyObject() runtime.Object {
	if w == nil {
		return nil
	}
	return w.DeepCopy()
}

// DeepCopyObject returns a copy that shares nothing with l.
func (l *WidgetList) DeepCopyObject() runtime.Object {
	if l == nil {
		return nil
	}
	out := &WidgetList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	if l.Items != nil {
		out.Items = make([]Widget, len(l.Items))
		for i := range l.Items {
			out.Items[i] = *l.Items[i].DeepCopy()
		}
	}
	return out
}
