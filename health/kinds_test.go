package health_test

import (
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/health"

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
		"runs": {"spec: {completions: 3}\nstatus: {active: 1, succeeded: 1}",
			is(apis.StateTaskRunning, "", "", "1 of 3 completions")},
		"complete":  {"status: {conditions: [{type: Complete, status: 'True'}]}", completed},
		"suspended": {"spec: {suspend: true}", is(apis.StateTaskPending, "", "JobSuspended", "is suspended")},
		"about to fail": {`
spec: {completions: 1}
status: {active: 1, conditions: [{type: FailureTarget, status: "True", reason: DeadlineExceeded}]}`,
			is(apis.StateTaskFailing, down, "DeadlineExceeded", "fails: DeadlineExceeded")},
		"failed": {`
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
			is(pending, degraded, "NoAddress", "waiting for an address")},
		"with a hostname": {`
spec: {type: LoadBalancer, clusterIP: 10.0.0.1}
status: {loadBalancer: {ingress: [{}, {hostname: example.com}]}}`, operational},
	}.run(t, "v1", "Service")
}

func TestIngress(t *testing.T) {
	kindTests{
		"without an address": {"spec: {}", is(pending, degraded, "NoAddress", "waiting for an address")},
		"with an IP":         {"status: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}", operational},
	}.run(t, "networking.k8s.io/v1", "Ingress")
}

func TestVolumes(t *testing.T) {
	kindTests{
		"new":   {"spec: {}", is(pending, degraded, "", "waiting to be bound")},
		"waits": {"status: {phase: Pending}", is(pending, degraded, "Pending", "waiting to be bound")},
		"bound": {"status: {phase: Bound}", operational},
		"lost":  {"status: {phase: Lost}", is(broken, down, "Lost", "has lost its volume")},
	}.run(t, "v1", "PersistentVolumeClaim")
	kindTests{
		"new":       {"spec: {}", is(pending, degraded, "", "is not available yet")},
		"pending":   {"status: {phase: Pending}", is(pending, degraded, "Pending", "is not available yet")},
		"available": {"status: {phase: Available}", operational},
		"bound":     {"status: {phase: Bound}", operational},
		"released":  {"status: {phase: Released}", is(broken, down, "Released", "is in the phase Released")},
		"failed":    {"status: {phase: Failed}", is(broken, down, "Failed", "is in the phase Failed")},
	}.run(t, "v1", "PersistentVolume")
}

func TestHorizontalPodAutoscaler(t *testing.T) {
	kindTests{
		"new": {"spec: {}", is(pending, degraded, "", "does not scale yet")},
		"unknown": {"status: {conditions: [{type: ScalingActive, status: Unknown, reason: Odd}]}",
			is(pending, degraded, "Odd", "does not scale yet")},
		"active": {`
status: {conditions: [{type: AbleToScale, status: "True"}, {type: ScalingActive, status: "True"}]}`, operational},
		"without metrics": {`
status: {conditions: [{type: ScalingActive, status: "False", reason: FailedGetResourceMetric,
    message: pod web-6d4b75cb6d-x7k2p}]}`,
			is(broken, down, "FailedGetResourceMetric", "does not scale: FailedGetResourceMetric")},
		"its target has no replicas": {`
status: {conditions: [{type: ScalingActive, status: "False", reason: ScalingDisabled}]}`,
			is(pending, degraded, "ScalingDisabled", "does not scale, because its target has no replicas")},
		"without a target": {`
status:
  conditions:
  - {type: ScalingActive, status: "True"}
  - {type: AbleToScale, status: "False", reason: FailedGetScale}`,
			is(broken, down, "FailedGetScale", "cannot scale: FailedGetScale")},
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
		"stalled": {`status: {conditions: [{type: Stalled, status: "True", reason: Broken}]}`,
			is(failing, down, "Broken", "Stalled: Broken")},
		"malformed": {"status: {conditions: all good}",
			is(apis.StateUnknown, degraded, "", "its status cannot be read: cannot restore slice from string")},
	}.run(t, "example.com/v1", "Thing")
	kindTests{
		"static": {"spec: {}", healthy},
		"being deleted": {`metadata: {deletionTimestamp: "2025-01-02T03:04:05Z"}`,
			is(updating, degraded, "Terminating", "is being deleted")},
	}.run(t, "v1", "ConfigMap")
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
