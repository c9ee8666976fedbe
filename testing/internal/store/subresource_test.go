package store_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func deployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{ObjectMeta: metadata(name), Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "b"}}},
		},
	}}
}

func TestScale(t *testing.T) {
	t.Parallel()
	c := newClient(t, widgets())
	for _, obj := range []client.Object{deployment("one"), widget("one")} {
		must(t, c.Create(t.Context(), obj))
		scale := scaleOf(t, c, obj)
		if scale.Spec.Replicas != 1 || scale.Name != "one" || scale.UID != obj.GetUID() {
			t.Errorf("the scale is %+v, want 1 replica and the UID %s", scale, obj.GetUID())
		}
		scale.Spec.Replicas = 3
		must(t, c.SubResource("scale").Update(t.Context(), obj, client.WithSubResourceBody(scale)))
		if got := read(t, c, obj); replicas(t, got) != 3 || got.GetGeneration() != 2 ||
			scale.ResourceVersion != got.GetResourceVersion() {
			t.Errorf("the answer is %+v and %v is stored, want 3 replicas, the generation 2 and the same version",
				scale, got)
		}
		scale.ResourceVersion = "1"
		reason(t, c.SubResource("scale").Update(t.Context(), obj, client.WithSubResourceBody(scale)),
			metav1.StatusReasonConflict, "")
		scale.ResourceVersion, scale.Spec.Replicas = "", -1
		reason(t, c.SubResource("scale").Update(t.Context(), obj, client.WithSubResourceBody(scale)),
			metav1.StatusReasonInvalid, "greater than or equal to 0")
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":5}}`))
		must(t, c.SubResource("scale").Patch(t.Context(), obj, patch, client.WithSubResourceBody(scale)))
		if scale.Spec.Replicas != 5 || replicas(t, read(t, c, obj)) != 5 {
			t.Errorf("the answer is %+v, want 5 replicas, also in the store", scale)
		}
	}
	err := c.SubResource("scale").Get(t.Context(), app("one"), &autoscalingv1.Scale{})
	reason(t, err, metav1.StatusReasonNotFound, "")
}

// scaleOf returns the scale of an object. That of an unstructured one is read as one.
func scaleOf(t *testing.T, c client.Client, obj client.Object) *autoscalingv1.Scale {
	t.Helper()
	scale, u := &autoscalingv1.Scale{}, &unstructured.Unstructured{}
	if _, ok := obj.(*unstructured.Unstructured); !ok {
		must(t, c.SubResource("scale").Get(t.Context(), obj, scale))
		return scale
	}
	u.SetGroupVersionKind(autoscalingv1.SchemeGroupVersion.WithKind("Scale"))
	must(t, c.SubResource("scale").Get(t.Context(), obj, u))
	must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, scale))
	return scale
}

func replicas(t *testing.T, obj client.Object) int64 {
	t.Helper()
	if d, ok := obj.(*appsv1.Deployment); ok {
		return int64(*d.Spec.Replicas)
	}
	size, _, err := unstructured.NestedInt64(obj.(*unstructured.Unstructured).Object, "spec", "size")
	must(t, err)
	return size
}

func TestSelectorOfAScale(t *testing.T) {
	t.Parallel()
	c := newClient(t, deployment("one"))
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(autoscalingv1.SchemeGroupVersion.WithKind("Scale"))
	d := &unstructured.Unstructured{}
	d.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	d.SetNamespace("ns")
	d.SetName("one")
	must(t, c.SubResource("scale").Get(t.Context(), d, u))
	if selector, _, _ := unstructured.NestedString(u.Object, "status", "selector"); selector != "app=one" ||
		u.GetAPIVersion() != "autoscaling/v1" {
		t.Errorf("the scale is %v, want the selector app=one in autoscaling/v1", u.Object)
	}
}

func TestStatusIsRead(t *testing.T) {
	t.Parallel()
	given := app("one")
	given.Status.Ready = true
	c := newClient(t, given)
	got := &App{}
	must(t, c.SubResource("status").Get(t.Context(), app("one"), got))
	if !got.Status.Ready {
		t.Errorf("the object is %+v, want it ready", got)
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	account := &corev1.ServiceAccount{ObjectMeta: metadata("one")}
	c := newClient(t, account)
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(600))},
	}
	must(t, c.SubResource("token").Create(t.Context(), account, request))
	if request.Status.Token == "" || request.Status.ExpirationTimestamp.Sub(now).Seconds() != 600 {
		t.Errorf("the status is %+v, want a token for 600 s", request.Status)
	}
	account.Name, request = "none", &authenticationv1.TokenRequest{}
	reason(t, c.SubResource("token").Create(t.Context(), account, request), metav1.StatusReasonNotFound, "")
}

// TestVerbsOfSubresources makes calls that their subresources do not have.
func TestVerbsOfSubresources(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{ObjectMeta: metadata("one")}
	c := newClient(t, app("one"), pod)
	merge := client.RawPatch(types.MergePatchType, []byte(`{}`))
	for name, err := range map[string]error{
		"create of a status":    c.Status().Create(t.Context(), app("one"), app("one")),
		"read of an eviction":   c.SubResource("eviction").Get(t.Context(), pod, &corev1.Pod{}),
		"update of an eviction": c.SubResource("eviction").Update(t.Context(), pod),
		"patch of an eviction":  c.SubResource("eviction").Patch(t.Context(), pod, merge),
	} {
		if !apierrors.IsMethodNotSupported(err) {
			t.Errorf("%s: the error is %v, want the method not supported", name, err)
		}
	}
}

func TestUnknownSubresource(t *testing.T) {
	t.Parallel()
	c := newClient(t, app("one"))
	reason(t, c.SubResource("other").Update(t.Context(), app("one")), metav1.StatusReasonNotFound, "")
	reason(t, c.SubResource("other").Create(t.Context(), app("one"), app("one")), metav1.StatusReasonNotFound, "")
}
