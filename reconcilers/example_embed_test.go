package reconcilers_test

import (
	"context"
	"fmt"

	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DeploymentReconciler is an ordinary reconciler of controller-runtime. A node makes the PodDisruptionBudget.
type DeploymentReconciler struct {
	client.Client
	budget *reconcilers.Embedded[*appsv1.Deployment]
}

func NewDeploymentReconciler(config reconcilers.Config) *DeploymentReconciler {
	return &DeploymentReconciler{Client: config, budget: reconcilers.Embed(config, budget())}
}

// budget is a node: a Deployment of several replicas has a PodDisruptionBudget.
func budget() reconcilers.SubReconciler[*appsv1.Deployment] {
	type Budget = policyv1.PodDisruptionBudget
	return &reconcilers.ChildReconciler[*appsv1.Deployment, *Budget, *policyv1.PodDisruptionBudgetList]{
		Name: "Budget",
		DesiredChild: func(_ context.Context, d *appsv1.Deployment) (*Budget, error) {
			if d.Spec.Replicas == nil || *d.Spec.Replicas < 2 {
				return nil, nil
			}
			return &Budget{
				ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name},
				Spec: policyv1.PodDisruptionBudgetSpec{
					MaxUnavailable: new(intstr.FromInt32(1)),
					Selector:       d.Spec.Selector,
				},
			}, nil
		},
		MergeBeforeUpdate: func(current, desired *Budget) { current.Spec = desired.Spec },
		ReflectChildStatusOnParent: func(_ context.Context, d *appsv1.Deployment, child *Budget, err error) {
			fmt.Println("the Deployment has a budget:", child != nil, err)
		},
	}
}

// SetupWithManager is called by main.
func (r *DeploymentReconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	bldr := ctrl.NewControllerManagedBy(mgr).For(&appsv1.Deployment{})
	if err := r.budget.SetupWithManager(ctx, mgr, bldr); err != nil {
		return err
	}
	return bldr.Complete(r)
}

func (r *DeploymentReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	deployment := &appsv1.Deployment{}
	if err := r.Get(ctx, req.NamespacedName, deployment); err != nil {
		r.budget.Forget(req)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	// What the reconciler has always done stays here.
	return r.budget.Reconcile(ctx, deployment)
}

func ExampleEmbedded() {
	cluster := rtesting.ExpectConfig{
		Scheme: clientgoscheme.Scheme,
		GivenObjects: []client.Object{&appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "1"},
			Spec:       appsv1.DeploymentSpec{Replicas: new(int32(3))},
		}},
	}
	r := NewDeploymentReconciler(cluster.Config())
	req := ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "web"}}

	result, err := r.Reconcile(context.Background(), req)
	fmt.Println(result.IsZero(), err)

	made := &policyv1.PodDisruptionBudget{}
	err = r.Get(context.Background(), req.NamespacedName, made)
	fmt.Println(made.Spec.MaxUnavailable, err)
	// Output:
	// the Deployment has a budget: true <nil>
	// true <nil>
	// 1 <nil>
}
