// Package bare has the operator of package controller, written with controller-runtime alone. It is here for the
// comparison: the tests in package behavior hold for both, and count the lines of both.
package bare

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
	"github.com/espalier-dev/espalier/examples/shop/registry"
)

const (
	finalizer     = "shop.example.com/registration"
	settingsIndex = "spec.settings"
	// staleInterval is how long to wait for the cache to show what the reconciler itself has written.
	staleInterval = 100 * time.Millisecond
)

// Reconciler gives each shop what it is to have.
type Reconciler struct {
	client.Client
	Recorder events.EventRecorder
	Registry registry.Registry
	// RetryInterval is how long to wait before something is asked for again that belongs to somebody else.
	RetryInterval time.Duration
}

// SetupWithManager has the manager run the reconciler.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	err := mgr.GetFieldIndexer().IndexField(ctx, &v1.Shop{}, settingsIndex, func(obj client.Object) []string {
		if name := obj.(*v1.Shop).Spec.Settings; name != "" {
			return []string{name}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("unable to index shops by their settings: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1.Shop{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		Owns(&networkingv1.Ingress{}).
		Owns(&batchv1.CronJob{}).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.shopsWithSettings)).
		Complete(r)
}

// shopsWithSettings returns a request for each shop whose settings are in a ConfigMap.
func (r *Reconciler) shopsWithSettings(ctx context.Context, configMap client.Object) []reconcile.Request {
	var shops v1.ShopList
	err := r.List(ctx, &shops, client.InNamespace(configMap.GetNamespace()),
		client.MatchingFields{settingsIndex: configMap.GetName()})
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "unable to list the shops with settings", "configMap", configMap.GetName())
		return nil
	}
	requests := make([]reconcile.Request, len(shops.Items))
	for i := range shops.Items {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&shops.Items[i])
	}
	return requests
}

// Reconcile gives one shop what it is to have, and writes its status if it has changed.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	shop := &v1.Shop{}
	if err := r.Get(ctx, req.NamespacedName, shop); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	before := shop.Status.DeepCopy()
	result, err := r.reconcile(ctx, shop)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		// The cache does not show yet what was written.
		return ctrl.Result{RequeueAfter: staleInterval}, nil
	}
	if !controllerutil.ContainsFinalizer(shop, finalizer) {
		return result, err
	}
	summarize(shop, err)
	if !equality.Semantic.DeepEqual(before, &shop.Status) {
		if statusErr := r.Status().Update(ctx, shop); statusErr != nil {
			return ctrl.Result{}, errors.Join(err, fmt.Errorf("unable to write the status: %w", statusErr))
		}
	}
	return result, err
}

func (r *Reconciler) reconcile(ctx context.Context, shop *v1.Shop) (ctrl.Result, error) {
	if !shop.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.finalize(ctx, shop)
	}
	if controllerutil.AddFinalizer(shop, finalizer) {
		if err := r.Update(ctx, shop); err != nil {
			return ctrl.Result{}, fmt.Errorf("unable to add the finalizer: %w", err)
		}
	}
	initializeConditions(shop)
	settings, err := r.getSettings(ctx, shop)
	if err != nil || settings == nil {
		return ctrl.Result{}, err
	}
	return r.outcome(
		r.reconcileDeployment(ctx, shop, settings),
		r.reconcileService(ctx, shop),
		r.reconcileIngress(ctx, shop),
		r.reconcileWorkers(ctx, shop),
		r.reconcileRegistration(ctx, shop),
	)
}

// outcome returns the errors of the parts. What belongs to somebody else is no error but asked for again.
func (r *Reconciler) outcome(errs ...error) (ctrl.Result, error) {
	var result ctrl.Result
	var failed []error
	for _, err := range errs {
		if reason := reasonOf(err); reason == notOurs || reason == hostTaken {
			result.RequeueAfter = r.RetryInterval
			continue
		}
		failed = append(failed, err)
	}
	return result, errors.Join(failed...)
}

// getSettings returns the ConfigMap of settings: an empty one if the shop names none, and nil if there is none.
func (r *Reconciler) getSettings(ctx context.Context, shop *v1.Shop) (*corev1.ConfigMap, error) {
	settings := &corev1.ConfigMap{}
	if shop.Spec.Settings == "" {
		setTrue(shop, v1.SettingsFound, "NotNeeded")
		return settings, nil
	}
	key := types.NamespacedName{Namespace: shop.Namespace, Name: shop.Spec.Settings}
	err := r.Get(ctx, key, settings)
	if apierrors.IsNotFound(err) {
		setFalse(shop, v1.SettingsFound, "NotFound", fmt.Sprintf("there is no ConfigMap %s", key))
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("unable to read the settings: %w", err)
	}
	setTrue(shop, v1.SettingsFound, "Found")
	return settings, nil
}

// reconcileRegistration registers the host once its Ingress is there.
func (r *Reconciler) reconcileRegistration(ctx context.Context, shop *v1.Shop) error {
	if !meta.IsStatusConditionTrue(shop.Status.Conditions, v1.IngressReady) {
		set(shop, v1.Registered, metav1.ConditionUnknown, "Waiting", "the Ingress is not there yet")
		return nil
	}
	if shop.Spec.Host == "" {
		if err := r.Registry.Unregister(ctx, owner(shop)); err != nil {
			return setFailed(shop, v1.Registered, fmt.Errorf("unable to unregister the shop: %w", err))
		}
		setTrue(shop, v1.Registered, "NoHost")
		return nil
	}
	if err := r.Registry.Register(ctx, owner(shop), shop.Spec.Host); err != nil {
		return setFailed(shop, v1.Registered, fmt.Errorf("unable to register the shop: %w", err))
	}
	setTrue(shop, v1.Registered, "Registered")
	return nil
}

func (r *Reconciler) finalize(ctx context.Context, shop *v1.Shop) error {
	if !controllerutil.ContainsFinalizer(shop, finalizer) {
		return nil
	}
	if err := r.Registry.Unregister(ctx, owner(shop)); err != nil {
		return fmt.Errorf("unable to unregister the shop: %w", err)
	}
	controllerutil.RemoveFinalizer(shop, finalizer)
	if err := r.Update(ctx, shop); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("unable to remove the finalizer: %w", err)
	}
	return nil
}

// owner is what the registry knows a shop by.
func owner(shop *v1.Shop) string { return client.ObjectKeyFromObject(shop).String() }
