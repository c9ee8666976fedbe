package scenario

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/espalier-dev/espalier/examples/platform/delivery/api/v1alpha1"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

// In the second cluster, the user of the kubeconfig may do one thing: act as the service account.
const (
	kubeconfigUser   = "management"
	kubeconfigSecret = "edge-kubeconfig"
	serviceAccount   = "courier"
)

func (s *scenario) delivery() []demo.Step {
	// The first words are those of the API server.
	missing := []string{
		fmt.Sprintf("User %q cannot create resource %q in API group %q in the namespace %q",
			"system:serviceaccount:"+namespace+":"+serviceAccount, "networkpolicies", "networking.k8s.io", namespace),
		agentPolicy().GetName(),
	}
	return []demo.Step{
		{
			Title: "An agent is ordered: a kustomization for another cluster, as a service account there",
			Do: func(ctx context.Context) error {
				return errors.Join(s.prepareRemote(ctx), s.orderAgent(ctx))
			},
			Checks: []demo.Check{
				{Text: "the condition says who lacks which permission", Show: s.message,
					Holds: s.reports(agentStatus, metav1.ConditionFalse, "Error", missing...)},
				{Text: "what the account may create is there, and not in the cluster of the agent", Holds: demo.All(
					s.remote.Exist(agentAccount(), agentSettings()), s.Gone(agentAccount(), agentSettings()))},
			},
		},
		{
			Title: "The account is granted that",
			Do: func(ctx context.Context) error {
				role := courierRole("create")
				return s.remote.Client.Update(ctx, role)
			},
			Checks: []demo.Check{
				{Text: "the agent is Ready", Holds: demo.All(s.isReady(agentStatus),
					s.remote.Exist(agentPolicy()), say(s.remote, agentSettings(), "interval", "30s"))},
			},
		},
	}
}

func (s *scenario) outage() []demo.Step {
	return []demo.Step{
		{
			Title: "The other cluster goes down; then other values are ordered for the agent",
			Do: func(ctx context.Context) error {
				return errors.Join(s.Second.StopAPIServer(), s.setValue(ctx, theAgent(), "interval", "1m"))
			},
			Checks: []demo.Check{
				{Text: "the condition says so", Show: s.message,
					Holds: s.reports(agentStatus, metav1.ConditionUnknown, "ClusterUnreachable", kubeconfigSecret)},
				{Text: "the monitor is Ready all the same", Holds: s.isReady(monitorStatus)},
			},
		},
		{
			Title: "It is back",
			Do:    func(context.Context) error { return s.Second.StartAPIServer() },
			Checks: []demo.Check{
				{Text: "the agent is Ready, with these values", Holds: demo.All(s.isReady(agentStatus),
					say(s.remote, agentSettings(), "interval", "1m"))},
			},
		},
		{
			Title: "The agent is deleted",
			Do:    func(ctx context.Context) error { return s.Client.Delete(ctx, theAgent()) },
			Checks: []demo.Check{
				{Text: "its objects in the other cluster are gone, and so is the agent", Holds: demo.All(
					s.Gone(theAgent()), s.remote.Gone(agentAccount(), agentSettings(), agentPolicy()))},
			},
		},
	}
}

// orderAgent creates the kubeconfig and the agent.
func (s *scenario) orderAgent(ctx context.Context) error {
	user, err := s.Second.User(kubeconfigUser)
	if err != nil {
		return err
	}
	kubeconfig, err := demo.Kubeconfig(user)
	if err != nil {
		return err
	}
	secret := demo.Named[corev1.Secret](namespace, kubeconfigSecret)
	secret.Data = map[string][]byte{"value": kubeconfig}
	ordered := theAgent()
	ordered.Spec.KubeConfig = &generator.KubeConfigSpec{
		SecretRef: generator.SecretKeyReference{Name: kubeconfigSecret},
	}
	ordered.Spec.ServiceAccountName = serviceAccount
	ordered.Spec.Values = v1alpha1.Values{"monitor": "https://" + monitor + "-store.example.com"}
	// It goes with the namespace: without it, the agent could not be deleted.
	if err := s.Client.Create(ctx, secret); err != nil {
		return err
	}
	return s.Create(ctx, ordered)
}

// prepareRemote does what the owner of the second cluster does: it has a namespace and a service account for what
// others deliver, and lets the user of the kubeconfig act as this account.
func (s *scenario) prepareRemote(ctx context.Context) error {
	courier := demo.Named[corev1.ServiceAccount](namespace, serviceAccount)
	subject := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: serviceAccount}
	role := courierRole()
	binding := demo.Named[rbacv1.ClusterRoleBinding]("", role.Name)
	binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}
	binding.Subjects = []rbacv1.Subject{subject}
	actAs := demo.Named[rbacv1.ClusterRole]("", "delivery-act-as-"+serviceAccount)
	actAs.Rules = []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"impersonate"},
		ResourceNames: []string{serviceAccount},
	}}
	return errors.Join(
		s.remote.Create(ctx, demo.Named[corev1.Namespace]("", namespace), courier, role, binding),
		s.remote.Grant(ctx, actAs, kubeconfigUser))
}

// courierRole is what the service account may do. What it may do with network policies is to be given, besides looking
// at them and deleting them.
func courierRole(policyVerbs ...string) *rbacv1.ClusterRole {
	role := demo.Named[rbacv1.ClusterRole]("", "delivery-"+serviceAccount)
	basic := []string{"get", "list", "watch", "delete"}
	role.Rules = []rbacv1.PolicyRule{
		{
			APIGroups: []string{""}, Resources: []string{"configmaps", "serviceaccounts"},
			Verbs: append([]string{"create", "update", "patch"}, basic...),
		},
		{
			APIGroups: []string{"networking.k8s.io"}, Resources: []string{"networkpolicies"},
			Verbs: append(append([]string{"update", "patch"}, basic...), policyVerbs...),
		},
	}
	return role
}

// remoteRequests returns how many requests to the second cluster the metrics of controller-runtime have counted. The
// operator must have been refused one, which shows that its requests are counted, and not just those of the scenario.
func (s *scenario) remoteRequests() (requests float64, err error) {
	if s.remote == nil {
		return 0, nil
	}
	families, err := metrics.Registry.Gather()
	if err != nil {
		return 0, err
	}
	address, err := url.Parse(s.Second.Config().Host)
	if err != nil {
		return 0, err
	}
	refused := false
	for _, family := range families {
		if family.GetName() != "rest_client_requests_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			if labels["host"] == address.Host {
				requests += metric.GetCounter().GetValue()
				refused = refused || labels["code"] == "403"
			}
		}
	}
	if !refused {
		return 0, errors.New("the metrics have no request of the operator to the second cluster")
	}
	return requests, nil
}
