package transport_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/internal/plan"
)

// forgetful is an operator with a bug: it creates a child with a random name for each Deployment, and notes the name
// only then. If it does not come to that, it creates another one.
type forgetful struct {
	client.Client
	live client.Reader
}

func forget(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&appsv1.Deployment{}).Owns(&corev1.ConfigMap{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		Complete(forgetful{mgr.GetClient(), mgr.GetAPIReader()})
}

// Reconcile implements [reconcile.Reconciler].
func (f forgetful) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	parent := &appsv1.Deployment{}
	if err := f.Get(ctx, r.NamespacedName, parent); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if parent.Annotations["child"] == "" {
		// The cache may not know yet.
		if err := f.live.Get(ctx, r.NamespacedName, parent); err != nil {
			return reconcile.Result{}, err
		}
	}
	if parent.Annotations["child"] == "" {
		child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: r.Namespace, Name: r.Name + "-" + utilrand.String(5),
		}}
		if err := controllerutil.SetControllerReference(parent, child, f.Scheme()); err != nil {
			return reconcile.Result{}, err
		}
		if err := f.Create(ctx, child); err != nil {
			return reconcile.Result{}, err
		}
		base := parent.DeepCopy()
		metav1.SetMetaDataAnnotation(&parent.ObjectMeta, "child", child.Name)
		return reconcile.Result{}, f.Patch(ctx, parent, client.MergeFrom(base))
	}
	return reconcile.Result{}, f.update(ctx, parent)
}

// update updates the children of a parent in the order in which the cache lists them.
func (f forgetful) update(ctx context.Context, parent *appsv1.Deployment) error {
	var children corev1.ConfigMapList
	if err := f.List(ctx, &children, client.InNamespace(parent.Namespace)); err != nil {
		return err
	}
	want := fmt.Sprint(*parent.Spec.Replicas)
	for _, child := range children.Items {
		if metav1.IsControlledBy(&child, parent) && child.Data["replicas"] != want {
			child.Data = map[string]string{"replicas": want}
			if err := f.Update(ctx, &child); err != nil {
				return err
			}
		}
	}
	return nil
}

// forgotten has the operator look after ten parents. It returns the parents that have more than one child, and the log.
func forgotten(t *testing.T, p plan.Plan) (failure, log string, happened []fault.Fault) {
	simulate(t, p, forget, func(c *cluster) {
		ctx := c.Context()
		for i := range 10 {
			parent := newParent(fmt.Sprintf("web-%d", i))
			c.insist(func() error { return c.user.Create(ctx, parent.DeepCopy()) })
		}
		time.Sleep(20 * time.Minute)
		for i := range 10 {
			c.insist(func() error {
				return c.user.Patch(ctx, newParent(fmt.Sprintf("web-%d", i)),
					client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":3}}`)))
			})
		}
		time.Sleep(time.Hour)
		var children corev1.ConfigMapList
		c.must(c.user.List(ctx, &children, client.InNamespace("default")))
		count := map[string]int{}
		for _, child := range children.Items {
			if owner := metav1.GetControllerOf(&child); owner != nil {
				count[owner.Name]++
			}
		}
		var failed []string
		for parent, n := range count {
			if n > 1 {
				failed = append(failed, fmt.Sprintf("%s has %d", parent, n))
			}
		}
		slices.Sort(failed)
		failure, log, happened = strings.Join(failed, ", "), c.Log().String(), c.Happened()
	})
	return failure, log, happened
}

// insist tries a request again while the API server restarts.
func (c *cluster) insist(request func() error) {
	for request() != nil {
		time.Sleep(time.Second)
	}
}

// raceDetector is whether the race detector is on.
var raceDetector bool

// TestFailuresReproduce has a bug found by seeds, and found again by the same seeds, and by what happened.
func TestFailuresReproduce(t *testing.T) {
	if raceDetector {
		t.Skip("with the race detector, the scheduler takes goroutines in a random order")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	// While the API server is down, many wait and draw how long from one source: their order is not decided yet.
	kinds := slices.DeleteFunc(slices.Clone(plan.Kinds), func(s fault.Kind) bool { return s == fault.Restarts })
	var failed, again, byCount int
	tries := 2
	const seeds = 8
	for seed := range uint64(seeds) {
		p := plan.FromSeed(seed, plan.Options{Actors: []string{"operator"}, Kinds: kinds})
		failure, _, happened := forgotten(t, p)
		if failure == "" {
			continue
		}
		failed++
		if same(t, p, failure, &tries) {
			again++
		}
		p.Chances, p.Faults = nil, happened
		if same(t, p, failure, &tries) {
			byCount++
		}
	}
	t.Logf("of %d seeds, %d fail, of these again %d, by count %d", seeds, failed, again, byCount)
	if failed < 2 || failed == seeds {
		t.Errorf("%d of %d seeds fail", failed, seeds)
	}
	if again*100 < failed*95 || byCount != failed {
		t.Errorf("of %d failures, %d reproduce by seed, and %d by count", failed, again, byCount)
	}
}

// TestFailureWithoutLatency has faults by count alone find a bug, with any number of processors.
func TestFailureWithoutLatency(t *testing.T) {
	p := plan.Plan{Faults: []fault.Fault{
		{Kind: fault.Fails, Actor: "operator", Verb: fault.Patch, Path: parent + "-3"},
		{Kind: fault.DiesBefore, Actor: "operator", Verb: fault.Patch, Path: parent + "-5"},
		{Kind: fault.LosesAnswer, Actor: "operator", Verb: fault.Patch, Path: parent + "-7"},
	}}
	var first string
	processors(t, 1, func(run string) {
		failure, _, _ := forgotten(t, p)
		sameAs(t, &first, run, failure)
	})
	if !strings.Contains(first, "web-3") || !strings.Contains(first, "web-5") || strings.Contains(first, "web-7") {
		t.Errorf("the failure is %s", first)
	}
}

// same reports whether a plan leads to a failure again. On a busy machine, the system may stop a goroutine in its work,
// which changes their order; so tries says how often it may be tried once more.
func same(t *testing.T, p plan.Plan, failure string, tries *int) bool {
	for ; ; *tries-- {
		again, _, _ := forgotten(t, p)
		if again == failure {
			return true
		}
		t.Logf("seed %d: %s, and then %s", p.Seed, failure, again)
		if *tries <= 0 {
			return false
		}
	}
}
