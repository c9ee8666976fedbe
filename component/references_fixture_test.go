package component_test

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Referrer is a component whose spec refers to ConfigMaps and Secrets.
type Referrer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ReferrerSpec         `json:"spec,omitempty"`
	Status apis.ComponentStatus `json:"status,omitempty"`
}

type ReferrerSpec struct {
	generator.ImpersonationSpec `json:",inline"`
	generator.RetrySpec         `json:",inline"`
	generator.ValuesFromSpec    `json:",inline"`

	Password *generator.SecretKeyReference           `json:"password,omitempty"`
	Colors   map[string]generator.ConfigMapReference `json:"colors,omitempty"`
	Values   map[string]string                       `json:"values,omitempty"`
}

func (r *Referrer) DeepCopyObject() runtime.Object {
	out := &Referrer{TypeMeta: r.TypeMeta, Spec: ReferrerSpec{ImpersonationSpec: r.Spec.ImpersonationSpec, Password: r.Spec.Password.DeepCopy()}}
	r.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	r.Status.DeepCopyInto(&out.Status)
	r.Spec.RetrySpec.DeepCopyInto(&out.Spec.RetrySpec)
	r.Spec.ValuesFromSpec.DeepCopyInto(&out.Spec.ValuesFromSpec)
	for name, ref := range r.Spec.Colors {
		if out.Spec.Colors == nil {
			out.Spec.Colors = map[string]generator.ConfigMapReference{}
		}
		out.Spec.Colors[name] = *ref.DeepCopy()
	}
	for name, value := range r.Spec.Values {
		if out.Spec.Values == nil {
			out.Spec.Values = map[string]string{}
		}
		out.Spec.Values[name] = value
	}
	return out
}

type ReferrerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Referrer `json:"items"`
}

func (l *ReferrerList) DeepCopyObject() runtime.Object {
	out := &ReferrerList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*Referrer))
	}
	return out
}

func referrerCRD() *apiextensionsv1.CustomResourceDefinition {
	crd := resources.CRD()
	crd.Name = "referrers." + resources.GroupVersion.Group
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{
		Plural: "referrers", Singular: "referrer", Kind: "Referrer", ListKind: "ReferrerList",
	}
	return crd
}

func addReferrer(scheme *runtime.Scheme) *runtime.Scheme {
	scheme.AddKnownTypes(resources.GroupVersion, &Referrer{}, &ReferrerList{})
	return scheme
}

func newReferrer(namespace string) *Referrer {
	r := &Referrer{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "referrer"}}
	r.TypeMeta = metav1.TypeMeta{APIVersion: resources.GroupVersion.String(), Kind: "Referrer"}
	return r
}

// referringGenerator writes what is referred to into a Secret.
type referringGenerator struct{ calls atomic.Int64 }

func (g *referringGenerator) Deterministic() bool { return true }

func (g *referringGenerator) Generate(
	ctx context.Context, namespace, name string, parameters generator.Unstructurable,
) ([]client.Object, error) {
	g.calls.Add(1)
	resource, err := generator.ComponentFromContext(ctx)
	if err != nil {
		return nil, err
	}
	spec, result := resource.(*Referrer).Spec, &corev1.Secret{Data: map[string][]byte{}}
	result.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
	result.Namespace, result.Name = namespace, name+"-result"
	if spec.Password != nil {
		if result.Data["password"], err = spec.Password.Value(); err != nil {
			return nil, err
		}
	}
	for name, ref := range spec.Colors {
		data, err := ref.Data()
		if err != nil {
			return nil, err
		}
		result.Data["colors-"+name] = fmt.Append(nil, data)
	}
	values, _ := parameters.ToUnstructured()["values"].(map[string]any)
	for key, value := range values {
		result.Data["values-"+key] = fmt.Append(nil, value)
	}
	return []client.Object{result}, nil
}

// reportingReferrer counts how often it is asked for its inputs.
type reportingReferrer struct {
	*referringGenerator
	asked atomic.Int64
}

func (g *reportingReferrer) Inputs(context.Context, string, string) (string, error) {
	g.asked.Add(1)
	return "the same", nil
}
