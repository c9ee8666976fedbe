// Package bare has the operator of package controller, written with controller-runtime alone. It is here for the
// comparison: stories hold for both, and a test counts the lines of both.
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
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/espalier-dev/espalier/examples/mirror/api/v1"
	"github.com/espalier-dev/espalier/examples/mirror/registry"
)

const (
	finalizer        = "mirror.example.com/registration"
	credentialsIndex = "spec.credentials"
	// staleInterval is how long to wait for the cache to show what the reconciler itself has written.
	staleInterval = 100 * time.Millisecond
	// retryInterval is how long to wait before something is asked for again that sends no event.
	retryInterval = 10 * time.Second
)

// Reconciler gives each mirror what it is to have.
type Reconciler struct {
	client.Client
	Recorder events.EventRecorder
	Registry registry.Registry
}

// SetupWithManager has the manager run the reconciler.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	err := mgr.GetFieldIndexer().IndexField(ctx, &v1.Mirror{}, credentialsIndex, func(obj client.Object) []string {
		if name := obj.(*v1.Mirror).Spec.Credentials; name != "" {
			return []string{name}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("unable to index mirrors by their credentials: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1.Mirror{}).
		Owns(&corev1.ConfigMap{}).
		Owns(&corev1.Service{}).
		Owns(&networkingv1.NetworkPolicy{}).
		Owns(&batchv1.CronJob{}).
		Owns(&policyv1.PodDisruptionBudget{}).
		Owns(&appsv1.StatefulSet{}).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.mirrorsWithCredentials)).
		Complete(r)
}

// mirrorsWithCredentials returns a request for each mirror whose credentials are in a Secret.
func (r *Reconciler) mirrorsWithCredentials(ctx context.Context, secret client.Object) []reconcile.Request {
	var mirrors v1.MirrorList
	err := r.List(ctx, &mirrors, client.InNamespace(secret.GetNamespace()),
		client.MatchingFields{credentialsIndex: secret.GetName()})
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "unable to list the mirrors with credentials", "secret", secret.GetName())
		return nil
	}
	requests := make([]reconcile.Request, len(mirrors.Items))
	for i := range mirrors.Items {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&mirrors.Items[i])
	}
	return requests
}

// Reconcile gives one mirror what it is to have, and writes its status if it has changed.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	mirror := &v1.Mirror{}
	if err := r.Get(ctx, req.NamespacedName, mirror); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	before := mirror.Status.DeepCopy()
	result, err := r.reconcile(ctx, mirror)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		// The cache does not show yet what was written.
		return ctrl.Result{RequeueAfter: staleInterval}, nil
	}
	if !controllerutil.ContainsFinalizer(mirror, finalizer) {
		return result, err
	}
	summarize(mirror, err)
	if !equality.Semantic.DeepEqual(before, &mirror.Status) {
		if statusErr := r.Status().Update(ctx, mirror); statusErr != nil {
			return ctrl.Result{}, errors.Join(err, fmt.Errorf("unable to write the status: %w", statusErr))
		}
	}
	return result, err
}

func (r *Reconciler) reconcile(ctx context.Context, mirror *v1.Mirror) (ctrl.Result, error) {
	if !mirror.DeletionTimestamp.IsZero() {
		return r.outcome(r.finalize(ctx, mirror))
	}
	if controllerutil.AddFinalizer(mirror, finalizer) {
		if err := r.Update(ctx, mirror); err != nil {
			return ctrl.Result{}, fmt.Errorf("unable to add the finalizer: %w", err)
		}
	}
	initializeConditions(mirror)
	return r.outcome(
		r.reconcileConfig(ctx, mirror),
		r.reconcileService(ctx, mirror),
		r.reconcilePolicies(ctx, mirror),
		r.reconcilePrune(ctx, mirror),
		r.reconcileBudget(ctx, mirror),
		r.reconcileWorkload(ctx, mirror),
	)
}

// reconcileWorkload runs the pods, and has the registry know them. Without the credentials both stay as they are.
func (r *Reconciler) reconcileWorkload(ctx context.Context, mirror *v1.Mirror) error {
	secret, err := r.getCredentials(ctx, mirror)
	if err != nil || secret == nil {
		return err
	}
	if err := r.reconcileStatefulSet(ctx, mirror, secret); err != nil {
		return err
	}
	return r.reconcileRegistration(ctx, mirror)
}

// outcome returns the errors of the parts. What belongs to somebody else, and what the registry has not done yet, is no
// error but asked for again.
func (r *Reconciler) outcome(errs ...error) (ctrl.Result, error) {
	var result ctrl.Result
	var failed []error
	for _, err := range errs {
		if reason := reasonOf(err); reason == notOurs || reason == notConfirmed {
			result.RequeueAfter = retryInterval
			continue
		}
		failed = append(failed, err)
	}
	return result, errors.Join(failed...)
}

// getCredentials returns the Secret of the mirror: an empty one if the mirror names none, and nil if there is none.
func (r *Reconciler) getCredentials(ctx context.Context, mirror *v1.Mirror) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	if mirror.Spec.Credentials == "" {
		setTrue(mirror, v1.CredentialsFound, "NotDesired")
		return secret, nil
	}
	key := types.NamespacedName{Namespace: mirror.Namespace, Name: mirror.Spec.Credentials}
	err := r.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		setFalse(mirror, v1.CredentialsFound, "NotFound", fmt.Sprintf("Secret %s does not exist", key))
		for _, part := range []string{v1.StatefulSetReady, v1.Registered} {
			set(mirror, part, metav1.ConditionUnknown, "Waiting", "waiting for the credentials")
		}
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("unable to read the credentials: %w", err)
	}
	setTrue(mirror, v1.CredentialsFound, "Found")
	return secret, nil
}

func (r *Reconciler) reconcileRegistration(ctx context.Context, mirror *v1.Mirror) error {
	if !isTrue(mirror, v1.StatefulSetReady) {
		set(mirror, v1.Registered, metav1.ConditionUnknown, "Waiting", "waiting for the StatefulSet")
		return nil
	}
	if err := r.Registry.Register(ctx, keyOf(mirror), mirror.Spec.Upstream); err != nil {
		return setFailed(mirror, v1.Registered, fmt.Errorf("unable to register the mirror: %w", err))
	}
	setTrue(mirror, v1.Registered, "Succeeded")
	return nil
}

func (r *Reconciler) finalize(ctx context.Context, mirror *v1.Mirror) error {
	if !controllerutil.ContainsFinalizer(mirror, finalizer) {
		return nil
	}
	if err := r.Registry.Unregister(ctx, keyOf(mirror)); err != nil {
		return setFailed(mirror, v1.Registered, fmt.Errorf("unable to unregister the mirror: %w", err))
	}
	controllerutil.RemoveFinalizer(mirror, finalizer)
	if err := r.Update(ctx, mirror); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("unable to remove the finalizer: %w", err)
	}
	return nil
}

// keyOf is what the registry knows a mirror by.
func keyOf(mirror *v1.Mirror) string { return client.ObjectKeyFromObject(mirror).String() }
