package controller_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/espalier-dev/espalier/examples/mirror/api/v1"
	"github.com/espalier-dev/espalier/examples/mirror/controller"
	"github.com/espalier-dev/espalier/examples/mirror/registry"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
)

// newMirror returns a mirror that one application uses, with the changes.
func newMirror(changes ...func(*v1.Mirror)) *v1.Mirror {
	mirror := &v1.Mirror{
		ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "docs", UID: "docs-uid"},
		Spec: v1.MirrorSpec{
			Upstream: "https://docs.example.com", Image: "mirror:1", Replicas: 1, Storage: resource.MustParse("1Gi"),
			Peers: []string{"shop"},
		},
	}
	for _, change := range changes {
		change(mirror)
	}
	return mirror
}

// says has the conditions in the order of their types: those of what is not asked for, or ready at once, and the given.
func says(ready, registered, statefulSet metav1.Condition) func(*v1.Mirror) {
	done, none := metav1.Condition{Status: "True", Reason: "Ready"}, metav1.Condition{Status: "True", Reason: "NotDesired"}
	return func(mirror *v1.Mirror) {
		for _, c := range []struct {
			name string
			metav1.Condition
		}{
			{v1.BudgetReady, none}, {v1.ConfigReady, done}, {v1.CredentialsFound, none}, {v1.PoliciesReady, done},
			{v1.PruneReady, none}, {v1.Ready, ready}, {v1.Registered, registered}, {v1.ServiceReady, done},
			{v1.StatefulSetReady, statefulSet},
		} {
			c.Type = c.name
			mirror.Status.Conditions = append(mirror.Status.Conditions, c.Condition)
		}
	}
}

// meta is the metadata of an object of the mirror.
func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: "web", Name: name,
		Labels: map[string]string{"app.kubernetes.io/name": "mirror", "app.kubernetes.io/instance": "docs"},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "mirror.example.com/v1", Kind: "Mirror", Name: "docs", UID: "docs-uid",
			Controller: new(true), BlockOwnerDeletion: new(true),
		}},
	}
}

func children() []client.Object {
	labels := meta("").Labels
	return []client.Object{
		&corev1.ConfigMap{
			ObjectMeta: meta("docs"), Data: map[string]string{"mirror.conf": "upstream https://docs.example.com;\n"},
		},
		&corev1.Service{ObjectMeta: meta("docs"), Spec: corev1.ServiceSpec{
			ClusterIP: "None", Selector: labels, Ports: []corev1.ServicePort{{Name: "http", Port: 8080}},
		}},
		&networkingv1.NetworkPolicy{ObjectMeta: meta("docs-shop"), Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: labels},
			Ingress: []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{
				{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}},
			}}},
		}},
		&appsv1.StatefulSet{ObjectMeta: meta("docs"), Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(1)), ServiceName: "docs", Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels: labels, Annotations: map[string]string{"mirror.example.com/credentials": none},
				},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{
						Name: "mirror", Image: "mirror:1",
						Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
						VolumeMounts: []corev1.VolumeMount{
							{Name: "cache", MountPath: "/cache"}, {Name: "config", MountPath: "/etc/mirror"},
						},
					}},
					Volumes: []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{
						ConfigMap: &corev1.ConfigMapVolumeSource{
							LocalObjectReference: corev1.LocalObjectReference{Name: "docs"},
						},
					}}},
				},
			},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: "cache"},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources: corev1.VolumeResourceRequirements{
						Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
					},
				},
			}},
		}},
	}
}

// none is the digest of no credentials.
const none = "1d8fc6ceb1f94c6326d6d5483d258fcb"

// ready are the children of a mirror whose pod is ready.
func ready() []client.Object {
	all := children()
	all[3].(*appsv1.StatefulSet).Status = appsv1.StatefulSetStatus{
		Replicas: 1, ReadyReplicas: 1, AvailableReplicas: 1, CurrentReplicas: 1, UpdatedReplicas: 1,
		CurrentRevision: "docs-1", UpdateRevision: "docs-1",
	}
	return all
}

func all[T any](items ...T) []T { return items }

func TestMirror(t *testing.T) {
	scheme, err := v1.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	guarded := func(mirror *v1.Mirror) { mirror.Finalizers = []string{"mirror.example.com/registration"} }
	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(newMirror())}
	rolling := metav1.Condition{Status: "False", Reason: "InProgress", Message: "StatefulSet web/docs: 0 of 1 replica ready"}
	summary := metav1.Condition{Status: "False", Reason: "InProgress", Message: "StatefulSetReady: StatefulSet web/docs: 0 of 1 replica ready"}
	waiting := metav1.Condition{Status: "Unknown", Reason: "Waiting", Message: `waiting for "StatefulSet"`}
	up := metav1.Condition{Status: "True", Reason: "Ready"}
	running := func(mirror *v1.Mirror) {
		says(up, metav1.Condition{Status: "True", Reason: "Succeeded"}, up)(mirror)
		mirror.Status.ReadyReplicas = 1
	}
	rtesting.RootTests{
		"new": {
			Request:       request,
			GivenObjects:  []client.Object{newMirror()},
			ExpectCreates: children(),
			ExpectEvents: all(
				rtesting.Normal(newMirror(), "Created", `Created ConfigMap "docs"`),
				rtesting.Normal(newMirror(), "Created", `Created Service "docs"`),
				rtesting.Normal(newMirror(), "Created", `Created NetworkPolicy "docs-shop"`),
				rtesting.Normal(newMirror(), "Created", `Created StatefulSet "docs"`),
			),
			ExpectStatusUpdates: []client.Object{newMirror(says(summary, waiting, rolling))},
		},
		"its pod is ready: the registry knows it": {
			Request:             request,
			GivenObjects:        append(ready(), newMirror(guarded)),
			ExpectStatusUpdates: []client.Object{newMirror(guarded, running)},
		},
	}.RunRoot(t, scheme, func(config reconcilers.Config) reconcile.Reconciler {
		mirrors := &registry.Memory{}
		// It was asked for it already.
		_ = mirrors.Register(t.Context(), "web/docs", "https://docs.example.com")
		return controller.New(config, mirrors)
	})
}
