package sharder

import (
	"context"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// addRings adds the controller that registers the webhook of each ring and counts its shards in the status.
func (s *Sharder) addRings(mgr ctrl.Manager) error {
	counted := s.availabilityChanged()
	counted.CreateFunc = func(event.CreateEvent) bool { return true }
	counted.DeleteFunc = func(event.DeleteEvent) bool { return true }
	return forRings(mgr, "controllerring", counted).Complete(reconcile.Func(s.reconcileRing))
}

func (s *Sharder) reconcileRing(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ring, obj, err := s.ring(ctx, request.Name)
	if ring == nil || err != nil {
		return reconcile.Result{}, err
	}
	if err := s.register(ctx, *ring, obj); err != nil {
		return reconcile.Result{}, err
	}
	leases, err := s.leases(ctx, *ring)
	if err != nil {
		return reconcile.Result{}, err
	}
	available := int64(0)
	for i := range leases {
		if StateOf(&leases[i], s.now()).available() {
			available++
		}
	}
	counted := obj.DeepCopy()
	counted.Object["status"] = map[string]any{
		"observedGeneration": obj.GetGeneration(), "shards": int64(len(leases)), "availableShards": available,
		"conditions": []any{map[string]any{
			"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded", "message": "",
			"observedGeneration": obj.GetGeneration(),
			"lastTransitionTime": obj.GetCreationTimestamp().UTC().Format("2006-01-02T15:04:05Z"),
		}},
	}
	if apiequality.Semantic.DeepEqual(obj.Object["status"], counted.Object["status"]) {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, s.client.Status().Update(ctx, counted)
}

// register applies the configuration of a ring's webhook.
func (s *Sharder) register(ctx context.Context, ring Ring, owner *unstructured.Unstructured) error {
	configuration := s.configuration(ring)
	if err := controllerutil.SetControllerReference(owner, configuration, s.client.Scheme()); err != nil {
		return err
	}
	//lint:ignore SA1019 there are no generated types for an owner's reference to a ring
	err := s.client.Patch(ctx, configuration, client.Apply, client.FieldOwner("controllerring-controller"))
	if err != nil {
		return fmt.Errorf("register the webhook of ControllerRing %s: %w", ring.Name, err)
	}
	return nil
}

// configuration returns the configuration of a ring's webhook. It is called for objects without a shard, and what it
// cannot be asked about is admitted as it is.
func (s *Sharder) configuration(ring Ring) *admissionregistrationv1.MutatingWebhookConfiguration {
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{
			Name: "controllerring-" + ring.Name, Labels: map[string]string{RingLabel: ring.Name},
		},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name:              "sharder.sharding.timebertt.dev",
			ClientConfig:      at(s.options.Webhook, WebhookPath+ring.Name),
			Rules:             rules(ring),
			NamespaceSelector: ring.namespaces(),
			ObjectSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
				Key: ShardLabel(ring.Name), Operator: metav1.LabelSelectorOpDoesNotExist,
			}}},
			FailurePolicy:           new(admissionregistrationv1.Ignore),
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			TimeoutSeconds:          new(int32(5)),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
	configuration.SetGroupVersionKind(
		admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration"))
	return configuration
}

// at returns how a path is called where a webhook is.
func at(webhook admissionregistrationv1.WebhookClientConfig, path string) admissionregistrationv1.WebhookClientConfig {
	webhook = *webhook.DeepCopy()
	if webhook.Service != nil {
		webhook.Service.Path = &path
	}
	if webhook.URL != nil {
		webhook.URL = new(strings.TrimSuffix(*webhook.URL, "/") + path)
	}
	return webhook
}

// rules returns when the webhook of a ring is called.
func rules(ring Ring) []admissionregistrationv1.RuleWithOperations {
	var all []admissionregistrationv1.RuleWithOperations
	add := func(resource metav1.GroupResource) {
		all = append(all, admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{
				admissionregistrationv1.Create, admissionregistrationv1.Update,
			},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{resource.Group}, APIVersions: []string{"*"}, Resources: []string{resource.Resource},
				Scope: new(admissionregistrationv1.AllScopes),
			},
		})
	}
	for _, main := range ring.Spec.Resources {
		add(main.GroupResource)
		for _, controlled := range main.ControlledResources {
			add(controlled)
		}
	}
	return all
}
