package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
	"github.com/espalier-dev/espalier/examples/shop/config"
	"github.com/espalier-dev/espalier/examples/shop/webhooks"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/webhookserver"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

// registerWebhooks has the API server call the operator's webhooks: the manifests are those for a cluster, but for the
// address, which leads to the same path on this machine.
func (s *scenario) registerWebhooks(ctx context.Context) error {
	isServed := func(context.Context) error { return s.hooks.StartedChecker()(nil) }
	if err := demo.Eventually(ctx, s.Patience, isServed); err != nil {
		return fmt.Errorf("the webhooks are not served: %w", err)
	}
	mutating, validating, err := config.Webhooks()
	if err != nil {
		return err
	}
	here := func(c *admissionregistrationv1.WebhookClientConfig) {
		*c = s.hooks.Mutating("", webhookserver.Hook{Path: *c.Service.Path}).Webhooks[0].ClientConfig
	}
	here(&mutating.Webhooks[0].ClientConfig)
	here(&validating.Webhooks[0].ClientConfig)
	return s.Creates(mutating, validating)(ctx)
}

// newDry returns a shop that is only tried out.
func newDry(name, host string, replicas int32) *v1.Shop {
	shop := demo.Named[v1.Shop](namespace, name)
	shop.Spec = v1.ShopSpec{Image: image, Host: host, Replicas: replicas}
	return shop
}

func dry() *v1.Shop      { return newDry("dry", "Dry.Example.com", 1) }
func deserted() *v1.Shop { return newDry("deserted", "deserted.example.com", 0) }

// impossible returns a shop that has two mistakes, which the schema does not see.
func impossible() *v1.Shop {
	shop := newDry("impossible", "no_host", 1)
	shop.Spec.Workers = []v1.Worker{{Name: "mail", Schedule: "now and then"}}
	return shop
}

// tryShops asks the API server by dry runs what would come of some shops. It is asked until it calls the webhooks.
func (s *scenario) tryShops(ctx context.Context) error {
	if err := demo.Eventually(ctx, s.Patience, s.isRefusedByFields); err != nil {
		return err
	}
	s.warnings.reset()
	s.answers = nil
	for _, shop := range []*v1.Shop{dry(), impossible(), deserted()} {
		answer := "accepted"
		if err := s.Client.Create(ctx, shop, client.DryRunAll); err != nil {
			answer = strings.ReplaceAll(err.Error(), ", spec.", ",\n    spec.")
		}
		s.answers = append(s.answers, shop.Name+": "+answer)
	}
	for _, warning := range s.warnings.get() {
		s.answers = append(s.answers, "    Warning: "+warning)
	}
	return nil
}

func (s *scenario) isCompleted(ctx context.Context) error {
	shop := dry()
	if err := s.Client.Create(ctx, shop, client.DryRunAll); err != nil {
		return err
	}
	if shop.Spec.Host != strings.ToLower(dry().Spec.Host) || shop.Annotations[webhooks.OrderedByAnnotation] == "" {
		return fmt.Errorf("it has the host %q and the annotations %v", shop.Spec.Host, shop.Annotations)
	}
	return nil
}

// isRefusedByFields holds when a shop is refused for all of its mistakes at once.
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
	if want := []string{"spec.host", "spec.workers[0].schedule"}; !slices.Equal(fields, want) {
		return fmt.Errorf("the causes name the fields %q, not %q", fields, want)
	}
	return nil
}

func (s *scenario) isWarnedOf(context.Context) error {
	if texts := s.warnings.get(); len(texts) != 1 || !strings.Contains(texts[0], "nobody answers there") {
		return fmt.Errorf("the warnings are %q", texts)
	}
	return nil
}

// isTooLong holds when the API server refuses a name that others could not be made of.
func (s *scenario) isTooLong(ctx context.Context) error {
	err := s.Client.Create(ctx, newDry(strings.Repeat("long", 8), "", 1), client.DryRunAll)
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "30 characters") {
		return fmt.Errorf("the answer is %v", err)
	}
	return nil
}

// isProtected holds when the API server does not let anybody delete the shop.
func (s *scenario) isProtected(ctx context.Context) error {
	err := s.Client.Delete(ctx, web(), client.DryRunAll)
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "is protected") {
		return fmt.Errorf("the answer is %v", err)
	}
	return nil
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
