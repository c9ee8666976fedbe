package story

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
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/tenant/config"
	"github.com/espalier-dev/espalier/examples/tenant/controller"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/webhookserver"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

// registerWebhooks has the API server call the operator's webhooks: the manifests are those for a cluster, but for the
// address.
func (w *World) registerWebhooks(ctx context.Context) error {
	server := w.operator.webhooks
	err := storytelling.Eventually(ctx, storytelling.Patience, func(context.Context) error { return server.StartedChecker()(nil) })
	if err != nil {
		return fmt.Errorf("the webhooks are not served: %w", err)
	}
	mutating, validating, err := config.Webhooks()
	if err != nil {
		return err
	}
	for i := range mutating.Webhooks {
		mutating.Webhooks[i].ClientConfig = addressOf(server, mutating.Webhooks[i].ClientConfig)
	}
	for i := range validating.Webhooks {
		validating.Webhooks[i].ClientConfig = addressOf(server, validating.Webhooks[i].ClientConfig)
	}
	for _, configuration := range []client.Object{mutating, validating} {
		if err := w.Create(ctx, configuration); err != nil {
			return fmt.Errorf("unable to register the webhooks: %w", err)
		}
	}
	return nil
}

// addressOf leads to the path of service on the server, which is on this machine, instead.
func addressOf(
	server *webhookserver.Server, service admissionregistrationv1.WebhookClientConfig,
) admissionregistrationv1.WebhookClientConfig {
	return server.Mutating("", webhookserver.Hook{Path: *service.Service.Path}).Webhooks[0].ClientConfig
}

// dryTenant is the name of a tenant that is only tried out.
const dryTenant = "demo-dry"

// impossible returns a tenant that has three mistakes, none of which the schema sees.
func impossible() *v1alpha1.Tenant {
	tenant := newTenant("kube-demo")
	tenant.Spec.Quota = corev1.ResourceList{
		corev1.ResourcePods:        resource.MustParse("-1"),
		corev1.ResourceRequestsCPU: resource.MustParse("-2"),
	}
	return tenant
}

// deserted returns a tenant without members.
func deserted() *v1alpha1.Tenant {
	tenant := newTenant(dryTenant)
	tenant.Spec.Members = nil
	return tenant
}

// tryTenants asks the API server what would come of some tenants, for a step to show.
func (w *World) tryTenants(ctx context.Context) error {
	tenant := newTenant(dryTenant)
	if err := w.Client.Create(ctx, tenant, client.DryRunAll); err != nil {
		return err
	}
	w.answers = []string{fmt.Sprintf("%s: accepted, as %q, ordered by %s", tenant.Name, tenant.Spec.DisplayName, tenant.Annotations[controller.OrderedByAnnotation])}
	w.warnings.reset()
	for _, tenant := range []*v1alpha1.Tenant{impossible(), deserted()} {
		answer := "accepted"
		if err := w.Client.Create(ctx, tenant, client.DryRunAll); err != nil {
			answer = strings.ReplaceAll(err.Error(), ", spec.", ",\n    spec.")
		}
		w.answers = append(w.answers, tenant.Name+": "+answer)
	}
	for _, warning := range w.warnings.texts() {
		w.answers = append(w.answers, "    Warning: "+warning)
	}
	return nil
}

// isCompleted holds when what is left out of a tenant is filled in, by a dry run.
func isCompleted(ctx context.Context, w *World) error {
	tenant := newTenant(dryTenant)
	if err := w.Client.Create(ctx, tenant, client.DryRunAll); err != nil {
		return err
	}
	if tenant.Spec.DisplayName != dryTenant || tenant.Annotations[controller.OrderedByAnnotation] == "" {
		return fmt.Errorf("it is called %q, with the annotations %v", tenant.Spec.DisplayName, tenant.Annotations)
	}
	return nil
}

// isRefusedByFields holds when a tenant is refused for all of its mistakes at once.
func isRefusedByFields(ctx context.Context, w *World) error {
	err := w.Client.Create(ctx, impossible(), client.DryRunAll)
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
		return fmt.Errorf("the answer is %w", orNone(err))
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

// isWarnedOf holds when somebody who orders a tenant without members is warned.
func isWarnedOf(ctx context.Context, w *World) error {
	w.warnings.reset()
	if err := w.Client.Create(ctx, deserted(), client.DryRunAll); err != nil {
		return err
	}
	if heard := w.warnings.texts(); len(heard) != 1 || !strings.Contains(heard[0], "no members") {
		return fmt.Errorf("the warnings are %q", heard)
	}
	return nil
}

// needsRoles holds when each member needs a role, of its own or that of the tenant, which the schema sees to.
func needsRoles(ctx context.Context, w *World) error {
	tenant := newTenant(dryTenant)
	tenant.Spec.Role = ""
	tenant.Spec.Members[0].Role = "guest"
	err := w.Client.Create(ctx, tenant.DeepCopy(), client.DryRunAll)
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "each member needs a role") {
		return fmt.Errorf("the answer to a member without a role is %w", orNone(err))
	}
	tenant.Spec.Members[1].Role = "guest"
	return w.Client.Create(ctx, tenant, client.DryRunAll)
}

// isProtected holds when the API server does not let anybody delete a tenant.
func isProtected(tenant string) check {
	return func(ctx context.Context, w *World) error {
		err := deleteTenant(ctx, w, tenant)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "is protected") {
			return fmt.Errorf("the answer is %w", orNone(err))
		}
		return nil
	}
}

// isNotDeleted holds when a tenant is there, and is to stay.
func isNotDeleted(name string) check {
	return func(ctx context.Context, w *World) error {
		tenant, err := get[v1alpha1.Tenant](ctx, w, "", name)
		if err == nil && tenant.DeletionTimestamp != nil {
			return fmt.Errorf("%s is being deleted", name)
		}
		return err
	}
}

// keepsWhoOrdered holds when a tenant tells who has ordered it, whatever somebody else wrote.
func keepsWhoOrdered(name, liar string) check {
	return func(ctx context.Context, w *World) error {
		tenant, err := get[v1alpha1.Tenant](ctx, w, "", name)
		if who := tenant.Annotations[controller.OrderedByAnnotation]; err == nil && (who == "" || who == liar) {
			return fmt.Errorf("%s was ordered by %q", name, who)
		}
		return err
	}
}

var errNone = errors.New("that it is done")

func orNone(err error) error {
	if err == nil {
		return errNone
	}
	return err
}

// warnings are those that the API server has given us.
type warnings struct {
	mu    sync.Mutex
	heard []string
}

var _ rest.WarningHandler = (*warnings)(nil)

// HandleWarningHeader implements [rest.WarningHandler].
func (w *warnings) HandleWarningHeader(_ int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heard = append(w.heard, text)
}

func (w *warnings) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heard = nil
}

func (w *warnings) texts() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.heard)
}
