// Package webhooks has the admission webhooks of the shop: trees of the same nodes as the controller.
package webhooks

import (
	"context"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	v1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
	"github.com/espalier-dev/espalier/reconcilers"
)

// What "make generate" makes the configurations of the webhooks of:
//
// +kubebuilder:webhookconfiguration:mutating=true,name=shop-operator
// +kubebuilder:webhookconfiguration:mutating=false,name=shop-operator
// +kubebuilder:webhook:path=/mutate-shop,mutating=true,failurePolicy=fail,sideEffects=None,groups=shop.example.com,resources=shops,verbs=create;update,versions=v1,name=defaulting.shop.example.com,admissionReviewVersions=v1,serviceName=shop-operator,serviceNamespace=shop-operator
// +kubebuilder:webhook:path=/validate-shop,mutating=false,failurePolicy=fail,sideEffects=None,groups=shop.example.com,resources=shops,verbs=create;update;delete,versions=v1,name=validation.shop.example.com,admissionReviewVersions=v1,serviceName=shop-operator,serviceNamespace=shop-operator

const (
	// OrderedByAnnotation names the user who created a shop.
	OrderedByAnnotation = "shop.example.com/ordered-by"
	// ProtectedAnnotation keeps a shop from being deleted, if it is "true".
	ProtectedAnnotation = "shop.example.com/protected"
)

type (
	adapter = reconcilers.AdmissionWebhookAdapter[*v1.Shop]
	sync    = reconcilers.SyncReconciler[*v1.Shop]
)

// SetUp has the server serve both webhooks.
func SetUp(ctx context.Context, server webhook.Server) error {
	for path, adapter := range map[string]*adapter{"/mutate-shop": Defaulting(), "/validate-shop": Validation()} {
		hook, err := adapter.BuildWithContext(ctx)
		if err != nil {
			return err
		}
		server.Register(path, hook)
	}
	return nil
}

// Defaulting returns the webhook that writes hosts in lower case, and notes who created a shop.
func Defaulting() *adapter {
	return &adapter{
		Name: "Defaulting",
		Reconciler: reconcilers.Sequence[*v1.Shop]{
			&sync{Name: "Host", Sync: func(_ context.Context, shop *v1.Shop) error {
				shop.Spec.Host = strings.ToLower(shop.Spec.Host)
				return nil
			}},
			&sync{Name: "OrderedBy", Sync: noteWhoOrdered},
		},
	}
}

// Validation returns the webhook that refuses mistakes which the schema cannot see, and the deletion of a protected
// shop.
func Validation() *adapter {
	return &adapter{
		Name: "Validation",
		Reconciler: &reconcilers.IfThen[*v1.Shop]{
			Name: "IsDeletion",
			If: func(ctx context.Context, _ *v1.Shop) bool {
				return reconcilers.RetrieveAdmissionRequest(ctx).Operation == admissionv1.Delete
			},
			Then: &sync{Name: "Protection", Sync: protect},
			Else: reconcilers.Sequence[*v1.Shop]{
				&sync{Name: "OnlyChanges", Sync: haltUnlessChanged},
				// A user hears of all mistakes at once.
				reconcilers.Always[*v1.Shop]{
					&sync{Name: "Host", Sync: checkHost},
					&sync{Name: "Workers", Sync: checkSchedules},
				},
			},
		},
	}
}

// noteWhoOrdered keeps the annotation what it was when the shop was created, also if a user writes another name.
func noteWhoOrdered(ctx context.Context, shop *v1.Shop) error {
	who := reconcilers.RetrieveAdmissionRequest(ctx).UserInfo.Username
	old, err := reconcilers.RetrieveOldResource[*v1.Shop](ctx)
	if err != nil {
		return err
	}
	if old != nil {
		who = old.Annotations[OrderedByAnnotation]
	}
	if who == "" { // it was there before the webhook
		delete(shop.Annotations, OrderedByAnnotation)
		return nil
	}
	shop.Annotations = reconcilers.MergeMaps(shop.Annotations, map[string]string{OrderedByAnnotation: who})
	return nil
}

func protect(_ context.Context, shop *v1.Shop) error {
	if shop.Annotations[ProtectedAnnotation] == "true" {
		return reconcilers.Deny("shop %s is protected: to delete it, remove the annotation %s",
			shop.Name, ProtectedAnnotation)
	}
	return nil
}

// haltUnlessChanged ends the checks, and allows the request, if the spec has not changed. A mistake that is stored
// already must not keep a client, such as the operator, from changing something else.
func haltUnlessChanged(ctx context.Context, shop *v1.Shop) error {
	old, err := reconcilers.RetrieveOldResource[*v1.Shop](ctx)
	if err == nil && old != nil && equality.Semantic.DeepEqual(old.Spec, shop.Spec) {
		return reconcilers.ErrHaltSubReconcilers
	}
	return err
}

func checkHost(ctx context.Context, shop *v1.Shop) error {
	var problems field.ErrorList
	if host := shop.Spec.Host; host != "" {
		for _, problem := range validation.IsDNS1123Subdomain(host) {
			problems = append(problems, field.Invalid(field.NewPath("spec", "host"), host, problem))
		}
		if shop.Spec.Replicas == 0 {
			reconcilers.Warn(ctx, "shop %s has a host and no replicas: nobody answers there", shop.Name)
		}
	}
	return reconcilers.InvalidFields(ctx, shop, problems)
}

// scheduleFields is how many fields the schedule of a CronJob has, unless it is a word such as @daily.
const scheduleFields = 5

func checkSchedules(ctx context.Context, shop *v1.Shop) error {
	var problems field.ErrorList
	for i, worker := range shop.Spec.Workers {
		if strings.HasPrefix(worker.Schedule, "@") || len(strings.Fields(worker.Schedule)) == scheduleFields {
			continue
		}
		path := field.NewPath("spec", "workers").Index(i).Child("schedule")
		problems = append(problems, field.Invalid(path, worker.Schedule, "must have five fields, as in \"0 4 * * *\""))
	}
	return reconcilers.InvalidFields(ctx, shop, problems)
}
