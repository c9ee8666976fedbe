package dependents_test

import (
	"context"
	"testing"

	"github.com/espalier-dev/espalier/dependents"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func nameOf(w *resources.Widget) string { return w.Name }

func childOfWidget(node string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: "default", Name: "gadget", OwnerReferences: []metav1.OwnerReference{controlledByWidget},
		Labels: map[string]string{reconcilers.NodeLabel: node},
	}
}

func TestReadyMadeDependents(t *testing.T) {
	rules := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}}}
	app := map[string]string{"app": "gadget"}
	for name, row := range map[string]struct {
		make func() nodes
		want []object
	}{
		"service account": {
			make: func() nodes { return nodes{dependents.ServiceAccount("account", nameOf)} },
			want: []object{&corev1.ServiceAccount{ObjectMeta: childOfWidget("account")}},
		},
		"role": {
			make: func() nodes {
				return nodes{dependents.Role("role", nameOf,
					func(*resources.Widget) []rbacv1.PolicyRule { return rules })}
			},
			want: []object{&rbacv1.Role{ObjectMeta: childOfWidget("role"), Rules: rules}},
		},
		"role binding": {
			make: func() nodes {
				return nodes{dependents.RoleBinding("binding", nameOf,
					func(*resources.Widget) string { return "reader" },
					func(*resources.Widget) []string { return []string{"a", "b"} })}
			},
			want: []object{&rbacv1.RoleBinding{
				ObjectMeta: childOfWidget("binding"),
				RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "reader"},
				Subjects: []rbacv1.Subject{
					{Kind: "ServiceAccount", Namespace: "default", Name: "a"},
					{Kind: "ServiceAccount", Namespace: "default", Name: "b"},
				},
			}},
		},
		"secret": {
			make: func() nodes {
				return nodes{dependents.Secret("secret", nameOf,
					func(context.Context, *resources.Widget) (map[string][]byte, error) {
						return map[string][]byte{"password": []byte("xyz")}, nil
					})}
			},
			want: []object{&corev1.Secret{
				ObjectMeta: childOfWidget("secret"), Data: map[string][]byte{"password": []byte("xyz")},
			}},
		},
		"config map": {
			make: func() nodes {
				return nodes{dependents.ConfigMap("config", nameOf,
					func(context.Context, *resources.Widget) (map[string]string, error) {
						return map[string]string{"color": "blue"}, nil
					})}
			},
			want: []object{&corev1.ConfigMap{
				ObjectMeta: childOfWidget("config"), Data: map[string]string{"color": "blue"},
			}},
		},
		"deployment with service": {
			make: func() nodes {
				deployment, service := dependents.DeploymentWithService("app",
					func(_ context.Context, w *resources.Widget) (*dependents.Workload, error) {
						return &dependents.Workload{
							Name: w.Name, Image: "gadget:1", Port: 80, ServiceAccountName: "a",
							Customize: func(pods *corev1.PodTemplateSpec) { pods.Spec.Containers[0].TTY = true },
						}, nil
					})
				return nodes{deployment, service}
			},
			want: []object{
				&appsv1.Deployment{
					ObjectMeta: childOfWidget("app"),
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
				},
				&corev1.Service{
					ObjectMeta: childOfWidget("app-service"),
					Spec: corev1.ServiceSpec{
						Selector: app,
						Ports:    []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(80), Protocol: "TCP"}},
					},
				},
			},
		},
	} {
		var events []rtesting.Event
		for _, o := range row.want {
			kind, err := kindOf(o)
			if err != nil {
				t.Fatal(err)
			}
			events = append(events, event("Created", `Created `+kind+` "gadget"`)...)
		}
		tests{name: {
			Resource: widget.Object(), ExpectCreates: row.want, ExpectEvents: events,
		}}.RunNode(t, scheme, func() node {
			return &dependents.Set[*resources.Widget]{Name: "Set", Dependents: row.make()}
		})
	}
	nothing := func(context.Context, *resources.Widget) (*dependents.Workload, error) { return nil, nil }
	deployment, service := dependents.DeploymentWithService("app", nothing)
	tests{"no workload": {Resource: widget.Object()}}.RunNode(t, scheme, func() node {
		return &dependents.Set[*resources.Widget]{Name: "Set", Dependents: nodes{deployment, service}}
	})
}

func kindOf(o object) (string, error) {
	kinds, _, err := scheme.ObjectKinds(o)
	if err != nil {
		return "", err
	}
	return kinds[0].Kind, nil
}
