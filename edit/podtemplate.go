package edit

import (
	"errors"
	"fmt"
	"maps"
	"reflect"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/jsonmerge"
	"github.com/espalier-dev/espalier/internal/objectname"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PodTemplate calls a function with the pod template of a Deployment, StatefulSet, DaemonSet, ReplicaSet, Job, CronJob,
// PodTemplate or ReplicationController, and writes back what it changes. The template of a Pod is its labels, its
// annotations and its spec. Any other kind is an error.
//
// The object may be unstructured. Then only the fields are written that the function changes: a field that the Go types
// do not know stays, and a value stays as it is written.
//
// An error, also one of the function, names the object. The object is then as it was.
func PodTemplate(object client.Object, edit func(pods *corev1.PodTemplateSpec) error) error {
	switch {
	case gotype.IsNil(object):
		return missing("object")
	case edit == nil:
		return named(object, errNoFunction)
	}
	content, ok := object.(runtime.Unstructured)
	if !ok {
		return named(object, editTemplate(object, edit))
	}
	typed := newWorkload(object.GetObjectKind().GroupVersionKind().GroupKind())
	if typed == nil {
		return named(object, errNoTemplate)
	}
	return named(object, editContent(content, typed, func() error { return editTemplate(typed, edit) }))
}

// As calls a function with an object as a Go type, and writes back what it changes. The object has that type, or it is
// unstructured with a kind of that name. Then only the fields are written that the function changes: a field that the
// Go type does not know stays, and a value stays as it is written.
//
//	err := edit.As(object, func(service *corev1.Service) error { ... })
//
// An error, also one of the function, names the object. The object is then as it was.
func As[P interface {
	*T
	client.Object
}, T any](object client.Object, edit func(P) error) error {
	switch {
	case gotype.IsNil(object):
		return missing("object")
	case edit == nil:
		return named(object, errNoFunction)
	}
	typed := P(new(T))
	if own, ok := object.(P); ok {
		typed, ok = own.DeepCopyObject().(P)
		if !ok {
			return named(object, errNoCopy)
		}
		if err := edit(typed); err != nil {
			return named(object, err)
		}
		*own = *typed
		return nil
	}
	content, ok := object.(runtime.Unstructured)
	if kind := reflect.TypeFor[T]().Name(); !ok || object.GetObjectKind().GroupVersionKind().Kind != kind {
		return named(object, fmt.Errorf("it is no %s", kind))
	}
	return named(object, editContent(content, typed, func() error { return edit(typed) }))
}

var (
	errNoTemplate = errors.New("the kind has no pod template that is known")
	errNoCopy     = errors.New("its copy has another type")
)

// named adds the object to an error.
func named(object client.Object, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("edit %s: %w", objectname.Of(object), err)
}

// editContent fills a typed object with what an unstructured one has, calls a function that changes it, and writes the
// change back.
func editContent(content runtime.Unstructured, typed client.Object, edit func() error) error {
	// The converter panics with types that decoded JSON does not have.
	fields, err := jsonmerge.Normalize(content.UnstructuredContent())
	if err != nil {
		return err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, typed); err != nil {
		return fmt.Errorf("read it as %T: %w", typed, err)
	}
	before, err := jsonmerge.Tree(typed)
	if err != nil {
		return err
	}
	if err := edit(); err != nil {
		return err
	}
	after, err := jsonmerge.Tree(typed)
	if err != nil {
		return err
	}
	object, ok := content.(client.Object)
	if !ok {
		return errNoCopy
	}
	return jsonmerge.ApplyChange(object, before, after)
}

// editTemplate edits a copy of the template, and writes it to the object if that returns no error.
func editTemplate(object client.Object, edit func(*corev1.PodTemplateSpec) error) error {
	if pod, ok := object.(*corev1.Pod); ok {
		pods := &corev1.PodTemplateSpec{Spec: *pod.Spec.DeepCopy()}
		pods.Labels, pods.Annotations = maps.Clone(pod.Labels), maps.Clone(pod.Annotations)
		if err := edit(pods); err != nil {
			return err
		}
		pod.Labels, pod.Annotations, pod.Spec = pods.Labels, pods.Annotations, pods.Spec
		return nil
	}
	template, err := templateOf(object)
	if err != nil {
		return err
	}
	pods := template.DeepCopy()
	if err := edit(pods); err != nil {
		return err
	}
	*template = *pods
	return nil
}

func templateOf(object client.Object) (*corev1.PodTemplateSpec, error) {
	switch o := object.(type) {
	case *appsv1.Deployment:
		return &o.Spec.Template, nil
	case *appsv1.StatefulSet:
		return &o.Spec.Template, nil
	case *appsv1.DaemonSet:
		return &o.Spec.Template, nil
	case *appsv1.ReplicaSet:
		return &o.Spec.Template, nil
	case *batchv1.Job:
		return &o.Spec.Template, nil
	case *batchv1.CronJob:
		return &o.Spec.JobTemplate.Spec.Template, nil
	case *corev1.PodTemplate:
		return &o.Template, nil
	case *corev1.ReplicationController:
		if o.Spec.Template == nil {
			return nil, errors.New("the field spec.template is nil")
		}
		return o.Spec.Template, nil
	default:
		return nil, errNoTemplate
	}
}

// newWorkload returns an empty object of a kind that has pods, nil for other kinds.
func newWorkload(kind schema.GroupKind) client.Object {
	switch kind {
	case schema.GroupKind{Group: appsv1.GroupName, Kind: "Deployment"}:
		return &appsv1.Deployment{}
	case schema.GroupKind{Group: appsv1.GroupName, Kind: "StatefulSet"}:
		return &appsv1.StatefulSet{}
	case schema.GroupKind{Group: appsv1.GroupName, Kind: "DaemonSet"}:
		return &appsv1.DaemonSet{}
	case schema.GroupKind{Group: appsv1.GroupName, Kind: "ReplicaSet"}:
		return &appsv1.ReplicaSet{}
	case schema.GroupKind{Group: batchv1.GroupName, Kind: "Job"}:
		return &batchv1.Job{}
	case schema.GroupKind{Group: batchv1.GroupName, Kind: "CronJob"}:
		return &batchv1.CronJob{}
	case schema.GroupKind{Kind: "Pod"}:
		return &corev1.Pod{}
	case schema.GroupKind{Kind: "PodTemplate"}:
		return &corev1.PodTemplate{}
	case schema.GroupKind{Kind: "ReplicationController"}:
		return &corev1.ReplicationController{}
	default:
		return nil
	}
}
