package bundles_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// othersWrite lets others write what no manifest of the odd bundle has: they scale, restart, label and authenticate.
func (b *bundle) othersWrite() {
	b.Helper()
	meta := metav1.ObjectMeta{Namespace: b.values.Namespace}
	patch := func(object client.Object, name, text string) {
		b.Helper()
		object.SetName(name)
		must(b, b.Patch(b.Context(), object, client.RawPatch(types.MergePatchType, []byte(text)), client.FieldOwner("somebody")))
	}
	patch(&appsv1.Deployment{ObjectMeta: meta}, "scaled", `{"spec":{"replicas":5,"template":{"metadata":{"annotations":`+
		`{"kubectl.kubernetes.io/restartedAt":"2020-01-02T03:04:05Z"}}}}}`)
	patch(&corev1.ServiceAccount{ObjectMeta: meta}, "user",
		`{"imagePullSecrets":[{"name":"theirs"}],"metadata":{"labels":{"theirs":"yes"}}}`)
}

// kept returns what others and the API server have written into the objects of the odd bundle.
func (b *bundle) kept() map[string]any {
	b.Helper()
	values := map[string]any{}
	get := func(object client.Object, name string) {
		b.Helper()
		must(b, b.Get(b.Context(), types.NamespacedName{Namespace: b.values.Namespace, Name: name}, object))
		values[name+" uid"] = object.GetUID()
	}
	deployment, user := &appsv1.Deployment{}, &corev1.ServiceAccount{}
	get(deployment, "scaled")
	values["replicas"], values["restart"] = *deployment.Spec.Replicas, deployment.Spec.Template.Annotations
	get(user, "user")
	values["secrets"], values["label"] = user.ImagePullSecrets, user.Labels["theirs"]
	for _, name := range []string{"clusterip", "nodeport", "loadbalancer", "headless"} {
		service := &corev1.Service{}
		get(service, name)
		values[name] = service.Spec
	}
	ingress := &networkingv1.Ingress{}
	get(ingress, "front")
	values["class"] = *ingress.Spec.IngressClassName
	return values
}

// Lists, exported objects, other spellings and null fields are installed as others install them, and cause no writes. What
// the API server and others have written stays over an upgrade.
func TestOddBundle(t *testing.T) {
	t.Parallel()
	c := live(t)
	class := &networkingv1.IngressClass{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{networkingv1.AnnotationIsDefaultIngressClass: "true"}},
		Spec:       networkingv1.IngressClassSpec{Controller: "example.com/ingress"},
	}
	class.GenerateName = "odd-"
	must(t, c.Create(t.Context(), class))
	t.Cleanup(func() { must(t, c.Delete(context.Background(), class)) })
	b := newBundle(t, "odd")
	runDeployments(t, b, b.values.Namespace, nil)
	b.install()
	b.isAsDesired()
	b.log("install")
	b.rests(3 * time.Second)

	b.othersWrite()
	b.rests(2 * time.Second)
	before := b.kept()
	if want := fmt.Sprint(int32(5)); fmt.Sprint(before["replicas"]) != want || before["class"] != class.Name {
		t.Errorf("before the upgrade: %v", before)
	}
	b.upgrade()
	eventually(t, "it is not ready", isReady(b, b.assembly))
	if diff := cmp.Diff(before, b.kept()); diff != "" {
		t.Errorf("the upgrade has changed what it does not have: %s", diff)
	}
	b.log("upgrade")
	b.rests(2 * time.Second)
	b.heals()
	b.rests(2 * time.Second)
	b.goes()
}
