package health_test

import (
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/health"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	pending = apis.StateOperationPending
	broken  = apis.StateOperationFailing
)

func TestJob(t *testing.T) {
	kindTests{
		"new": {"spec: {completions: 3}", is(apis.StateTaskPending, "", "", "0 of 3 completions")},
		"runs": {"spec: {completions: 3}\nstatus: {startTime: '2025-01-02T03:04:05Z', active: 1, succeeded: 1}",
			is(apis.StateTaskRunning, "", "", "1 of 3 completions")},
		"runs a queue": {"spec: {parallelism: 3}\nstatus: {startTime: '2025-01-02T03:04:05Z', active: 3}",
			is(apis.StateTaskRunning, "", "", "not completed yet")},
		"complete":  {"status: {conditions: [{type: Complete, status: 'True'}]}", completed},
		"suspended": {"spec: {suspend: true}", passes(is(apis.StateTaskPending, "", "JobSuspended", "is suspended"))},
		"suspended midway": {"spec: {suspend: true}\nstatus: {conditions: [{type: Suspended, status: 'True'}]}",
			passes(is(apis.StateTaskPending, "", "JobSuspended", "is suspended"))},
		"resumed": {"spec: {suspend: false, completions: 1}", is(apis.StateTaskPending, "", "", "0 of 1 completion")},
		"not complete": {"status: {conditions: [{type: Complete, status: 'False'}]}",
			is(apis.StateTaskPending, "", "", "not completed yet")},
		"about to fail": {`
spec: {completions: 1}
status: {active: 1, conditions: [{type: FailureTarget, status: "True", reason: DeadlineExceeded}]}`,
			but(is(apis.StateTaskFailing, down, "DeadlineExceeded", "fails: DeadlineExceeded"), ongoing,
				"0 of 1 completion")},
		"failed": {`
spec: {suspend: true}
status: {conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded, message: too often}]}`,
			is(apis.StateTaskFailing, down, "BackoffLimitExceeded", "failed: BackoffLimitExceeded: too often")},
		"being deleted": {`
metadata: {deletionTimestamp: "2025-01-02T03:04:05Z"}
status: {active: 1}`,
			is(apis.StateTaskRunning, "", "Terminating", "is being deleted")},
	}.run(t, "batch/v1", "Job")
}

func TestCronJob(t *testing.T) {
	kindTests{
		"any": {"spec: {schedule: '@daily', suspend: true}", operational},
		"being deleted": {`metadata: {deletionTimestamp: "2025-01-02T03:04:05Z"}`,
			is(pending, degraded, "Terminating", "is being deleted")},
	}.run(t, "batch/v1", "CronJob")
}

func TestService(t *testing.T) {
	kindTests{
		"in the cluster": {"spec: {type: ClusterIP, clusterIP: 10.0.0.1}", operational},
		"without an IP":  {"spec: {type: LoadBalancer}", is(pending, degraded, "", "waiting for an address")},
		"without an address": {`
spec: {type: LoadBalancer, clusterIP: 10.0.0.1}
status: {loadBalancer: {ingress: [{}]}}`,
			passes(is(pending, degraded, "NoAddress", "waiting for an address"))},
		"with a hostname": {`
spec: {type: LoadBalancer, clusterIP: 10.0.0.1}
status: {loadBalancer: {ingress: [{}, {hostname: example.com}]}}`, operational},
	}.run(t, "v1", "Service")
}

func TestIngress(t *testing.T) {
	kindTests{
		"without an address": {"spec: {}", passes(is(pending, degraded, "NoAddress", "waiting for an address"))},
		"with an IP":         {"status: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}", operational},
	}.run(t, "networking.k8s.io/v1", "Ingress")
}

// TestGateway: no wave of a component waits for what waits for a controller, which may be in a later one.
func TestGateway(t *testing.T) {
	kindTests{
		"new": {"spec: {}", volatile(is(pending, degraded, "", "waiting until Accepted is True"))},
		"without a controller": {`
status: {conditions: [{type: Accepted, status: Unknown, reason: Pending, message: Waiting for controller},
  {type: Programmed, status: Unknown, reason: Pending}]}`,
			volatile(is(pending, degraded, "Pending", "Accepted is Unknown: Pending: Waiting for controller"))},
		"not programmed": {`
status: {conditions: [{type: Programmed, status: "False", reason: AddressNotAssigned},
  {type: Accepted, status: "True"}]}`,
			volatile(is(pending, degraded, "AddressNotAssigned", "Programmed is False: AddressNotAssigned"))},
		"pending": {`
status: {conditions: [{type: Accepted, status: "False", reason: Pending}]}`,
			volatile(is(pending, degraded, "Pending", "Accepted is False: Pending"))},
		"refused": {`
status: {conditions: [{type: Accepted, status: "False", reason: Invalid, message: no such class}]}`,
			is(broken, down, "Invalid", "Accepted is False: Invalid: no such class")},
		"programmed": {`
metadata: {generation: 2}
status: {conditions: [{type: Accepted, status: "True", observedGeneration: 2},
  {type: Programmed, status: "True", observedGeneration: 2}]}`, operational},
		"programmed as it was": {`
metadata: {generation: 3}
status: {conditions: [{type: Accepted, status: "True", observedGeneration: 3},
  {type: Programmed, status: "True", observedGeneration: 2}]}`,
			volatile(is(pending, degraded, "", "waiting until Programmed is True"))},
		"refused as it was": {`
metadata: {generation: 3}
status: {conditions: [{type: Accepted, status: "False", reason: Invalid, observedGeneration: 2}]}`,
			volatile(is(pending, degraded, "", "waiting until Accepted is True"))},
		"stalled": {`
status: {conditions: [{type: Stalled, status: "True", reason: Broken}]}`,
			is(broken, down, "Broken", "Stalled: Broken")},
	}.run(t, "gateway.networking.k8s.io/v1", "Gateway")
}

func TestHTTPRoute(t *testing.T) {
	const two = "spec: {parentRefs: [{name: a}, {name: b}]}\n"
	accepts := func(name string) string {
		return "{parentRef: {name: " + name + "}, conditions: [{type: Accepted, status: 'True'}, " +
			"{type: ResolvedRefs, status: 'True'}]}"
	}
	for _, kind := range []string{"HTTPRoute", "GRPCRoute"} {
		kindTests{
			"new": {two, volatile(is(pending, degraded, "", "waiting for 2 Gateways"))},
			"one of two": {two + "status: {parents: [" + accepts("a") + "]}",
				volatile(is(pending, degraded, "", "waiting for 1 Gateway"))},
			"two of two":     {two + "status: {parents: [" + accepts("a") + "," + accepts("b") + "]}", operational},
			"of no gateways": {"spec: {}", operational},
			"refused": {two + "status: {parents: [" + accepts("a") + `, {parentRef: {name: b, namespace: edge},
  conditions: [{type: Accepted, status: "False", reason: NotAllowedByListeners}]}]}`,
				is(broken, down, "NotAllowedByListeners", "Gateway edge/b: Accepted is False: NotAllowedByListeners")},
			"without a backend": {two + "status: {parents: [" + accepts("a") + `, {parentRef: {name: b},
  conditions: [{type: Accepted, status: "True"}, {type: ResolvedRefs, status: "False", reason: BackendNotFound}]}]}`,
				volatile(is(pending, degraded, "BackendNotFound",
					"Gateway b: ResolvedRefs is False: BackendNotFound"))},
			"malformed": {two + "status: {parents: [1, {parentRef: [], conditions: {}}]}",
				volatile(is(pending, degraded, "", "Gateway: waiting until Accepted is True"))},
		}.run(t, "gateway.networking.k8s.io/v1", kind)
	}
}

func TestVolumes(t *testing.T) {
	kindTests{
		"new":   {"spec: {}", volatile(is(pending, degraded, "", "waiting to be bound"))},
		"waits": {"status: {phase: Pending}", volatile(is(pending, degraded, "Pending", "waiting to be bound"))},
		"bound": {"status: {phase: Bound}", operational},
		"other": {"status: {phase: Released}", is(pending, degraded, "Released", "is not bound, but Released")},
		"being deleted": {"metadata: {deletionTimestamp: '2025-01-02T03:04:05Z'}\nstatus: {phase: Pending}",
			is(pending, degraded, "Terminating", "is being deleted")},
		"lost": {"status: {phase: Lost}", is(broken, down, "Lost", "has lost its volume")},
	}.run(t, "v1", "PersistentVolumeClaim")
	kindTests{
		"new":       {"spec: {}", passes(is(pending, degraded, "", "is not available yet"))},
		"pending":   {"status: {phase: Pending}", passes(is(pending, degraded, "Pending", "is not available yet"))},
		"available": {"status: {phase: Available}", operational},
		"bound":     {"status: {phase: Bound}", operational},
		"released":  {"status: {phase: Released}", passes(is(broken, down, "Released", "is in the phase Released"))},
		"failed":    {"status: {phase: Failed}", passes(is(broken, down, "Failed", "is in the phase Failed"))},
	}.run(t, "v1", "PersistentVolume")
}

func TestHorizontalPodAutoscaler(t *testing.T) {
	kindTests{
		"new": {"spec: {}", passes(is(pending, degraded, "", "does not scale yet"))},
		"unknown": {"status: {conditions: [{type: ScalingActive, status: Unknown, reason: Odd}]}",
			passes(is(pending, degraded, "Odd", "does not scale yet"))},
		"active": {`
status: {conditions: [{type: AbleToScale, status: "True"}, {type: ScalingActive, status: "True"}]}`, operational},
		"without metrics": {`
status: {conditions: [{type: ScalingActive, status: "False", reason: FailedGetResourceMetric,
    message: pod web-6d4b75cb6d-x7k2p}]}`,
			passes(is(broken, down, "FailedGetResourceMetric", "does not scale: FailedGetResourceMetric"))},
		"its target has no replicas": {`
status: {conditions: [{type: ScalingActive, status: "False", reason: ScalingDisabled}]}`,
			passes(is(pending, degraded, "ScalingDisabled", "does not scale, because its target has no replicas"))},
		"without a target": {`
status:
  conditions:
  - {type: ScalingActive, status: "True"}
  - {type: AbleToScale, status: "False", reason: FailedGetScale}`,
			passes(is(broken, down, "FailedGetScale", "cannot scale: FailedGetScale"))},
	}.run(t, "autoscaling/v2", "HorizontalPodAutoscaler")
	kindTests{
		"has no conditions": {"spec: {}", operational},
	}.run(t, "autoscaling/v1", "HorizontalPodAutoscaler")
}

func TestDefinitions(t *testing.T) {
	kindTests{
		"new": {"spec: {}", is(pending, degraded, "", "not established yet")},
		"established": {`
status: {conditions: [{type: NamesAccepted, status: "True"}, {type: Established, status: "True"}]}`, operational},
		"its names are taken": {`
status:
  conditions:
  - {type: Established, status: "False", reason: NotAccepted}
  - {type: NamesAccepted, status: "False", reason: PluralConflict, message: taken}`,
			is(broken, down, "PluralConflict", "its names are not accepted: PluralConflict: taken")},
		"its names were lost": {`
status:
  conditions:
  - {type: Established, status: "True"}
  - {type: NamesAccepted, status: "False", reason: PluralConflict, message: '"things" is taken'}`,
			is(broken, down, "PluralConflict", `its names are not accepted: PluralConflict: "things" is taken`)},
		"its names are open": {`status: {conditions: [{type: Established, status: "True"}]}`,
			is(pending, degraded, "", "not established yet")},
		"installing": {`status: {conditions: [{type: Established, status: "False", reason: Installing}]}`,
			is(pending, degraded, "Installing", "not established yet")},
		"not to be established": {`
status: {conditions: [{type: Established, status: "False", reason: NotAccepted, message: not all are accepted}]}`,
			is(broken, down, "NotAccepted", "not established: NotAccepted: not all are accepted")},
	}.run(t, "apiextensions.k8s.io/v1", "CustomResourceDefinition")
	kindTests{
		"new":       {"spec: {}", is(pending, degraded, "", "not available")},
		"available": {`status: {conditions: [{type: Available, status: "True"}]}`, operational},
		"without a server": {`status: {conditions: [{type: Available, status: "False", reason: MissingEndpoints}]}`,
			is(pending, degraded, "MissingEndpoints", "not available: MissingEndpoints")},
	}.run(t, "apiregistration.k8s.io/v1", "APIService")
}

func TestNamespace(t *testing.T) {
	kindTests{
		"active": {"status: {phase: Active}", healthy},
		"goes":   {"status: {phase: Terminating}", is(updating, degraded, "Terminating", "is being deleted")},
	}.run(t, "v1", "Namespace")
}

func TestOtherKinds(t *testing.T) {
	kindTests{
		"without a status": {"spec: {}", healthy},
		"not observed": {"metadata: {generation: 2}\nstatus: {observedGeneration: 1}",
			is(updating, degraded, "", "has not been observed yet (generation 2, observed 1)")},
		"not ready": {
			`status: {conditions: [{type: Ready, status: "False", reason: Waiting, message: for the database}]}`,
			is(creating, degraded, "Waiting", "Ready is False: Waiting: for the database")},
		"stalled": {`
status: {conditions: [{type: Ready, status: "True"},
  {type: Stalled, status: "True", reason: Broken, message: beyond repair}]}`,
			is(failing, down, "Broken", "Stalled: Broken: beyond repair")},
		"reconciling": {`
status: {conditions: [{type: Ready, status: "True"}, {type: Reconciling, status: "True", reason: Progressing}]}`,
			is(creating, degraded, "Progressing", "Reconciling: Progressing")},
		"stalled, and reconciling again": {`
status: {conditions: [{type: Stalled, status: "True"}, {type: Reconciling, status: "True", message: once more}]}`,
			is(creating, degraded, "", "Reconciling: once more")},
		"being deleted, and not observed": {`
metadata: {generation: 2, deletionTimestamp: "2025-01-02T03:04:05Z"}
status: {observedGeneration: 1}`,
			is(updating, degraded, "Terminating", "is being deleted")},
		"a generation that is none": {"metadata: {generation: one}",
			is(apis.StateUnknown, degraded, "", "its status cannot be read: looking up metadata.generation "+
				"from resource: .metadata.generation accessor error: one is of the type string, expected int64")},
		"malformed": {"status: {conditions: all good}",
			is(apis.StateUnknown, degraded, "", "its status cannot be read: cannot restore slice from string")},
	}.run(t, "example.com/v1", "Thing")
	kindTests{"without conditions": {"spec: {}", healthy}}.run(t, "policy/v1", "PodDisruptionBudget")
	kindTests{
		"static": {"spec: {}", healthy},
		"being deleted": {`metadata: {deletionTimestamp: "2025-01-02T03:04:05Z"}`,
			is(updating, degraded, "Terminating", "is being deleted")},
	}.run(t, "v1", "ConfigMap")
}

// The typed objects of these kinds cannot be so.
func TestMalformed(t *testing.T) {
	for manifest, want := range map[string]apis.Health{
		"apiVersion: v1\nkind: Pod\nstatus: {phase: Running, containerStatuses: [web, {name: 1, state: [waiting]}, " +
			"{state: {waiting: {reason: 2}}}]}": is(creating, degraded, "", "running, but not ready"),
		"apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {generation: 1}\nstatus: {observedGeneration: 1}": is(
			creating, degraded, "", "has not been observed yet"),
	} {
		object := parse(t, manifest)
		if diff := cmp.Diff(follows(want), found{health.Of(object), health.ReadinessOf(object)},
			cmp.AllowUnexported(found{})); diff != "" {
			t.Errorf("%s (-want, +got):\n%s", manifest, diff)
		}
	}
}

func TestOfNothing(t *testing.T) {
	want := is(apis.StateUnknown, degraded, "", "there is no object to look at")
	var pod *corev1.Pod
	var object *unstructured.Unstructured
	for name, got := range map[string]apis.Health{
		"nil":                 health.Of(nil),
		"a nil pod":           health.Of(pod),
		"a nil object":        health.Of(object),
		"an empty object":     health.Of(&unstructured.Unstructured{}),
		"nil, as a ConfigMap": health.OfKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, nil),
	} {
		if got.State != want.State || got.Message != want.Message {
			t.Errorf("%s: the health is %v, want %v", name, got, want)
		}
	}
}

func TestHealthyAndFailing(t *testing.T) {
	for state, want := range map[apis.State][2]bool{
		apis.StateHealthy: {true, false}, apis.StateOperational: {true, false}, apis.StateCompleted: {true, false},
		apis.StateFailing: {false, true}, apis.StateOperationFailing: {false, true},
		apis.StateTaskFailing: {false, true},
		apis.StateCreating:    {}, apis.StateUnknown: {}, apis.StateSuspended: {}, "": {},
	} {
		if got := [2]bool{health.Healthy(state), health.Failing(state)}; got != want {
			t.Errorf("%s: %v, want %v", state, got, want)
		}
	}
}
