package health_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/health"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestPod(t *testing.T) {
	kindTests{
		"new": {"metadata: {name: x}", is(creating, down, "", "not running yet")},
		"not ready": {`
status: {phase: Running, containerStatuses: [{name: app, state: {running: {}}}]}`,
			is(creating, degraded, "", "running, but not ready")},
		"not ready, says a condition": {`
status: {phase: Running, conditions: [{type: Ready, status: "False", reason: ContainersNotReady}]}`,
			is(creating, degraded, "ContainersNotReady", "running, but not ready")},
		"ready":     {`status: {phase: Running, conditions: [{type: Ready, status: "True"}]}`, healthy},
		"succeeded": {"status: {phase: Succeeded}", healthy},
		"lost":      {"status: {phase: Unknown}", is(apis.StateUnknown, down, "", "is in the unknown phase Unknown")},
		"stalled all the same": {`
status: {phase: Running, conditions: [{type: Ready, status: "True"}, {type: Stalled, status: "True"}]}`,
			is(failing, degraded, "", "Stalled")},
		"two crash": {`
status:
  phase: Running
  containerStatuses:
  - {name: web, state: {waiting: {reason: CrashLoopBackOff}}}
  - {name: log, state: {running: {}}}
  - {name: db, state: {waiting: {reason: CrashLoopBackOff}}}`,
			blames(is(failing, degraded, "CrashLoopBackOff", "crashes again and again: db, web"),
				map[string]string{"container": "web", "reason": "CrashLoopBackOff"})},
		"an init container crashes": {`
status: {phase: Pending, initContainerStatuses: [{name: init, state: {waiting: {reason: CrashLoopBackOff}}}]}`,
			blames(is(failing, down, "CrashLoopBackOff", "crashes again and again: init"),
				map[string]string{"container": "init", "reason": "CrashLoopBackOff"})},
		"evicted": {"status: {phase: Failed, reason: Evicted, message: low on memory}",
			is(failing, down, "Evicted", "failed: Evicted: low on memory")},
		"failed by a container": {`
spec: {restartPolicy: Never, containers: []}
status:
  phase: Failed
  containerStatuses: [{name: app, state: {terminated: {exitCode: 137, reason: OOMKilled}}}]`,
			blames(is(failing, down, "OOMKilled", "failed"),
				map[string]string{"container": "app", "reason": "OOMKilled"})},
		"unschedulable for long, as there is no clock": {`
metadata: {creationTimestamp: "2001-01-01T00:00:00Z"}
status:
  phase: Pending
  conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: 0/3 nodes are available}]`,
			blames(is(creating, down, "Unschedulable", "not scheduled: Unschedulable"),
				map[string]string{"reason": "Unschedulable"})},
		"starting": {`
status: {phase: Pending, containerStatuses: [{name: app, state: {waiting: {reason: ContainerCreating}}}]}`,
			is(creating, down, "", "not running yet")},
		"no image, first attempt": {`
status:
  phase: Pending
  containerStatuses: [{name: app, image: "web:2", state: {waiting: {reason: ErrImagePull, message: once}}}]`,
			but(blames(is(failing, down, "ImagePullBackOff", `container app cannot pull its image "web:2"`),
				map[string]string{"container": "app", "reason": "ImagePullBackOff"}), ongoing, "not running yet")},
		"no image": {`
status:
  phase: Pending
  containerStatuses: [{name: app, image: "web:2", state: {waiting: {reason: ImagePullBackOff,
    message: back-off 5m0s}}}]`,
			but(blames(is(failing, down, "ImagePullBackOff", `container app cannot pull its image "web:2"`),
				map[string]string{"container": "app", "reason": "ImagePullBackOff"}), ongoing, "not running yet")},
		"an invalid image": {`
status:
  phase: Pending
  containerStatuses: [{name: app, image: "W:b:2", state: {waiting: {reason: InvalidImageName}}}]`,
			but(blames(is(failing, down, "InvalidImageName", `container app has an invalid image name "W:b:2"`),
				map[string]string{"container": "app", "reason": "InvalidImageName"}), ongoing, "not running yet")},
		"a missing ConfigMap": {`
status:
  phase: Pending
  initContainerStatuses: [{name: init, state: {terminated: {exitCode: 0, reason: Completed}}}]
  containerStatuses:
  - {name: app, state: {waiting: {reason: CreateContainerConfigError, message: configmap "web" not found}}}`,
			but(blames(is(failing, down, "CreateContainerConfigError",
				`container app has a configuration that is missing or wrong: configmap "web" not found`),
				map[string]string{"container": "app", "reason": "CreateContainerConfigError"}), ongoing,
				"not running yet")},
		"crashes": {`
status:
  phase: Running
  conditions: [{type: Ready, status: "False", reason: ContainersNotReady}]
  containerStatuses:
  - name: app
    restartCount: 3
    state: {waiting: {reason: CrashLoopBackOff, message: back-off 40s restarting}}
    lastState: {terminated: {exitCode: 2, reason: Error}}`,
			blames(is(failing, degraded, "CrashLoopBackOff", "crashes again and again: app"),
				map[string]string{"container": "app", "reason": "CrashLoopBackOff"})},
		"has crashed again": {`
status:
  phase: Running
  containerStatuses: [{name: app, restartCount: 3, state: {terminated: {exitCode: 2, reason: Error}}}]`,
			but(blames(is(failing, degraded, "CrashLoopBackOff", "container app crashes again and again (exit code 2)"),
				map[string]string{"container": "app", "reason": "CrashLoopBackOff"}), ongoing,
				"running, but not ready")},
		"an init container has crashed": {`
status:
  phase: Pending
  initContainerStatuses: [{name: init, state: {terminated: {exitCode: 1, reason: Error}}}]
  containerStatuses: [{name: app, state: {waiting: {reason: PodInitializing}}}]`,
			but(blames(is(failing, down, "Error", "container init has ended with an error (exit code 1)"),
				map[string]string{"container": "init", "reason": "Error"}), ongoing, "not running yet")},
	}.run(t, "v1", "Pod")
}

// podOf returns a pod that is selected, not ready, and that changes may make worse.
func podOf(name string, changes ...func(*corev1.Pod)) corev1.Pod {
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, Labels: map[string]string{"app": "web", "pod-template-hash": "new"},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	for _, change := range changes {
		change(&pod)
	}
	return pod
}

func waits(container, reason string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: container, Image: "web:2",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}},
		})
	}
}

func crashed(pod *corev1.Pod) {
	pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
		Name:  "app",
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}},
	})
}

func unschedulable(pod *corev1.Pod) {
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
		Type: "PodScheduled", Status: "False", Reason: "Unschedulable", Message: "0/1 nodes are available",
	})
}

func of(revision string, born int64) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Labels["pod-template-hash"] = revision
		pod.CreationTimestamp = metav1.NewTime(time.Unix(born, 0))
	}
}

var web = &appsv1.Deployment{
	ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Generation: 1},
	Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
	Status:     appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1},
}

var unready = is(creating, down, "", "0 of 1 replica available")

func because(state apis.State, pod, container, reason, message string) apis.Health {
	attributes := map[string]string{"pod": pod, "reason": reason}
	if container != "" {
		attributes["container"] = container
	}
	return blames(is(state, down, reason, "0 of 1 replica available: "+message), attributes)
}

func TestWithPods(t *testing.T) {
	const noImage = `container app cannot pull its image "web:2"`
	const again = "container app crashes again and again"
	ended := func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }
	goes := func(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }
	for name, tc := range map[string]struct {
		pods []corev1.Pod
		want apis.Health
	}{
		"no pods":       {nil, unready},
		"a good pod":    {[]corev1.Pod{podOf("a")}, unready},
		"waits a while": {[]corev1.Pod{podOf("a", waits("app", "ContainerCreating"))}, unready},
		"no image": {[]corev1.Pod{podOf("a", waits("app", "ImagePullBackOff"))},
			because(failing, "a", "app", "ImagePullBackOff", noImage)},
		"crash loop": {[]corev1.Pod{podOf("a", waits("app", "CrashLoopBackOff"))},
			because(failing, "a", "app", "CrashLoopBackOff", again)},
		"one crash may have been enough": {[]corev1.Pod{podOf("a", crashed)},
			because(creating, "a", "app", "Error", "container app has ended with an error (exit code 1)")},
		"unschedulable, which may pass": {[]corev1.Pod{podOf("a", unschedulable)},
			because(creating, "a", "", "Unschedulable", "a pod cannot be scheduled: 0/1 nodes are available")},
		"the worst pod": {[]corev1.Pod{podOf("a", unschedulable), podOf("b", crashed),
			podOf("c", waits("app", "ErrImagePull"))},
			because(failing, "c", "app", "ImagePullBackOff", noImage)},
		"the first of the equally bad": {[]corev1.Pod{
			podOf("b", waits("app", "CrashLoopBackOff")), podOf("a", waits("app", "ImagePullBackOff"))},
			because(failing, "a", "app", "ImagePullBackOff", noImage)},
		"pods that do not count": {[]corev1.Pod{
			podOf("a", waits("app", "ImagePullBackOff"), ended),
			podOf("b", waits("app", "ImagePullBackOff"), goes),
			podOf("c", waits("app", "ImagePullBackOff"), func(pod *corev1.Pod) { pod.Namespace = "other" }),
			podOf("d", waits("app", "ImagePullBackOff"), func(pod *corev1.Pod) { pod.Labels["app"] = "db" }),
		}, unready},
		"an old revision was bad": {[]corev1.Pod{
			podOf("a", waits("app", "ImagePullBackOff"), of("old", 1)), podOf("b", of("new", 2)),
		}, unready},
		"the new revision is bad": {[]corev1.Pod{
			podOf("a", of("old", 1)), podOf("b", waits("app", "ImagePullBackOff"), of("new", 2)),
		}, because(failing, "b", "app", "ImagePullBackOff", noImage)},
		"two revisions of one second, the first is bad": {[]corev1.Pod{
			podOf("a", waits("app", "ImagePullBackOff"), of("one", 2)), podOf("b", of("two", 2)),
		}, because(failing, "a", "app", "ImagePullBackOff", noImage)},
		"two revisions of one second, the last is bad": {[]corev1.Pod{
			podOf("a", of("one", 2)), podOf("b", waits("app", "ImagePullBackOff"), of("two", 2)),
		}, because(failing, "b", "app", "ImagePullBackOff", noImage)},
	} {
		t.Run(name, func(t *testing.T) {
			for _, pods := range [][]corev1.Pod{tc.pods, reversed(tc.pods)} {
				before := slices.Clone(pods)
				if diff := cmp.Diff(tc.want, health.WithPods(web, unready, pods)); diff != "" {
					t.Errorf("WithPods (-want, +got):\n%s", diff)
				}
				if !reflect.DeepEqual(before, pods) {
					t.Errorf("the Pods were changed to %v, want %v", pods, before)
				}
			}
		})
	}
}

func reversed(pods []corev1.Pod) []corev1.Pod {
	pods = slices.Clone(pods)
	slices.Reverse(pods)
	return pods
}

func TestWithPodsLooksAtUnhealthyWorkloadsOnly(t *testing.T) {
	bad := []corev1.Pod{podOf("a", waits("app", "ImagePullBackOff"))}
	changed := web.DeepCopy()
	changed.Generation = 2
	deleted := web.DeepCopy()
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	for name, tc := range map[string]struct {
		object client.Object
		h      apis.Health
	}{
		"healthy":        {web, healthy},
		"unknown":        {web, apis.Health{State: apis.StateUnknown}},
		"not observed":   {changed, unready},
		"being deleted":  {deleted, unready},
		"another kind":   {&corev1.Service{}, unready},
		"nothing at all": {nil, unready},
	} {
		if diff := cmp.Diff(tc.h, health.WithPods(tc.object, tc.h, bad)); diff != "" {
			t.Errorf("%s: (-want, +got):\n%s", name, diff)
		}
	}
}

// TestWithPodsOfAJob: a Job tries again after a crash, but not with another image.
func TestWithPodsOfAJob(t *testing.T) {
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec:       batchv1.JobSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
	}
	given := is(apis.StateTaskRunning, "", "", "not completed yet")

	got := health.WithPods(job, given, []corev1.Pod{podOf("a", waits("app", "CrashLoopBackOff"))})
	want := blames(is(apis.StateTaskRunning, "", "CrashLoopBackOff",
		"not completed yet: container app crashes again and again"),
		map[string]string{"pod": "a", "container": "app", "reason": "CrashLoopBackOff"})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}

	got = health.WithPods(job, given, []corev1.Pod{podOf("a", waits("app", "InvalidImageName"))})
	want = blames(is(apis.StateTaskFailing, down, "InvalidImageName",
		`not completed yet: container app has an invalid image name "web:2"`),
		map[string]string{"pod": "a", "container": "app", "reason": "InvalidImageName"})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
}

func TestWithPodsKeepsTheAttributesThatItGets(t *testing.T) {
	given := blames(unready, map[string]string{"zone": "a"})
	got := health.WithPods(web, given, []corev1.Pod{podOf("a", waits("app", "CrashLoopBackOff"))})
	if got.Attributes["zone"] != "a" || len(given.Attributes) != 1 {
		t.Errorf("the attributes are %v and the given ones %v, want zone a kept, and one given", got.Attributes,
			given.Attributes)
	}
}

func TestPodSelector(t *testing.T) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(web)
	if err != nil {
		t.Fatal(err)
	}
	manifest := func(kind, spec string) client.Object {
		return parse(t, "kind: "+kind+"\nspec: {"+spec+"}")
	}
	unnamed := parse(t, "kind: x")
	unnamed.Object = content
	for name, tc := range map[string]struct {
		object client.Object
		want   string
	}{
		"typed":        {web, "app=web"},
		"unstructured": {manifest("Deployment\napiVersion: apps/v1", "selector: {matchLabels: {app: web}}"), "app=web"},
		"a Job":        {manifest("Job\napiVersion: batch/v1", "selector: {matchLabels: {uid: x}}"), "uid=x"},
		"none":         {manifest("Job\napiVersion: batch/v1", ""), ""},
		"everything":   {manifest("Deployment\napiVersion: apps/v1", "selector: {}"), ""},
		"malformed":    {manifest("Deployment\napiVersion: apps/v1", "selector: {matchLabels: [1]}"), ""},
		"not supported": {manifest("Deployment\napiVersion: apps/v1",
			"selector: {matchExpressions: [{key: a, operator: Is}]}"), ""},
		"a Service":    {manifest("Service\napiVersion: v1", "selector: {app: web}"), ""},
		"without kind": {unnamed, ""},
		"nil":          {nil, ""},
	} {
		got, ok := health.PodSelector(tc.object)
		if ok != (tc.want != "") || ok && got.String() != tc.want {
			t.Errorf("%s: %v, %v, want %q", name, got, ok, tc.want)
		}
	}
}
