package resources

import (
	"maps"

	"k8s.io/apimachinery/pkg/runtime"
)

// DeepCopy returns a copy that shares nothing with w.
func (w *Widget) DeepCopy() *Widget {
	if w == nil {
		return nil
	}
	out := &Widget{TypeMeta: w.TypeMeta}
	w.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Fields = maps.Clone(w.Spec.Fields)
	w.Status.Status.DeepCopyInto(&out.Status.Status)
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
