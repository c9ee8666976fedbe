package controllers_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/controllers"
)

// podsOf returns the Pods of an app that are not being deleted.
func (c cluster) podsOf(app string) []corev1.Pod {
	c.Helper()
	all := &corev1.PodList{}
	c.must(c.List(c.ctx, all, client.InNamespace("default"), client.MatchingLabels{"app": app}))
	var pods []corev1.Pod
	for _, pod := range all.Items {
		if pod.DeletionTimestamp == nil {
			pods = append(pods, pod)
		}
	}
	return pods
}

func (c cluster) evict(pod corev1.Pod, options *metav1.DeleteOptions) error {
	return c.SubResource("eviction").Create(c.ctx, &pod, &policyv1.Eviction{DeleteOptions: options})
}

// TestEviction evicts Pods of a Deployment without a disruption budget, and with one of each kind.
func TestEviction(t *testing.T) {
	for name, test := range map[string]struct {
		spec *policyv1.PodDisruptionBudgetSpec
		// evicted is how many of four Pods are evicted one after the other.
		evicted int
		status  policyv1.PodDisruptionBudgetStatus
	}{
		"none": {evicted: 4},
		"a number of available Pods": {
			spec: &policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(3))}, evicted: 1,
			status: policyv1.PodDisruptionBudgetStatus{
				ExpectedPods: 4, DesiredHealthy: 3, CurrentHealthy: 4, DisruptionsAllowed: 1,
			},
		},
		"a part of the Pods": {
			spec: &policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromString("30%"))}, evicted: 2,
			status: policyv1.PodDisruptionBudgetStatus{
				ExpectedPods: 4, DesiredHealthy: 2, CurrentHealthy: 4, DisruptionsAllowed: 2,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, controllers.Options{}, func(c cluster) {
				c.create(deployment("a", 4))
				budget := &policyv1.PodDisruptionBudget{ObjectMeta: meta("a")}
				if test.spec != nil {
					budget.Spec = *test.spec
					budget.Spec.Selector = selector("a")
					c.create(budget)
				}
				time.Sleep(time.Minute)
				if test.spec != nil {
					c.hasBudget(budget, test.status)
				}
				for i, pod := range c.podsOf("a") {
					err := c.evict(pod, nil)
					if i < test.evicted {
						c.must(err)
						continue
					}
					if !apierrors.IsTooManyRequests(err) ||
						!apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) {
						c.Errorf("eviction %d is answered with %v, want that the budget is spent", i, err)
					}
				}
				time.Sleep(5 * time.Minute)
				if test.spec != nil {
					c.hasBudget(budget, test.status)
				}
				c.must(c.evict(c.podsOf("a")[0], nil))
				time.Sleep(5 * time.Minute)
				if n := len(c.podsOf("a")); n != 4 {
					c.Errorf("there are %d Pods, want 4", n)
				}
				c.idle()
			})
		})
	}
}

// hasBudget compares the numbers in the status of a budget, and its condition.
func (c cluster) hasBudget(budget *policyv1.PodDisruptionBudget, want policyv1.PodDisruptionBudgetStatus) {
	c.Helper()
	c.get(budget)
	s := budget.Status
	condition := apimeta.FindStatusCondition(s.Conditions, policyv1.DisruptionAllowedCondition)
	if s.ExpectedPods != want.ExpectedPods || s.DesiredHealthy != want.DesiredHealthy ||
		s.CurrentHealthy != want.CurrentHealthy || s.DisruptionsAllowed != want.DisruptionsAllowed ||
		s.ObservedGeneration != budget.Generation || len(s.DisruptedPods) > 0 || condition == nil ||
		(condition.Status == metav1.ConditionTrue) != (want.DisruptionsAllowed > 0) {
		c.Errorf("the status of the budget is %+v, want %+v", s, want)
	}
}

// TestEvictionOfUnready has Pods that never become ready.
func TestEvictionOfUnready(t *testing.T) {
	options := controllers.Options{Behavior: func(*corev1.Pod) controllers.Behavior {
		return controllers.Behavior{NeverReady: true}
	}}
	run(t, options, func(c cluster) {
		c.create(deployment("a", 2))
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: meta("a"), Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt32(1)), Selector: selector("a"),
		}}
		c.create(budget)
		time.Sleep(time.Minute)
		pod := c.podsOf("a")[0]
		if err := c.evict(pod, nil); !apierrors.IsTooManyRequests(err) {
			c.Errorf("an eviction is answered with %v, want too many requests", err)
		}
		c.get(budget)
		budget.Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.AlwaysAllow)
		c.must(client.IgnoreNotFound(c.Update(c.ctx, budget)))
		c.must(c.evict(pod, nil))
	})
}

// TestEvictionRefuses has evictions that are of another Pod, or under two budgets.
func TestEvictionRefuses(t *testing.T) {
	run(t, controllers.Options{}, func(c cluster) {
		c.create(deployment("a", 2))
		time.Sleep(time.Minute)
		pod := c.podsOf("a")[0]
		other := types.UID("of-another-pod")
		err := c.evict(pod, &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}})
		if !apierrors.IsConflict(err) {
			c.Errorf("the eviction of another UID is answered with %v, want a conflict", err)
		}
		named := &policyv1.Eviction{ObjectMeta: meta("other")}
		if err := c.SubResource("eviction").Create(c.ctx, &pod, named); !apierrors.IsBadRequest(err) {
			c.Errorf("the eviction of another name is answered with %v, want a bad request", err)
		}
		for _, name := range []string{"a", "b"} {
			c.create(&policyv1.PodDisruptionBudget{ObjectMeta: meta(name), Spec: policyv1.PodDisruptionBudgetSpec{
				MinAvailable: ptr.To(intstr.FromInt32(0)), Selector: selector("a"),
			}})
		}
		time.Sleep(time.Minute)
		if err := c.evict(pod, nil); err == nil || !strings.Contains(err.Error(), "budgets a and b") {
			c.Errorf("the eviction under two budgets is answered with %v, want that two are not supported", err)
		}
		if n := len(c.podsOf("a")); n != 2 {
			c.Errorf("there are %d Pods, want 2", n)
		}
	})
}
