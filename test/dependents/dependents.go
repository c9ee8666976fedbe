package dependents

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/objects"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"
)

// address is that of the capability.
var address = stash.New[string]("services.example.com/address")

// New returns the root. Nothing is made of a service that is not valid.
func New(config reconcilers.Config) *reconcilers.ResourceReconciler[*Service] {
	return espalier.For(config,
		espalier.Runs("Valid", validate).Reports("Valid"),
		espalier.WhenTrue("Valid",
			espalier.Owns("Account", objects.ServiceAccount(name)).Reports("AccountReady"),
			espalier.Owns("Role", objects.Role(name, rules)).Reports("RoleReady"),
			espalier.Owns("Binding", objects.RoleBinding(name, name, names)).Reports("BindingReady"),
			espalier.Owns("Secret", objects.Secret(name, data)).Reports("SecretReady"),
			espalier.Yield(espalier.Owns("Capability", capability).ReadOnly().Health(answers), address, addressOf).
				Reports("CapabilityReady"),
			espalier.Owns("Deployment", deployment).After("Capability").
				Reports("DeploymentReady").Observes(available),
		),
	)
}

// Default fills in what the user leaves to the operator.
func (s *Service) Default() {
	if s.Spec.Runtime == "" {
		s.Spec.Runtime = "java"
	}
	if s.Spec.Port == 0 {
		s.Spec.Port = 8080
	}
}

func validate(_ context.Context, service *Service) error {
	if service.Spec.Port < 1024 {
		return espalier.NotReady("Invalid", "the port %d is one of the host", service.Spec.Port)
	}
	return nil
}

func name(service *Service) string { return service.Name }

func names(service *Service) []string { return []string{service.Name} }

func rules(context.Context, *Service) ([]rbacv1.PolicyRule, error) {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}},
	}, nil
}

func data(_ context.Context, service *Service) (map[string][]byte, error) {
	return map[string][]byte{"runtime": []byte(service.Spec.Runtime)}, nil
}

// capability is read, and never written. A service that needs none has none.
func capability(_ context.Context, service *Service) (*Capability, error) {
	if service.Spec.Capability == "" {
		return nil, nil
	}
	return &Capability{ObjectMeta: metav1.ObjectMeta{Namespace: service.Namespace, Name: service.Spec.Capability}}, nil
}

func answers(live *Capability) apis.Health {
	if live.Address == "" {
		return apis.Health{State: apis.StateOperationPending, Reason: "NoAddress", Message: "it has no address yet"}
	}
	return apis.Health{State: apis.StateOperational}
}

func addressOf(live *Capability) (string, error) { return live.Address, nil }

func deployment(ctx context.Context, service *Service) (*appsv1.Deployment, error) {
	return objects.Deployment(func(context.Context, *Service) (*objects.Workload, error) {
		return &objects.Workload{
			Name: service.Name, Image: "runtime:" + service.Spec.Runtime, Port: service.Spec.Port,
			ServiceAccountName: service.Name, Replicas: new(int32(1)),
			Env: []corev1.EnvVar{{Name: "CAPABILITY", Value: address.RetrieveOrEmpty(ctx)}},
		}, nil
	})(ctx, service)
}

func available(_ context.Context, service *Service, live *appsv1.Deployment) error {
	service.Status.Available = 0
	if live != nil {
		service.Status.Available = live.Status.AvailableReplicas
	}
	return nil
}
