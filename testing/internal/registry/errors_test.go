package registry_test

import (
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestOtherInvalidValue changes an invalid value that was stored. The new one has to be valid, although the old one may
// stay.
func TestOtherInvalidValue(t *testing.T) {
	t.Parallel()
	given := &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "a", ResourceVersion: "1", Finalizers: []string{"a"},
		},
		Spec: appsv1.DeploymentSpec{Replicas: new(int32(-1))},
	}
	for name, test := range map[string]struct {
		change func(*appsv1.Deployment)
		errors []string
	}{
		"others": {func(d *appsv1.Deployment) { d.Spec.Paused, d.Labels = true, map[string]string{"a": ""} }, nil},
		"finalizer": {func(d *appsv1.Deployment) { d.Finalizers = []string{"b"} },
			[]string{"Invalid metadata.finalizers[0]"}},
		"replicas": {func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(-2)) },
			[]string{"Invalid spec.replicas"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, s := builtIn(t, given)
			old, obj := given.DeepCopy(), given.DeepCopy()
			test.change(obj)
			s.PrepareForUpdate(obj, old, "")
			if got := refusals(s.ValidateUpdate(obj, old, "")); !slices.Equal(got, test.errors) {
				t.Errorf("got the errors %v, want %v", got, test.errors)
			}
		})
	}
}

// TestOrderOfErrors shows that errors of the keys of a map are in the order of the keys.
func TestOrderOfErrors(t *testing.T) {
	t.Parallel()
	data, texts, amounts := map[string][]byte{}, map[string]string{}, corev1.ResourceList{}
	for i := range 8 {
		key := fmt.Sprintf("/%d", i)
		data[key], texts[key], amounts[corev1.ResourceName(key)] = nil, "", resource.MustParse("-1")
	}
	metadata := metav1.ObjectMeta{Namespace: "ns", Name: "a"}
	for _, obj := range []client.Object{
		&corev1.ConfigMap{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metadata, Data: texts,
		},
		&corev1.ConfigMap{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metadata, BinaryData: data,
		},
		&corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metadata, Data: data},
		podWith(corev1.ResourceRequirements{Limits: amounts}),
		podWith(corev1.ResourceRequirements{Requests: amounts}),
	} {
		_, s := builtIn(t, obj)
		s.PrepareForCreate(obj)
		errs := s.Validate(obj)
		byField := func(a, b *field.Error) int { return slices.Compare([]byte(a.Field), []byte(b.Field)) }
		if len(errs) < len(data) || !slices.IsSortedFunc(errs, byField) {
			t.Errorf("the errors of %T are %v, want at least %d, sorted by field", obj, errs, len(data))
		}
	}
}

func podWith(resources corev1.ResourceRequirements) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a", Resources: resources}}},
	}
}

// TestManyNodePorts gives a service more ports than there are node ports. The last ones have none.
func TestManyNodePorts(t *testing.T) {
	t.Parallel()
	const available = 2767
	service := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: make([]corev1.ServicePort, available+2)},
	}
	service.Spec.Ports[5].NodePort = 30100
	_, s := builtIn(t, service)
	s.PrepareForCreate(service)
	got := map[int32]int{}
	for _, port := range service.Spec.Ports {
		got[port.NodePort]++
	}
	if got[0] != 2 || got[30100] != 1 || len(got) != available+1 {
		t.Errorf("%d ports have none, %d have the given one, there are %d different ones, want 2, 1 and %d", got[0],
			got[30100], len(got), available+1)
	}
}
