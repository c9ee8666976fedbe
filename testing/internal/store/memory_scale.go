package store

import (
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const scaleSubresource = "scale"

// scalable are the built-in kinds with a scale, see the Kubernetes API reference.
var scalable = map[schema.GroupKind]bool{
	{Kind: "ReplicationController"}:      true,
	{Group: "apps", Kind: "Deployment"}:  true,
	{Group: "apps", Kind: "ReplicaSet"}:  true,
	{Group: "apps", Kind: "StatefulSet"}: true,
}

// scalePaths are where an object has what its scale shows. The selector is optional.
type scalePaths struct{ spec, status, selector []string }

// scalePaths returns the paths of the scale, and whether the kind has one.
func (r *resource) scalePaths() (scalePaths, bool) {
	if scalable[r.gvk.GroupKind()] {
		return scalePaths{
			spec: []string{"spec", "replicas"}, status: []string{"status", "replicas"},
			selector: []string{"spec", "selector"},
		}, true
	}
	if r.definition == nil {
		return scalePaths{}, false
	}
	for _, version := range r.definition.Spec.Versions {
		if version.Name == r.gvk.Version && version.Subresources != nil && version.Subresources.Scale != nil {
			return definedScale(version.Subresources.Scale), true
		}
	}
	return scalePaths{}, false
}

func definedScale(scale *apiextensionsv1.CustomResourceSubresourceScale) scalePaths {
	path := func(p string) []string { return strings.Split(strings.TrimPrefix(p, "."), ".") }
	paths := scalePaths{spec: path(scale.SpecReplicasPath), status: path(scale.StatusReplicasPath)}
	if scale.LabelSelectorPath != nil && *scale.LabelSelectorPath != "" {
		paths.selector = path(*scale.LabelSelectorPath)
	}
	return paths
}

// scaleOf returns the scale of an object.
func (r *resource) scaleOf(live *record) (*record, error) {
	paths, _ := r.scalePaths()
	content, err := live.content(r.gvk.GroupVersion())
	if err != nil {
		return nil, err
	}
	scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{
		Namespace: live.namespace, Name: live.name,
		UID: live.object.GetUID(), ResourceVersion: live.object.GetResourceVersion(),
		CreationTimestamp: live.object.GetCreationTimestamp(),
	}}
	scale.Spec.Replicas = replicasAt(content, paths.spec)
	scale.Status.Replicas = replicasAt(content, paths.status)
	scale.Status.Selector = selectorAt(content, paths.selector)
	return newRecord(autoscalingv1.SchemeGroupVersion.WithKind("Scale"), scale), nil
}

func replicasAt(content map[string]any, path []string) int32 {
	replicas, _, _ := unstructured.NestedInt64(content, path...)
	return int32(replicas)
}

// selectorAt returns a selector as text. It is text, a selector, or the labels to match.
func selectorAt(content map[string]any, path []string) string {
	if len(path) == 0 {
		return ""
	}
	value, _, _ := unstructured.NestedFieldNoCopy(content, path...)
	text, isText := value.(string)
	fields, _ := value.(map[string]any)
	if isText || fields == nil {
		return text
	}
	selector := &metav1.LabelSelector{}
	if fields["matchLabels"] == nil && fields["matchExpressions"] == nil {
		selector.MatchLabels, _, _ = unstructured.NestedStringMap(fields)
	} else if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, selector); err != nil {
		return ""
	}
	return metav1.FormatLabelSelector(selector)
}

// updateScale sets the replicas of an object to those of a scale.
func (s *memory) updateScale(gvk schema.GroupVersionKind, body client.Object, w memoryWrite) (*record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.resource(gvk)
	if err != nil {
		return nil, err
	}
	live, err := s.writable(r, body.GetNamespace(), body.GetName(), w.subresource)
	if err != nil {
		return nil, err
	}
	if live == nil {
		return nil, apierrors.NewNotFound(r.resource, body.GetName())
	}
	scale := &autoscalingv1.Scale{}
	if err := decodeBody(body, scale); err != nil {
		return nil, err
	}
	return s.replaceScale(r, live, scale, w)
}

// patchScale changes the scale of an object.
func (s *memory) patchScale(r *resource, live *record, p patchRequest, w memoryWrite) (*record, error) {
	before, err := r.scaleOf(live)
	if err != nil {
		return nil, err
	}
	content, err := before.content(autoscalingv1.SchemeGroupVersion)
	if err != nil {
		return nil, err
	}
	patched, err := r.patched(content, p)
	if err != nil {
		return nil, err
	}
	scale := &autoscalingv1.Scale{}
	if err := decodeBody(&unstructured.Unstructured{Object: patched}, scale); err != nil {
		return nil, err
	}
	return s.replaceScale(r, live, scale, w)
}

// replaceScale sets the replicas of an object, and returns its scale. The caller holds the lock.
func (s *memory) replaceScale(r *resource, live *record, scale *autoscalingv1.Scale, w memoryWrite) (*record, error) {
	if scale.Spec.Replicas < 0 {
		kind, path := schema.GroupKind{Group: autoscalingv1.GroupName, Kind: "Scale"}, field.NewPath("spec", "replicas")
		if r.definition != nil {
			path = field.NewPath(".spec.replicas") // An API server names the JSON path.
		}
		return nil, apierrors.NewInvalid(kind, live.name, field.ErrorList{field.Invalid(
			path, scale.Spec.Replicas, "must be greater than or equal to 0")})
	}
	paths, _ := r.scalePaths()
	content, err := live.content(r.gvk.GroupVersion())
	if err != nil {
		return nil, err
	}
	content = runtime.DeepCopyJSON(content)
	if err := unstructured.SetNestedField(content, int64(scale.Spec.Replicas), paths.spec...); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	obj, err := r.fromJSON(content)
	if err != nil {
		return nil, err
	}
	next, _, err := r.received(obj)
	if err != nil {
		return nil, err
	}
	if scale.ResourceVersion != "" {
		next.SetResourceVersion(scale.ResourceVersion)
	}
	if err := checkUID(r, live, scale); err != nil {
		return nil, err
	}
	after, err := s.updateRecord(r, live, next, w, nil)
	if err != nil {
		return nil, err
	}
	return r.scaleOf(after)
}
