package controllers_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/internal/controllers"
	"github.com/espalier-dev/espalier/testing/internal/plan"
)

var allFaults = flag.Bool("faults", false, "have each kind of fault strike each request of the controllers")

// quick has Pods become ready after ten seconds, and those of Jobs end.
func quick(pod *corev1.Pod) controllers.Behavior {
	if pod.Spec.RestartPolicy == corev1.RestartPolicyNever {
		return controllers.Behavior{Exits: true, RunFor: 20 * time.Second}
	}
	return controllers.Behavior{ReadyAfter: 10 * time.Second}
}

// ignored are failures that a test has asked for.
func ignored(error) {}

// live has the controllers do one of all that they do.
func (c cluster) live() {
	c.Helper()
	definition := widgets()
	c.create(definition)
	time.Sleep(5 * time.Second)
	first, second := widget("first"), widget("second")
	c.create(first)
	c.create(second)
	d := deployment("web", 2)
	c.create(d)
	c.create(statefulSet("db", 2))
	c.create(job("once"))
	c.create(&batchv1.CronJob{ObjectMeta: meta("often"), Spec: batchv1.CronJobSpec{
		Schedule: "*/20 * * * *", JobTemplate: batchv1.JobTemplateSpec{Spec: job("often").Spec},
	}})
	c.create(&corev1.Service{ObjectMeta: meta("web"), Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": "web"},
		Ports:    []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(80)}},
	}})
	c.create(configMap("collected", first))
	c.create(configMap("orphaned", second))
	c.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
	content := configMap("content")
	content.Namespace = "other"
	c.create(content)
	time.Sleep(time.Minute)
	c.try(func() error {
		return c.Patch(c.ctx, d, client.RawPatch(types.StrategicMergePatchType, []byte(
			`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"example.com/a:2"}]}}}}`)))
	})
	c.delete(first, client.PropagationPolicy(metav1.DeletePropagationForeground))
	c.delete(second, client.PropagationPolicy(metav1.DeletePropagationOrphan))
	c.delete(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
	c.delete(&corev1.Pod{ObjectMeta: meta("db-0")})
	time.Sleep(time.Minute)
}

// isDone fails the test if the controllers have not done all that there was to do.
func (c cluster) isDone() {
	c.Helper()
	d := &appsv1.Deployment{ObjectMeta: meta("web")}
	c.expect(d, appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2},
		isAvailable, isProgressed)
	set := &appsv1.StatefulSet{ObjectMeta: meta("db")}
	c.get(set)
	if set.Status.AvailableReplicas != 2 || set.Status.CurrentReplicas != 2 {
		c.Errorf("the StatefulSet is %+v", set.Status)
	}
	once := &batchv1.Job{ObjectMeta: meta("once")}
	c.get(once)
	if story := jobStory(once); !strings.Contains(story, "active 0 succeeded 1") ||
		!strings.Contains(story, "Complete True") {
		c.Errorf("the Job is %s", story)
	}
	cron := &batchv1.CronJob{ObjectMeta: meta("often")}
	c.get(cron)
	if late := time.Since(cron.Status.LastScheduleTime.Time); late > 20*time.Minute {
		c.Errorf("the last Job was %s ago", late)
	}
	orphaned := configMap("orphaned")
	c.get(orphaned)
	if len(orphaned.OwnerReferences) > 0 {
		c.Errorf("the orphan has owners %v", orphaned.OwnerReferences)
	}
	content := configMap("content")
	content.Namespace = "other"
	c.gone(configMap("collected"), widget("first"), widget("second"), content,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
	if got, want := c.inventory(), "Job often, Job often, Job often, Job once, ReplicaSet web, ReplicaSet web, "+
		"StatefulSet db, StatefulSet db, 2 endpoints"; got != want {
		c.Errorf("there are %s, not %s", got, want)
	}
}

// inventory returns the owners of the Pods, and how many endpoints the Service has.
func (c cluster) inventory() string {
	c.Helper()
	var all []string
	for _, pod := range c.pods() {
		owner := metav1.GetControllerOf(&pod)
		app, _, _ := strings.Cut(owner.Name, "-")
		all = append(all, owner.Kind+" "+app)
	}
	slices.Sort(all)
	return fmt.Sprintf("%s, %d endpoints", strings.Join(all, ", "), c.endpoints())
}

// endpoints counts the endpoints of all Services.
func (c cluster) endpoints() int {
	c.Helper()
	slices := &discoveryv1.EndpointSliceList{}
	c.must(c.List(c.ctx, slices))
	n := 0
	for _, slice := range slices.Items {
		n += len(slice.Endpoints)
	}
	return n
}

// TestFaultAtRequests has a fault strike one request of each sort that the controllers make, and the kinds of faults
// take turns.
func TestFaultAtRequests(t *testing.T) {
	faultKinds := []fault.Kind{fault.Restarts, fault.LosesAnswer, fault.Fails, fault.Throttles, fault.Conflicts}
	for i, call := range callsToStrike(t) {
		for j, kind := range faultKinds {
			if !kind.Fits(call.Verb) || !*allFaults && j != i%len(faultKinds) {
				continue
			}
			struck := fault.At(call, kind, 20*time.Second)
			t.Run(struck.String(), func(t *testing.T) {
				t.Parallel()
				plan := plan.Plan{Faults: []fault.Fault{struck}}
				runWith(t, plan, controllers.Options{Behavior: quick, Failed: ignored}, func(c cluster) {
					c.live()
					time.Sleep(75 * time.Minute)
					c.isDone()
					if len(c.Happened()) == 0 {
						c.Skip("without latency, requests of one moment have no certain order")
					}
				})
			})
		}
	}
}

// callsToStrike returns the calls of the controllers: all if the flag asks for all faults, else one of each verb and
// resource.
func callsToStrike(t *testing.T) []fault.Call {
	t.Helper()
	var calls []fault.Call
	run(t, controllers.Options{Behavior: quick}, func(c cluster) {
		begin := len(c.Log().Entries)
		c.live()
		seen := map[string]bool{}
		for _, entry := range c.Log().Entries[begin:] {
			name := entry.Call.Verb + " " + entry.Resource.String() + " " + entry.Subresource
			if entry.Call.Actor == "cluster" && entry.Call.Verb != fault.Watch && (*allFaults || !seen[name]) {
				seen[name] = true
				calls = append(calls, entry.Call)
			}
		}
		time.Sleep(75 * time.Minute)
		c.isDone()
	})
	return calls
}

// TestGap ends watches, and has them opened again only after more than a minute in which much happens: the server
// refuses connections, and then says that what is asked for is too old.
func TestGap(t *testing.T) {
	for _, path := range []string{
		"", "/api/v1/configmaps*", "/api/v1/pods*", "/api/v1/namespaces*", "/apis/apps/v1/deployments*",
		"/apis/apps/v1/replicasets*", "/apis/batch/v1/jobs*", "/apis/example.com/v1/widgets*",
	} {
		t.Run("of "+path, func(t *testing.T) {
			t.Parallel()
			of := fault.Fault{Actor: "cluster", Verb: fault.Watch, Path: path}
			cut, refuses, expires := of, of, of
			cut.Kind, cut.Delay = fault.CutsWatch, time.Minute
			refuses.Kind, refuses.Nth, refuses.Times = fault.Refuses, 2, 5
			expires.Kind, expires.Nth = fault.Expires, 7
			plan := plan.Plan{Faults: []fault.Fault{cut, refuses, expires}}
			runWith(t, plan, controllers.Options{Behavior: quick, Failed: ignored}, func(c cluster) {
				c.change()
				if missed := plan.Missed(c.Happened()); missed != nil {
					c.Errorf("what happened is %v, but not %v", c.Happened(), missed)
				}
				c.idle()
			})
		})
	}
}

// change changes much, more than a minute after the start.
func (c cluster) change() {
	c.Helper()
	c.create(widgets())
	time.Sleep(5 * time.Second)
	owner, first, second := widget("owner"), configMap("first"), job("second")
	c.create(owner)
	c.create(first)
	c.create(second)
	d := deployment("web", 2)
	c.create(d)
	c.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
	lost := []client.Object{configMap("of-owner", owner), configMap("of-first", first), configMap("of-second", second)}
	for _, obj := range lost {
		c.create(obj)
	}
	elsewhere := configMap("elsewhere")
	elsewhere.Namespace = "other"
	c.create(elsewhere)
	time.Sleep(80 * time.Second)
	c.delete(owner)
	c.delete(first)
	again := configMap("first")
	c.create(again)
	c.create(configMap("kept", again))
	c.delete(second, client.PropagationPolicy(metav1.DeletePropagationForeground))
	c.delete(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
	pods := c.pods()
	c.delete(&pods[0], client.GracePeriodSeconds(0))
	c.must(c.Patch(c.ctx, d, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":3}}`))))
	time.Sleep(3 * time.Minute)
	c.gone(append(lost, owner, second, elsewhere, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}})...)
	c.get(configMap("kept"))
	c.expect(d, appsv1.DeploymentStatus{Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 3, AvailableReplicas: 3},
		isAvailable, isProgressed)
	if n := len(c.pods()); n != 3 {
		c.Errorf("there are %d Pods", n)
	}
}

// TestStaleOrphan has the watch of a dependent be later than that of its owner, which is orphaned or deleted with it.
func TestStaleOrphan(t *testing.T) {
	plan := plan.Plan{Faults: []fault.Fault{{
		Kind: fault.DelaysWatch, Actor: "cluster", Path: "/api/v1/configmaps*", Delay: 10 * time.Second,
	}}}
	run := func(policy metav1.DeletionPropagation, test func(c cluster, child *corev1.ConfigMap)) {
		runWith(t, plan, controllers.Options{Failed: ignored}, func(c cluster) {
			owner := &corev1.Secret{ObjectMeta: meta("owner")}
			c.create(owner)
			child := configMap("child", owner)
			c.create(child)
			time.Sleep(time.Minute)
			c.delete(owner, client.PropagationPolicy(policy))
			// Somebody else takes the child over, of which the controllers do not know yet.
			if policy == metav1.DeletePropagationBackground {
				child.OwnerReferences = nil
				c.must(c.Update(c.ctx, child))
			}
			time.Sleep(time.Minute)
			c.gone(owner)
			test(c, child)
		})
	}
	for _, policy := range []metav1.DeletionPropagation{
		metav1.DeletePropagationOrphan, metav1.DeletePropagationBackground,
	} {
		run(policy, func(c cluster, child *corev1.ConfigMap) {
			c.get(child)
			if len(child.OwnerReferences) > 0 || child.DeletionTimestamp != nil {
				c.Errorf("%s: the child is %v", policy, child.ObjectMeta)
			}
		})
	}
}

// TestStop stops controllers that watch, that wait for a server, that just open their watches again, and that wait for
// an answer. The bubble ends only without a goroutine of theirs.
func TestStop(t *testing.T) {
	throttled := fault.Fault{
		Kind: fault.Throttles, Actor: "cluster", Verb: fault.Create, Path: "*", Times: 100, Delay: time.Hour,
	}
	for name, test := range map[string]struct {
		plan plan.Plan
		down time.Duration
		wait time.Duration
	}{
		"watching":    {wait: time.Minute},
		"down":        {down: time.Hour, wait: time.Minute},
		"restarting":  {down: time.Second, wait: 3 * time.Second},
		"opening":     {plan: plan.Plan{Latency: time.Minute}, down: time.Second, wait: 20 * time.Second},
		"in the look": {plan: plan.Plan{Faults: []fault.Fault{throttled}}, wait: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.plan.Actors = []string{"cluster"}
			runWith(t, test.plan, controllers.Options{Failed: ignored}, func(c cluster) {
				c.create(deployment("a", 1))
				if test.down > 0 {
					c.Restart(test.down)
				}
				time.Sleep(test.wait)
				c.Stop()
				c.idle()
				if open := c.Open(); len(open) > 0 {
					c.Errorf("%v are open", open)
				}
			})
		})
	}
}
