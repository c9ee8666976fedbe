package server

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// scaleREST serves the scale of a kind, see the Kubernetes API reference, Scale v1 autoscaling. Who updates it manages
// the replicas of the object.
type scaleREST struct {
	store *genericregistry.Store
	// version is that of the kind.
	version schema.GroupVersion
}

var (
	_ rest.Patcher                  = scaleREST{}
	_ rest.GroupVersionKindProvider = scaleREST{}

	replicas = fieldpath.MakePathOrDie("spec", "replicas")
)

var scaleKind = autoscalingv1.SchemeGroupVersion.WithKind("Scale")

// scaled is what the scale of an object shows.
type scaled struct {
	desired  **int32
	current  int32
	selector string
}

// scaledOf reports whether an object has a scale.
func scaledOf(obj runtime.Object) (scaled, bool) {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return scaled{&o.Spec.Replicas, o.Status.Replicas, metav1.FormatLabelSelector(o.Spec.Selector)}, true
	case *appsv1.ReplicaSet:
		return scaled{&o.Spec.Replicas, o.Status.Replicas, metav1.FormatLabelSelector(o.Spec.Selector)}, true
	case *appsv1.StatefulSet:
		return scaled{&o.Spec.Replicas, o.Status.Replicas, metav1.FormatLabelSelector(o.Spec.Selector)}, true
	case *corev1.ReplicationController:
		return scaled{&o.Spec.Replicas, o.Status.Replicas, labels.Set(o.Spec.Selector).String()}, true
	}
	return scaled{}, false
}

// scaleOf returns the scale of an object that has one.
func scaleOf(obj runtime.Object) *autoscalingv1.Scale {
	s, _ := scaledOf(obj)
	o := obj.(client.Object)
	scale := &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(),
			ResourceVersion: o.GetResourceVersion(), CreationTimestamp: o.GetCreationTimestamp(),
		},
		Status: autoscalingv1.ScaleStatus{Replicas: s.current, Selector: s.selector},
	}
	if *s.desired != nil {
		scale.Spec.Replicas = **s.desired
	}
	return scale
}

// New implements [rest.Storage].
func (scaleREST) New() runtime.Object { return &autoscalingv1.Scale{} }

// Destroy implements [rest.Storage].
func (scaleREST) Destroy() {}

// GroupVersionKind implements [rest.GroupVersionKindProvider].
func (scaleREST) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind { return scaleKind }

// ConvertToTable implements [rest.TableConvertor].
func (s scaleREST) ConvertToTable(
	ctx context.Context, object runtime.Object, options runtime.Object,
) (*metav1.Table, error) {
	return s.store.ConvertToTable(ctx, object, options)
}

// Get implements [rest.Getter].
func (s scaleREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	obj, err := s.store.Get(ctx, name, options)
	if err != nil {
		return nil, err
	}
	return scaleOf(obj), nil
}

// Update implements [rest.Updater].
func (s scaleREST) Update(
	ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc,
	update rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	validate := func(ctx context.Context, obj, old runtime.Object) error {
		return update(ctx, scaleOf(obj), scaleOf(old))
	}
	resource := s.store.DefaultQualifiedResource
	resource.Resource += "/scale"
	change := scaleUpdate{info, s.version, resource}
	obj, _, err := s.store.Update(ctx, name, change, create, validate, false, options)
	if err != nil {
		return nil, false, err
	}
	return scaleOf(obj), false, nil
}

// scaleUpdate makes of the update of a scale one of the object.
type scaleUpdate struct {
	scale   rest.UpdatedObjectInfo
	version schema.GroupVersion
	// resource is the subresource.
	resource schema.GroupResource
}

// Preconditions implements [rest.UpdatedObjectInfo].
func (u scaleUpdate) Preconditions() *metav1.Preconditions { return u.scale.Preconditions() }

// UpdatedObject implements [rest.UpdatedObjectInfo].
func (u scaleUpdate) UpdatedObject(ctx context.Context, live runtime.Object) (runtime.Object, error) {
	managers := managedfields.NewScaleHandler(live.(client.Object).GetManagedFields(), u.version,
		managedfields.ResourcePathMappings{u.version.String(): replicas})
	before := scaleOf(live)
	var err error
	if before.ManagedFields, err = managers.ToSubresource(); err != nil {
		return nil, err
	}
	updated, err := u.scale.UpdatedObject(ctx, before)
	if err != nil {
		return nil, err
	}
	scale, ok := updated.(*autoscalingv1.Scale)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("expected object of type Scale, got %T", updated))
	}
	if scale.Spec.Replicas < 0 {
		return nil, apierrors.NewInvalid(scaleKind.GroupKind(), scale.Name, field.ErrorList{field.Invalid(
			field.NewPath("spec", "replicas"), scale.Spec.Replicas, "must be greater than or equal to 0")})
	}
	if owner := live.(client.Object); scale.UID != "" && scale.UID != owner.GetUID() {
		return nil, apierrors.NewConflict(u.resource, owner.GetName(), fmt.Errorf(
			"the UID %s of the scale is not the UID %s of the object: read the scale again", scale.UID, owner.GetUID()))
	}
	managed, err := managers.ToParent(scale.ManagedFields)
	if err != nil {
		return nil, err
	}
	next := live.DeepCopyObject().(client.Object)
	s, _ := scaledOf(next)
	*s.desired = &scale.Spec.Replicas
	next.SetResourceVersion(scale.ResourceVersion)
	next.SetManagedFields(managed)
	return next, nil
}
