package reconcilers_test

import (
	"context"
	"fmt"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The examples print the calls that a tree makes, over a cluster in memory.

// exampleCluster returns a cluster with some objects, and the context of a request to it.
func exampleCluster(objects ...client.Object) (context.Context, reconcilers.Config) {
	c := rtesting.ExpectConfig{
		Scheme:                 resources.NewScheme(),
		GivenObjects:           objects,
		StatusSubResourceTypes: []client.Object{&resources.Widget{}},
		WithReactors:           []rtesting.ReactionFunc{assignUID},
	}
	ctx := reconcilers.StashConfig(context.Background(), c.Config())
	return reconcilers.StashOriginalConfig(ctx, c.Config()), c.Config()
}

func ExampleSyncReconciler() {
	node := &reconcilers.SyncReconciler[*resources.Widget]{
		Name: "Directory",
		Sync: func(_ context.Context, widget *resources.Widget) error {
			fmt.Println("register", widget.Name)
			return nil
		},
		FinalizeWithResult: func(_ context.Context, widget *resources.Widget) (reconcilers.Result, error) {
			fmt.Println("deregister", widget.Name)
			return reconcilers.Result{RequeueAfter: time.Minute}, nil
		},
	}
	gadget := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Name: "gadget"}}
	result, err := node.Reconcile(context.Background(), gadget)
	fmt.Println(result.RequeueAfter, err)

	gadget.DeletionTimestamp = new(metav1.Now())
	result, err = node.Reconcile(context.Background(), gadget)
	fmt.Println(result.RequeueAfter, err)
	// Output:
	// register gadget
	// 0s <nil>
	// deregister gadget
	// 1m0s <nil>
}

func ExampleSequence() {
	say := func(words string, err error) reconcilers.SubReconciler[*resources.Widget] {
		return &reconcilers.SyncReconciler[*resources.Widget]{
			Sync: func(context.Context, *resources.Widget) error {
				fmt.Println(words)
				return err
			},
		}
	}
	tree := reconcilers.Sequence[*resources.Widget]{
		say("the quota", nil),
		reconcilers.Sequence[*resources.Widget]{
			say("the network", nil),
			say("not yet", reconcilers.ErrHaltSubReconcilers),
			say("never said", nil),
		},
		say("never said either", nil),
	}
	_, err := tree.Reconcile(context.Background(), &resources.Widget{})
	fmt.Println("halted:", err == reconcilers.ErrHaltSubReconcilers)
	// Output:
	// the quota
	// the network
	// not yet
	// halted: true
}

func ExampleIfThen() {
	say := func(words string) reconcilers.SubReconciler[*resources.Widget] {
		return &reconcilers.SyncReconciler[*resources.Widget]{
			Sync: func(context.Context, *resources.Widget) error {
				fmt.Println(words)
				return nil
			},
		}
	}
	node := &reconcilers.IfThen[*resources.Widget]{
		If: func(_ context.Context, widget *resources.Widget) bool {
			fmt.Println("isolated?", widget.Spec.Fields["isolated"])
			return widget.Spec.Fields["isolated"] == "yes"
		},
		Then: say("close the network"),
		Else: say("open the network"),
	}
	for _, isolated := range []string{"yes", "no"} {
		gadget := &resources.Widget{Spec: resources.WidgetSpec{Fields: map[string]string{"isolated": isolated}}}
		if _, err := node.Reconcile(context.Background(), gadget); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// isolated? yes
	// close the network
	// isolated? no
	// open the network
}

func ExampleWithFinalizer() {
	ctx, config := exampleCluster(&resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "gadget"}})
	node := &reconcilers.WithFinalizer[*resources.Widget]{
		Finalizer: "example.com/directory",
		Reconciler: &reconcilers.SyncReconciler[*resources.Widget]{
			Sync: func(_ context.Context, widget *resources.Widget) error {
				fmt.Println("register, held by", widget.Finalizers)
				return nil
			},
			Finalize: func(_ context.Context, widget *resources.Widget) error {
				fmt.Println("deregister, held by", widget.Finalizers)
				return nil
			},
		},
	}
	gadget, key := &resources.Widget{}, client.ObjectKey{Namespace: "default", Name: "gadget"}
	reconcile := func() {
		if err := config.Get(ctx, key, gadget); err != nil {
			fmt.Println("gone:", apierrs.IsNotFound(err))
			return
		}
		if _, err := node.Reconcile(ctx, gadget); err != nil {
			fmt.Println(err)
		}
	}
	reconcile()
	if err := config.Delete(ctx, gadget); err != nil {
		fmt.Println(err)
	}
	reconcile()
	reconcile()
	// Output:
	// register, held by [example.com/directory]
	// deregister, held by [example.com/directory]
	// gone: true
}

func ExampleChildReconciler() {
	ctx, _ := exampleCluster()
	node := &reconcilers.ChildReconciler[*resources.Widget, *corev1.ConfigMap, *corev1.ConfigMapList]{
		DesiredChild: func(_ context.Context, widget *resources.Widget) (*corev1.ConfigMap, error) {
			if widget.Spec.Fields["color"] == "" {
				return nil, nil
			}
			return &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: widget.Namespace, Name: widget.Name},
				Data:       map[string]string{"color": widget.Spec.Fields["color"]},
			}, nil
		},
		MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) {
			current.Data = desired.Data
		},
		ReflectChildStatusOnParent: func(_ context.Context, widget *resources.Widget, child *corev1.ConfigMap, err error) {
			switch {
			case err != nil:
				fmt.Println("it cannot be:", err)
			case child == nil:
				fmt.Println("there is none")
			default:
				fmt.Println("it is", child.Data["color"], "and controlled by", metav1.GetControllerOf(child).Name)
			}
		},
	}
	gadget := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "gadget", UID: "4711"}}
	for _, color := range []string{"red", "blue", ""} {
		gadget.Spec.Fields = map[string]string{"color": color}
		if _, err := node.Reconcile(ctx, gadget); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// it is red and controlled by gadget
	// it is blue and controlled by gadget
	// there is none
}

func ExampleResourceReconciler() {
	ctx, config := exampleCluster(&resources.Widget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "gadget", Generation: 1},
	})
	root := &reconcilers.ResourceReconciler[*resources.Widget]{
		BeforeReconcile: func(ctx context.Context, req reconcilers.Request) (context.Context, reconcilers.Result, error) {
			fmt.Println("before", req)
			return ctx, reconcilers.Result{}, nil
		},
		SkipResource: func(_ context.Context, widget *resources.Widget) bool {
			fmt.Println("skip?", widget.Name)
			return false
		},
		Reconciler: &reconcilers.SyncReconciler[*resources.Widget]{
			Sync: func(ctx context.Context, widget *resources.Widget) error {
				fmt.Println("sync, ready:", widget.Status.GetCondition("Ready").Status)
				widget.Status.MarkChildReady(ctx)
				return nil
			},
		},
		AfterReconcile: func(_ context.Context, _ reconcilers.Request, result reconcilers.Result, err error) (reconcilers.Result, error) {
			fmt.Println("after, error:", err)
			return result, err
		},
		Config: config,
	}
	request := reconcilers.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "gadget"}}
	for range 2 {
		if _, err := root.Reconcile(ctx, request); err != nil {
			fmt.Println(err)
		}
	}
	gadget := &resources.Widget{}
	if err := config.Get(ctx, request.NamespacedName, gadget); err != nil {
		fmt.Println(err)
	}
	fmt.Println("observed generation:", gadget.Status.ObservedGeneration)
	// Output:
	// before default/gadget
	// skip? gadget
	// sync, ready: Unknown
	// after, error: <nil>
	// before default/gadget
	// skip? gadget
	// sync, ready: True
	// after, error: <nil>
	// observed generation: 1
}

// exampleTree is what the examples of descriptions describe.
func exampleTree() *reconcilers.ResourceReconciler[*resources.Widget] {
	type (
		quota   = reconcilers.ChildReconciler[*resources.Widget, *corev1.ResourceQuota, *corev1.ResourceQuotaList]
		network = reconcilers.ChildReconciler[*resources.Widget, *networkingv1.NetworkPolicy, *networkingv1.NetworkPolicyList]
	)
	return &reconcilers.ResourceReconciler[*resources.Widget]{
		Reconciler: reconcilers.Sequence[*resources.Widget]{
			&quota{MergeBeforeUpdate: func(current, desired *corev1.ResourceQuota) { current.Spec = desired.Spec }},
			&reconcilers.WithFinalizer[*resources.Widget]{
				Finalizer:  "example.com/directory",
				Reconciler: &reconcilers.SyncReconciler[*resources.Widget]{Name: "Directory"},
			},
			&reconcilers.IfThen[*resources.Widget]{
				Name: "Isolated",
				Then: &network{MergeBeforeUpdate: func(current, desired *networkingv1.NetworkPolicy) { current.Spec = desired.Spec }},
			},
		},
	}
}

func ExampleDescribe() {
	fmt.Print(reconcilers.Describe(exampleTree()))
	// Output:
	// ResourceReconciler "WidgetResourceReconciler" Widget
	// └─ Sequence
	//    ├─ ChildReconciler "ResourceQuotaChildReconciler" ResourceQuota
	//    ├─ WithFinalizer "WithFinalizer" example.com/directory
	//    │  └─ SyncReconciler "Directory"
	//    └─ IfThen "Isolated"
	//       └─ Then: ChildReconciler "NetworkPolicyChildReconciler" NetworkPolicy
}

func ExampleDescription_PolicyRules() {
	rules, err := reconcilers.Describe(exampleTree()).PolicyRules(resources.NewScheme(), nil)
	if err != nil {
		fmt.Println(err)
	}
	for _, marker := range reconcilers.RBACMarkers(rules) {
		fmt.Println(marker)
	}
	// Output:
	// // +kubebuilder:rbac:groups="",resources=events,verbs=create;patch
	// // +kubebuilder:rbac:groups="",resources=resourcequotas,verbs=get;list;watch;create;update;delete
	// // +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=get;list;watch;create;update;delete
	// // +kubebuilder:rbac:groups=test.espalier.dev,resources=widgets,verbs=get;list;watch;patch
	// // +kubebuilder:rbac:groups=test.espalier.dev,resources=widgets/finalizers,verbs=update
	// // +kubebuilder:rbac:groups=test.espalier.dev,resources=widgets/status,verbs=get;update;patch
}
