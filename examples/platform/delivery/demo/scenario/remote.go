package scenario

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

// In the second cluster, the user of the kubeconfig may do one thing: act as the service account.
const (
	kubeconfigUser   = "management"
	kubeconfigSecret = "edge-kubeconfig"
	courier          = "courier"
	courierUser      = "system:serviceaccount:" + namespace + ":" + courier
)

// kubeconfig returns the Secret that the agent names. It stays until the agent is gone, which needs it.
func (s *scenario) kubeconfig() (*corev1.Secret, error) {
	user, err := s.Second.User(kubeconfigUser)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := demo.Kubeconfig(user)
	if err != nil {
		return nil, err
	}
	secret := demo.Named[corev1.Secret](namespace, kubeconfigSecret)
	secret.Data = map[string][]byte{"value": kubeconfig}
	return secret, nil
}

// preparesRemote does what the owner of the second cluster does: it has a namespace and a service account for what
// others deliver, and lets the user of the kubeconfig act as this account. The account may not create network policies.
func (s *scenario) preparesRemote(ctx context.Context) error {
	deliver := role("deliver", "*", "", "configmaps", "serviceaccounts")
	deliver.Rules = append(deliver.Rules, rbacv1.PolicyRule{
		APIGroups: []string{"networking.k8s.io"}, Resources: []string{"networkpolicies"},
		Verbs: []string{"get", "list", "watch", "update", "patch", "delete"},
	})
	actAs := role("act-as-"+courier, "impersonate", "", "serviceaccounts")
	actAs.Rules[0].ResourceNames = []string{courier}
	return errors.Join(
		s.remote.Creates(demo.Named[corev1.Namespace]("", namespace), account(courier))(ctx),
		s.remote.Grants(deliver, courierUser)(ctx), s.remote.Grants(actAs, kubeconfigUser)(ctx))
}

func role(name, verb, group string, resources ...string) *rbacv1.ClusterRole {
	role := demo.Named[rbacv1.ClusterRole]("", "delivery-"+name)
	role.Rules = []rbacv1.PolicyRule{{Verbs: []string{verb}, APIGroups: []string{group}, Resources: resources}}
	return role
}

// countsRequests holds when a request of the operator to the second cluster was counted: one that was refused.
func (s *scenario) countsRequests(context.Context) error {
	if s.remoteRequests("403") == 0 {
		return errors.New("the metrics have no request of the operator to the second cluster")
	}
	return nil
}

// remoteRequests returns how many requests to the second cluster had that answer, or if it is empty, any. The metrics
// of controller-runtime count them. If they cannot be read, countsRequests does not hold.
func (s *scenario) remoteRequests(code string) (requests int64) {
	address, _, err := rest.DefaultServerUrlFor(s.Second.Config())
	families, gatherErr := metrics.Registry.Gather()
	if err != nil || gatherErr != nil {
		return 0
	}
	for _, family := range families {
		if family.GetName() != "rest_client_requests_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			if labels["host"] == address.Host && (code == "" || labels["code"] == code) {
				requests += int64(metric.GetCounter().GetValue())
			}
		}
	}
	return requests
}
