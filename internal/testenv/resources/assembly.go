package resources

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/generator"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Assembly is a namespaced resource that is one component. Its spec has the desired objects and all settings of a
// component.
type Assembly struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   AssemblySpec         `json:"spec,omitempty"`
	Status apis.ComponentStatus `json:"status,omitempty"`
}

// AssemblySpec is the desired state of an Assembly.
type AssemblySpec struct {
	generator.PlacementSpec     `json:",inline"`
	generator.ClientSpec        `json:",inline"`
	generator.ImpersonationSpec `json:",inline"`
	generator.SuspensionSpec    `json:",inline"`
	generator.RequeueSpec       `json:",inline"`
	generator.RetrySpec         `json:",inline"`
	generator.TimeoutSpec       `json:",inline"`
	generator.PolicySpec        `json:",inline"`
	generator.TypeSpec          `json:",inline"`
	generator.ReapplySpec       `json:",inline"`

	// Objects are manifests.
	Objects []runtime.RawExtension `json:"objects,omitempty"`
}

// NewAssembly returns an Assembly of objects.
func NewAssembly(namespace, name string, objects ...client.Object) *Assembly {
	a := &Assembly{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	a.TypeMeta = metav1.TypeMeta{APIVersion: GroupVersion.String(), Kind: "Assembly"}
	a.SetObjects(objects...)
	return a
}

// SetObjects replaces the objects. Each must have its kind set.
func (a *Assembly) SetObjects(objects ...client.Object) {
	a.Spec.Objects = nil
	for _, object := range objects {
		// The members are sorted, as those that a server sends.
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			panic(err) // a mistake in a test
		}
		raw, err := json.Marshal(content)
		if err != nil {
			panic(err)
		}
		a.Spec.Objects = append(a.Spec.Objects, runtime.RawExtension{Raw: raw})
	}
}

// AssemblyGenerator returns the objects of the spec.
func AssemblyGenerator() generator.Generator {
	return generator.GeneratorFunc(func(
		_ context.Context, _, _ string, parameters generator.Unstructurable,
	) ([]client.Object, error) {
		manifests, _, err := unstructured.NestedSlice(parameters.ToUnstructured(), "objects")
		if err != nil {
			return nil, err
		}
		objects := make([]client.Object, 0, len(manifests))
		for i, manifest := range manifests {
			content, ok := manifest.(map[string]any)
			if !ok {
				return nil, fmt.Errorf("object %d is no object", i)
			}
			objects = append(objects, &unstructured.Unstructured{Object: content})
		}
		return objects, nil
	})
}

// AssemblyList is a list of Assemblies.
type AssemblyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Assembly `json:"items"`
}

// DeepCopy returns a copy that shares nothing with a.
func (a *Assembly) DeepCopy() *Assembly {
	if a == nil {
		return nil
	}
	out := &Assembly{TypeMeta: a.TypeMeta}
	a.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	a.Spec.DeepCopyInto(&out.Spec)
	a.Status.DeepCopyInto(&out.Status)
	return out
}

// DeepCopyInto makes out a copy that shares nothing with s.
func (s *AssemblySpec) DeepCopyInto(out *AssemblySpec) {
	s.PlacementSpec.DeepCopyInto(&out.PlacementSpec)
	s.ClientSpec.DeepCopyInto(&out.ClientSpec)
	s.ImpersonationSpec.DeepCopyInto(&out.ImpersonationSpec)
	s.SuspensionSpec.DeepCopyInto(&out.SuspensionSpec)
	s.RequeueSpec.DeepCopyInto(&out.RequeueSpec)
	s.RetrySpec.DeepCopyInto(&out.RetrySpec)
	s.TimeoutSpec.DeepCopyInto(&out.TimeoutSpec)
	s.PolicySpec.DeepCopyInto(&out.PolicySpec)
	s.TypeSpec.DeepCopyInto(&out.TypeSpec)
	s.ReapplySpec.DeepCopyInto(&out.ReapplySpec)
	out.Objects = nil
	for i := range s.Objects {
		out.Objects = append(out.Objects, *s.Objects[i].DeepCopy())
	}
}

// DeepCopyObject is DeepCopy for a runtime.Object.
func (a *Assembly) DeepCopyObject() runtime.Object {
	if a == nil {
		return nil
	}
	return a.DeepCopy()
}

// DeepCopyObject returns a copy that shares nothing with l.
func (l *AssemblyList) DeepCopyObject() runtime.Object {
	if l == nil {
		return nil
	}
	out := &AssemblyList{TypeMeta: l.TypeMeta, Items: make([]Assembly, len(l.Items))}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range l.Items {
		out.Items[i] = *l.Items[i].DeepCopy()
	}
	return out
}
