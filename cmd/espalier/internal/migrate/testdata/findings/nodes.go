// Package findings has each shape of code that the finders know, for the tests of espalier migrate.
package findings

import (
	"context"
	"errors"
	"math/rand"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"reconciler.io/runtime/apis"
	"reconciler.io/runtime/reconcilers"
	"reconciler.io/runtime/stash"
	rtime "reconciler.io/runtime/time"
	"reconciler.io/runtime/tracker"
	"reconciler.io/runtime/validation"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

type (
	resource = *appsv1.Deployment
	child    = *corev1.ConfigMap
	children = *corev1.ConfigMapList
)

var set = apis.NewLivingConditionSet("A", "B")

func mark(ctx context.Context, accessor apis.ConditionsAccessor) {
	set.ManageWithContext(ctx, accessor).MarkUnknown("A", "Waiting", "")
}

func results(ctx context.Context, r resource) (reconcilers.Result, error) {
	switch r.Name {
	case "quiet":
		return reconcilers.Result{RequeueAfter: time.Second}, reconcilers.ErrHaltSubReconcilers
	case "negative":
		return ctrl.Result{RequeueAfter: -1}, nil
	case "joined":
		return reconcilers.Result{}, errors.Join(errors.New("joined"), reconcilers.ErrQuiet)
	case "halt":
		return reconcilers.Result{}, errors.Join(reconcilers.ErrHaltSubReconcilers, errors.New("joined"))
	case "durable":
		return reconcilers.Result{}, errors.Join(reconcilers.ErrDurable, reconcilers.ErrSkipStatusUpdate)
	case "aggregated":
		return reconcilers.AggregateResults(), nil
	}
	return reconcilers.Result{}, reconcilers.ErrQuiet
}

func roots(ctx context.Context, c reconcilers.Config) error {
	first := &reconcilers.ResourceReconciler[resource]{
		Reconciler: reconcilers.Sequence[resource]{},
		BeforeReconcile: func(
			ctx context.Context, _ reconcilers.Request,
		) (context.Context, reconcilers.Result, error) {
			return ctx, reconcilers.Result{}, nil
		},
	}
	second := &reconcilers.ResourceReconciler[resource]{Reconciler: reconcilers.Always[resource]{}}
	third := &reconcilers.ResourceReconciler[*unstructured.Unstructured]{}
	_, err := first.Reconcile(validation.WithRecursive(ctx), reconcilers.Request{})
	return errors.Join(err, second.Validate(ctx), third.Validate(ctx))
}

func aggregates(ctx context.Context, c reconcilers.Config) error {
	return errors.Join(
		(&reconcilers.AggregateReconciler[child]{Reconciler: &reconcilers.SyncReconciler[child]{}}).Validate(ctx),
		(&reconcilers.AggregateReconciler[child]{
			Request:                reconcilers.Request{NamespacedName: types.NamespacedName{Name: "system:node"}},
			DesiredResource:        func(context.Context, child) (child, error) { return nil, nil },
			AggregateObjectManager: manager{},
		}).Validate(ctx),
	)
}

// manager is an object manager of its own.
type manager struct {
	reconcilers.ObjectManager[child]
}

func tracks(ctx context.Context, c reconcilers.Config, other cluster.Cluster) error {
	c = c.WithCluster(other).WithDangerousDuckClientOperations()
	_ = c.Discovery
	_ = tracker.New(nil, time.Hour)
	reference := tracker.Reference{Kind: "Role", Name: "system:node"}
	return errors.Join(
		c.Tracker.TrackReference(reference, nil),
		c.TrackAndGet(ctx, types.NamespacedName{}, &corev1.Secret{}),
		c.TrackAndList(ctx, &corev1.SecretList{}),
		reconcilers.AddFinalizer(ctx, nil, "bare"),
		reconcilers.ClearFinalizer(ctx, nil, "example.com/with-a-domain"),
	)
}

func desiredChild(ctx context.Context, r resource) (child, error) {
	if r.Name == "" {
		return nil, nil
	}
	if r.Name == "only" {
		return nil, reconcilers.OnlyReconcileChildStatus
	}
	return &corev1.ConfigMap{Data: map[string]string{
		"at": rtime.RetrieveNow(ctx).String(), "on": time.Now().String(), "chance": string(rune(rand.Int())),
	}}, nil
}

var nodes = []reconcilers.SubReconciler[resource]{
	&reconcilers.ChildReconciler[resource, child, children]{
		DesiredChild: desiredChild,
		ChildObjectManager: &reconcilers.UpdatingObjectManager[child]{
			Finalizer: "bare", TrackDesired: true, HarmonizeImmutableFields: func(_, _ child) {},
			MergeBeforeUpdate: func(_, _ child) {}, Sanitize: func(child) any { return nil },
		},
		ReflectChildStatusOnParent: func(context.Context, resource, child, error) {},
	},
	&reconcilers.ChildReconciler[resource, child, children]{
		DesiredChild:                        func(context.Context, resource) (child, error) { return nil, nil },
		ChildObjectManager:                  manager{},
		ReflectChildStatusOnParentWithError: func(context.Context, resource, child, error) error { return nil },
		ReflectedChildErrorReasons:          []metav1.StatusReason{metav1.StatusReasonInvalid},
	},
	&reconcilers.ChildSetReconciler[resource, child, children]{
		Finalizer: "example.com/set", ChildObjectManager: manager{},
		OurChild: func(resource, child) bool { return true },
		ReflectChildrenStatusOnParentWithError: func(
			_ context.Context, _ resource, result reconcilers.ChildSetResult[child],
		) error {
			return result.AggregateError()
		},
	},
	&reconcilers.ChildReconciler[resource, child, children]{
		OurChild: func(resource, child) bool { return true }, ReflectedChildErrorReasons: []metav1.StatusReason{},
	},
	&reconcilers.WithFinalizer[resource]{Finalizer: "example.com/one"},
	&reconcilers.WithFinalizer[resource]{Finalizer: "example.com/one"},
	&reconcilers.CastResource[resource, child]{},
	&reconcilers.CastResource[resource, resource]{},
	&reconcilers.CastResource[resource, client.Object]{},
	&reconcilers.SuppressTransientErrors[resource, *unstructured.UnstructuredList]{},
	&reconcilers.Advice[resource]{},
	&reconcilers.While[resource]{MaxIterations: ptr.To(-1)},
	&reconcilers.ForEach[resource, string]{},
	&reconcilers.TryCatch[resource]{Finally: &reconcilers.SyncReconciler[resource]{}},
	&reconcilers.WithConfig[resource]{},
}

func stashes(ctx context.Context) error {
	_ = reconcilers.CursorStasher[string]()
	_, err := stash.New[string]("name").RetrieveOrError(ctx)
	if errors.Is(err, reconcilers.ErrStashValueNotFound) || err == stash.ErrValueNotAssignable {
		return nil
	}
	status := &apierrs.StatusError{}
	if errors.As(err, &status) {
		return nil
	}
	return err
}

func webhook(ctx context.Context) error {
	_, err := (&reconcilers.AdmissionWebhookAdapter[resource]{}).BuildWithContext(ctx)
	return err
}
