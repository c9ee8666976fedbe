package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/tenant/config"
	"github.com/espalier-dev/espalier/examples/tenant/controller"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/webhookserver"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

// registerWebhooks has the API server call the operator's webhooks: the manifests are those for a cluster, but for the
// address, which leads to the same path on this machine.
func (s *scenario) registerWebhooks(ctx context.Context) error {
	isServed := func(context.Context) error { return s.webhooks.StartedChecker()(nil) }
	if err := demo.Eventually(ctx, s.Patience, isServed); err != nil {
		return fmt.Errorf("the webhooks are not served: %w", err)
	}
	mutating, validating, err := config.Webhooks()
	if err != nil {
		return err
	}
	here := func(c *admissionregistrationv1.WebhookClientConfig) {
		*c = s.webhooks.Mutating("", webhookserver.Hook{Path: *c.Service.Path}).Webhooks[0].ClientConfig
	}
	here(&mutating.Webhooks[0].ClientConfig)
	here(&validating.Webhooks[0].ClientConfig)
	return s.Create(ctx, mutating, validating)
}

// dryTenant is the name of a tenant that is only tried out.
const dryTenant = "demo-dry"

// impossible returns a tenant that has three mistakes, which the schema does not see.
func impossible() *v1alpha1.Tenant {
	tenant := newTenant("kube-demo")
	tenant.Spec.Quota = corev1.ResourceList{
		corev1.ResourcePods:        resource.MustParse("-1"),
		corev1.ResourceRequestsCPU: resource.MustParse("-2"),
	}
	return tenant
}

// tryTenants asks the API server by dry runs what would come of some tenants. It is asked until it calls the webhooks.
func (s *scenario) tryTenants(ctx context.Context) error {
	if err := demo.Eventually(ctx, s.Patience, s.isRefusedByFields); err != nil {
		return err
	}
	s.warnings.reset()
	deserted := newTenant("demo-deserted")
	deserted.Spec.Members = nil
	s.answers = nil
	for _, tenant := range []*v1alpha1.Tenant{newTenant(dryTenant), impossible(), deserted} {
		answer := "accepted"
		if err := s.Client.Create(ctx, tenant, client.DryRunAll); err != nil {
			answer = strings.ReplaceAll(err.Error(), ", spec.", ",\n    spec.")
		}
		s.answers = append(s.answers, tenant.Name+": "+answer)
	}
	for _, warning := range s.warnings.get() {
		s.answers = append(s.answers, "    Warning: "+warning)
	}
	return nil
}

// isCompleted holds when what is left out of a tenant is filled in.
func (s *scenario) isCompleted(ctx context.Context) error {
	tenant := newTenant(dryTenant)
	if err := s.Client.Create(ctx, tenant, client.DryRunAll); err != nil {
		return err
	}
	if tenant.Spec.DisplayName != dryTenant || tenant.Annotations[controller.OrderedByAnnotation] == "" {
		return fmt.Errorf("it is called %q, with the annotations %v", tenant.Spec.DisplayName, tenant.Annotations)
	}
	return nil
}

// isRefusedByFields holds when a tenant is refused for all of its mistakes at once.
func (s *scenario) isRefusedByFields(ctx context.Context) error {
	err := s.Client.Create(ctx, impossible(), client.DryRunAll)
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
		return fmt.Errorf("the answer is %v", err)
	}
	var fields []string
	for _, cause := range status.Status().Details.Causes {
		fields = append(fields, cause.Field)
	}
	if want := []string{"metadata.name", "spec.quota[pods]", "spec.quota[requests.cpu]"}; !slices.Equal(fields, want) {
		return fmt.Errorf("the causes name the fields %q, not %q", fields, want)
	}
	return nil
}

// needsRoles holds when each member needs a role, its own or the role of the tenant. The schema sees to that.
func (s *scenario) needsRoles(ctx context.Context) error {
	tenant := newTenant(dryTenant)
	tenant.Spec.Role = ""
	tenant.Spec.Members[0].Role = "guest"
	err := s.Client.Create(ctx, tenant.DeepCopy(), client.DryRunAll)
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "each member needs a role") {
		return fmt.Errorf("the answer to a member without a role is %v", err)
	}
	tenant.Spec.Members[1].Role = "guest"
	return s.Client.Create(ctx, tenant, client.DryRunAll)
}

// isWarnedOf holds when the tenant without members has got a warning.
func (s *scenario) isWarnedOf(context.Context) error {
	if texts := s.warnings.get(); len(texts) != 1 || !strings.Contains(texts[0], "no members") {
		return fmt.Errorf("the warnings are %q", texts)
	}
	return nil
}

// isProtected holds when the API server does not let anybody delete a tenant.
func (s *scenario) isProtected(tenant string) demo.Condition {
	return func(ctx context.Context) error {
		err := s.Client.Delete(ctx, tenantOf(tenant))
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "is protected") {
			return fmt.Errorf("the answer is %v", err)
		}
		return nil
	}
}

// warnings are what the API server has warned of. They implement rest.WarningHandler.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

func (w *warnings) HandleWarningHeader(_ int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

func (w *warnings) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = nil
}

func (w *warnings) get() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.texts)
}
