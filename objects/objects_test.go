package objects_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/objects"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	scheme  = resources.NewScheme()
	errBoom = errors.New("boom")

	widget = rtesting.NewFixture(&resources.Widget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "gadget", UID: "gadget-uid"},
	})
	meta = metav1.ObjectMeta{
		Namespace: "default", Name: "gadget", OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "test.espalier.dev/v1", Kind: "Widget", Name: "gadget", UID: "gadget-uid",
			Controller: new(true), BlockOwnerDeletion: new(true),
		}},
	}
)

// TestMain checks that no goroutine is left. The tables do not run on an API server: it allocates and defaults more in a
// Service and in a Deployment than the store in memory does.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type node = reconcilers.SubReconciler[*resources.Widget]

func nameOf(w *resources.Widget) string { return w.Name }

// says returns a function of an author that returns a value, or an error if the widget asks for one.
func says[V any](value V) func(context.Context, *resources.Widget) (V, error) {
	return func(_ context.Context, w *resources.Widget) (V, error) {
		if w.Spec.Fields["fails"] != "" {
			var none V
			return none, errBoom
		}
		return value, nil
	}
}

func owns[C client.Object](desired func(context.Context, *resources.Widget) (C, error)) node {
	return espalier.Owns("Object", desired)
}

// Each function returns what its parameters say, and the error of the author's function, if it calls one.
func TestObjects(t *testing.T) {
	rules := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}}}
	app := map[string]string{"app": "gadget"}
	workload := says(&objects.Workload{
		Name: "gadget", Image: "gadget:1", Port: 80, ServiceAccountName: "a",
		Customize: func(pods *corev1.PodTemplateSpec) { pods.Spec.Containers[0].TTY = true },
	})
	for kind, tc := range map[string]struct {
		node  node
		want  client.Object
		never bool // it never fails
	}{
		"ServiceAccount": {owns(objects.ServiceAccount(nameOf)), &corev1.ServiceAccount{ObjectMeta: meta}, true},
		"Role":           {owns(objects.Role(nameOf, says(rules))), &rbacv1.Role{ObjectMeta: meta, Rules: rules}, false},
		"RoleBinding": {
			owns(objects.RoleBinding(nameOf, func(*resources.Widget) string { return "reader" },
				func(*resources.Widget) []string { return []string{"a", "b"} })),
			&rbacv1.RoleBinding{
				ObjectMeta: meta,
				RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "reader"},
				Subjects: []rbacv1.Subject{
					{Kind: "ServiceAccount", Namespace: "default", Name: "a"},
					{Kind: "ServiceAccount", Namespace: "default", Name: "b"},
				},
			}, true,
		},
		"Secret": {
			owns(objects.Secret(nameOf, says(map[string][]byte{"password": []byte("xyz")}))),
			&corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"password": []byte("xyz")}}, false,
		},
		"ConfigMap": {
			owns(objects.ConfigMap(nameOf, says(map[string]string{"color": "blue"}))),
			&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"color": "blue"}}, false,
		},
		"Deployment": {owns(objects.Deployment(workload)), &appsv1.Deployment{
			ObjectMeta: meta,
			Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: app},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: app},
					Spec: corev1.PodSpec{ServiceAccountName: "a", Containers: []corev1.Container{{
						Name: "gadget", Image: "gadget:1", TTY: true,
						Ports: []corev1.ContainerPort{{ContainerPort: 80, Protocol: "TCP"}},
					}}},
				},
			},
		}, false},
		"Service": {owns(objects.Service(workload)), &corev1.Service{
			ObjectMeta: meta,
			Spec: corev1.ServiceSpec{
				Selector: app,
				Ports:    []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(80), Protocol: "TCP"}},
			},
		}, false},
	} {
		rows := rtesting.NodeTests[*resources.Widget]{kind: {
			Resource: widget.Object(), ExpectCreates: []client.Object{tc.want},
			ExpectEvents: []rtesting.Event{rtesting.NewEvent(widget, scheme, corev1.EventTypeNormal, "Created",
				"Created %s %q", kind, "gadget")},
		}}
		if !tc.never {
			rows[kind+" whose function fails"] = rtesting.SubReconcilerTestCase[*resources.Widget]{
				Resource: widget.With(func(w *resources.Widget) {
					w.Spec.Fields = map[string]string{"fails": "yes"}
				}).Object(), ExpectedErr: errBoom,
			}
		}
		rows.RunNode(t, scheme, func() node { return tc.node })
	}
	none := says[*objects.Workload](nil)
	rtesting.NodeTests[*resources.Widget]{"no workload": {Resource: widget.Object()}}.RunNode(t, scheme, func() node {
		return espalier.Steps(owns(objects.Deployment(none)), owns(objects.Service(none)))
	})
}

// A secret with generated values keeps them, whatever the function returns, also under another name.
func TestGeneratedSecret(t *testing.T) {
	called := nameOf
	reconciler := espalier.Owns("Login", objects.GeneratedSecret(func(w *resources.Widget) string { return called(w) },
		"password", "key")).CreateOnly().Reports("Login")
	rollOut := func(given ...client.Object) *rtesting.RolledOut[*resources.Widget] {
		return rtesting.Rollout[*resources.Widget]{
			Scheme: scheme, Resource: widget.Object(), GivenObjects: given, Reconciler: reconciler,
		}.Run(t)
	}
	first := rollOut()
	made, ok := first.Find(&corev1.Secret{ObjectMeta: meta}).(*corev1.Secret)
	if !ok || len(made.Data) != 2 || len(made.Data["password"]) != 26 ||
		string(made.Data["password"]) == string(made.Data["key"]) {
		t.Fatalf("the secret is %v, want two different values of 26 characters", made)
	}
	called = func(*resources.Widget) string { return "renamed" }
	second := rollOut(first.Objects()...)
	kept, _ := second.Find(made).(*corev1.Secret)
	if kept == nil || !maps.EqualFunc(kept.Data, made.Data, bytes.Equal) || len(second.Made()) > 0 {
		t.Errorf("after the name has changed, the secret is %v, want it as it was, and no other", kept)
	}
	const reason = "NameChanged"
	if c := second.Object().Status.GetCondition("Login"); c == nil || c.Reason != reason {
		t.Errorf("the condition is %v, want the reason %s", c, reason)
	}
}
