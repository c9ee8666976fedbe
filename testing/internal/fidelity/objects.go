package fidelity

import (
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
)

const group = "fidelity.espalier.dev"

// finalizer is one that nobody else removes.
const finalizer = "fidelity.espalier.dev/hold"

// newServerScheme returns the kinds that each API server has.
func newServerScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	return scheme
}

// Scheme has the kinds that clients of a cluster know: those that each API server has, resources.Widget, which
// clusters define, and resources.Assembly, which they do not. It is the same for all callers.
func Scheme() *runtime.Scheme { return clientScheme() }

var clientScheme = sync.OnceValue(func() *runtime.Scheme {
	scheme := newServerScheme()
	utilruntime.Must(resources.AddToScheme(scheme))
	return scheme
})

// Definitions are those that each cluster has from the start. Gadget is namespaced and has a schema and subresources,
// Room is in no namespace and has neither.
func Definitions() []*apiextensionsv1.CustomResourceDefinition {
	gadget := &apiextensionsv1.CustomResourceDefinition{}
	utilruntime.Must(yaml.UnmarshalStrict([]byte(gadgetDefinition), gadget))
	beta := gadget.Spec.Versions[0].DeepCopy()
	beta.Name, beta.Storage = "v1beta1", false
	alpha := beta.DeepCopy()
	alpha.Name, alpha.Served = "v1alpha1", false
	gadget.Spec.Versions = append(gadget.Spec.Versions, *beta, *alpha)

	room := definition("room")
	room.Spec.Scope = apiextensionsv1.ClusterScoped
	return []*apiextensionsv1.CustomResourceDefinition{gadget, room, resources.CRD()}
}

// definition returns one of a kind with any fields and no subresources.
func definition(singular string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: singular + "s." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group,
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: singular + "s", Kind: kindOf(singular)},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: new(true),
				}},
			}},
		},
	}
}

// kindOf turns a singular name into a kind.
func kindOf(singular string) string {
	return string(singular[0]-'a'+'A') + singular[1:]
}

const gadgetDefinition = `
metadata:
  name: gadgets.fidelity.espalier.dev
spec:
  group: fidelity.espalier.dev
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget, listKind: GadgetList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
    selectableFields:
    - jsonPath: .spec.color
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [size]
            x-kubernetes-validations:
            - rule: "!has(self.lowest) || self.lowest <= self.size"
              message: lowest must not be more than size
            properties:
              size: {type: integer, minimum: 0}
              lowest: {type: integer}
              replicas: {type: integer}
              color: {type: string, enum: [blue, red], default: blue}
              note: {type: string, nullable: true}
              words: {type: object, additionalProperties: {type: string}}
              nested:
                type: object
                properties:
                  known: {type: string}
                  level: {type: integer, default: 3}
              anything: {type: object, x-kubernetes-preserve-unknown-fields: true}
              tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}
          status:
            type: object
            properties:
              phase: {type: string, enum: [Pending, Done]}
              replicas: {type: integer}
`

// fields are the content of an unstructured object.
type fields = map[string]any

// custom returns a custom resource. The spec may be nil.
func custom(singular, version, namespace, name string, spec fields) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: fields{}}
	u.SetGroupVersionKind(kind(group, version, kindOf(singular)))
	u.SetNamespace(namespace)
	u.SetName(name)
	if spec != nil {
		u.Object["spec"] = spec
	}
	return u
}

// gadget returns a Gadget with the least spec and what is given.
func (p *probe) gadget(name string, more fields) *unstructured.Unstructured {
	spec := fields{"size": int64(1)}
	for field, value := range more {
		spec[field] = value
	}
	return custom("gadget", "v1", p.namespace, name, spec)
}

func gadgetList() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind(group, "v1", "GadgetList"))
	return list
}

// room returns a Room. Rooms are in no namespace, so the name has that of the check.
func (p *probe) room() *unstructured.Unstructured {
	return custom("room", "v1", "", p.namespace, fields{"seats": int64(2)})
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func (p *probe) metadata(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: p.namespace, Name: name}
}

func (p *probe) configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: p.metadata(name), Data: map[string]string{"a": "1"}}
}

// held returns a ConfigMap that stays when it is deleted.
func (p *probe) held(name string) *corev1.ConfigMap {
	held := p.configMap(name)
	held.Finalizers = []string{finalizer}
	return held
}

// release lets an object go that is held.
func (p *probe) release(obj client.Object) {
	now := p.read(obj)
	now.SetFinalizers(nil)
	p.must(p.update(now))
}

// owned makes the owners those of the object.
func owned(obj client.Object, owners ...*corev1.ConfigMap) client.Object {
	var refs []metav1.OwnerReference
	for _, owner := range owners {
		refs = append(refs, metav1.OwnerReference{
			APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, BlockOwnerDeletion: new(true),
		})
	}
	obj.SetOwnerReferences(refs)
	return obj
}

func podSpec() corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx"}}}
}

func podTemplate() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "a"}}, Spec: podSpec(),
	}
}

func selector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}
}

func (p *probe) pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: p.metadata(name), Spec: podSpec()}
}

func (p *probe) deployment(name string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: p.metadata(name),
		Spec:       appsv1.DeploymentSpec{Selector: selector(), Template: podTemplate()},
	}
}

func (p *probe) service(name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: p.metadata(name),
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "a"}, Ports: []corev1.ServicePort{{Port: 80}},
		},
	}
}
