package readiness_test

import (
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/component/readiness"
)

type kindTests map[string]struct {
	// manifest is what follows apiVersion, kind and name.
	manifest string
	want     readiness.Result
}

func (tests kindTests) run(t *testing.T, apiVersion, kind string) {
	t.Helper()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			manifest := "apiVersion: " + apiVersion + "\nkind: " + kind + "\n" + tc.manifest
			check(t, parse(t, manifest), generator.Settings{}, tc.want)
		})
	}
}

func TestAnyKind(t *testing.T) {
	kindTests{
		"without a status": {"metadata: {name: x}", current},
		"being deleted": {`
metadata: {name: x, generation: 2, deletionTimestamp: "2025-01-02T03:04:05Z"}
status: {observedGeneration: 1}`,
			readiness.Result{Status: apis.ObjectTerminating, Message: "is being deleted"}},
		"Ready is False": {`
metadata: {name: x}
status: {conditions: [{type: Ready, status: "False", reason: Waiting, message: for the database}]}`,
			inProgress("Ready is False: Waiting: for the database")},
		"reconciling": {`
metadata: {name: x}
status: {conditions: [{type: Ready, status: "True"}, {type: Reconciling, status: "True", reason: Progressing}]}`,
			inProgress("Reconciling: Progressing")},
		"stalled": {`
metadata: {name: x}
status: {conditions: [{type: Ready, status: "True"}, {type: Stalled, status: "True", reason: Broken, message: beyond repair}]}`,
			failed("Stalled: Broken: beyond repair")},
		"stalled, and reconciling again": {`
metadata: {name: x}
status: {conditions: [{type: Stalled, status: "True"}, {type: Reconciling, status: "True", message: once more}]}`,
			inProgress("Reconciling: once more")},
		"conditions that are none": {`
metadata: {name: x}
status: {conditions: all good}`,
			unknown("its status cannot be read: cannot restore slice from string")},
		"a generation that is none": {`
metadata: {name: x, generation: one}`,
			unknown("its status cannot be read: looking up metadata.generation from resource: " +
				".metadata.generation accessor error: one is of the type string, expected int64")},
	}.run(t, "example.com/v1", "Thing")
}

func TestDeployment(t *testing.T) {
	kindTests{
		"new":                              {"spec: {replicas: 3}", inProgress("0 of 3 replicas available")},
		"new, with one replica by default": {"spec: {}", inProgress("0 of 1 replica available")},
		"starting": {`
spec: {replicas: 3, progressDeadlineSeconds: 600}
status: {replicas: 3, updatedReplicas: 3, readyReplicas: 1, availableReplicas: 1}`,
			inProgress("1 of 3 replicas available")},
		"updating": {`
spec: {replicas: 3, progressDeadlineSeconds: 600}
status: {replicas: 4, updatedReplicas: 1, readyReplicas: 3, availableReplicas: 3}`,
			inProgress("1 of 3 replicas updated")},
		"old ones remain": {`
spec: {replicas: 3, progressDeadlineSeconds: 600}
status: {replicas: 4, updatedReplicas: 3, readyReplicas: 3, availableReplicas: 3}`,
			inProgress("waiting for 1 surplus replica to go")},
		"all there, but not said to be": {`
spec: {replicas: 1, progressDeadlineSeconds: 600}
status: {replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1}`,
			inProgress("the roll-out is not finished")},
		"refused": {`
spec: {replicas: 3, progressDeadlineSeconds: 600}
status:
  conditions:
  - {type: ReplicaFailure, status: "True", reason: FailedCreate, message: pods "web-6d4b75cb6d-x7k2p" is forbidden}`,
			inProgress("0 of 3 replicas available (FailedCreate)")},
		"out of time": {`
spec: {replicas: 3, progressDeadlineSeconds: 600}
status:
  replicas: 3
  updatedReplicas: 3
  availableReplicas: 2
  conditions:
  - {type: Progressing, status: "False", reason: ProgressDeadlineExceeded}`,
			failed("progress deadline exceeded: 2 of 3 replicas available")},
		"rolled out": {`
metadata: {generation: 2}
spec: {replicas: 1, progressDeadlineSeconds: 600}
status:
  observedGeneration: 2
  replicas: 1
  updatedReplicas: 1
  readyReplicas: 1
  availableReplicas: 1
  conditions:
  - {type: Available, status: "True"}
  - {type: Progressing, status: "True", reason: NewReplicaSetAvailable}`,
			current},
	}.run(t, "apps/v1", "Deployment")
}

func TestReplicaSet(t *testing.T) {
	kindTests{
		"starting": {`
spec: {replicas: 2}
status: {replicas: 2, fullyLabeledReplicas: 2, readyReplicas: 1, availableReplicas: 1}`,
			inProgress("1 of 2 replicas available")},
		"shrinking": {`
spec: {replicas: 1}
status: {replicas: 3, fullyLabeledReplicas: 3, readyReplicas: 3, availableReplicas: 3}`,
			inProgress("waiting for 2 surplus replicas to go")},
		"refused": {`
spec: {replicas: 2}
status: {conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate}]}`,
			inProgress("0 of 2 replicas available (FailedCreate)")},
		"there": {`
spec: {replicas: 1}
status: {replicas: 1, fullyLabeledReplicas: 1, readyReplicas: 1, availableReplicas: 1}`,
			current},
	}.run(t, "apps/v1", "ReplicaSet")
}

func TestStatefulSet(t *testing.T) {
	kindTests{
		"new": {"spec: {replicas: 3}", inProgress("0 of 3 replicas ready")},
		"starting": {`
spec: {replicas: 3}
status: {replicas: 2, readyReplicas: 1, currentReplicas: 2, updatedReplicas: 2}`,
			inProgress("1 of 3 replicas ready")},
		"updating": {`
spec: {replicas: 3}
status: {replicas: 3, readyReplicas: 3, currentReplicas: 2, updatedReplicas: 1, currentRevision: a, updateRevision: b}`,
			inProgress("1 of 3 replicas updated")},
		"updating above the partition": {`
spec: {replicas: 3, updateStrategy: {rollingUpdate: {partition: 1}}}
status: {replicas: 3, readyReplicas: 3, currentReplicas: 2, updatedReplicas: 1, currentRevision: a, updateRevision: b}`,
			inProgress("1 of 2 replicas updated")},
		"updated above the partition": {`
spec: {replicas: 3, updateStrategy: {rollingUpdate: {partition: 1}}}
status: {replicas: 3, readyReplicas: 3, currentReplicas: 1, updatedReplicas: 2, currentRevision: a, updateRevision: b}`,
			current},
		"shrinking": {`
spec: {replicas: 1}
status: {replicas: 2, readyReplicas: 2}`,
			inProgress("waiting for 1 surplus replica to go")},
		"revisions differ": {`
spec: {replicas: 1}
status: {replicas: 1, readyReplicas: 1, currentReplicas: 1, updatedReplicas: 1, currentRevision: a, updateRevision: b}`,
			inProgress("the roll-out is not finished")},
	}.run(t, "apps/v1", "StatefulSet")
}

func TestDaemonSet(t *testing.T) {
	kindTests{
		"new":          {"metadata: {generation: 1}", inProgress("has not been observed yet")},
		"half-written": {"metadata: {generation: 1}\nstatus: {observedGeneration: 1}", inProgress("has not been observed yet")},
		"starting": {`
metadata: {generation: 1}
status: {observedGeneration: 1, desiredNumberScheduled: 5, currentNumberScheduled: 5, updatedNumberScheduled: 5, numberReady: 3, numberAvailable: 2}`,
			inProgress("2 of 5 nodes ready")},
		"updating": {`
metadata: {generation: 2}
status: {observedGeneration: 2, desiredNumberScheduled: 5, currentNumberScheduled: 5, updatedNumberScheduled: 1, numberReady: 5, numberAvailable: 5}`,
			inProgress("1 of 5 nodes updated")},
		"no node needs it": {`
metadata: {generation: 1}
status: {observedGeneration: 1, desiredNumberScheduled: 0}`,
			current},
	}.run(t, "apps/v1", "DaemonSet")
}

// TestJob: a suspended Job is ready, and one that failed is not waited for.
func TestJob(t *testing.T) {
	kindTests{
		"new":              {"spec: {completions: 3}", inProgress("0 of 3 completions")},
		"started":          {"spec: {completions: 3}\nstatus: {startTime: x, active: 1, succeeded: 1}", inProgress("1 of 3 completions")},
		"of one":           {"spec: {completions: 1}\nstatus: {startTime: x, active: 1}", inProgress("0 of 1 completion")},
		"a queue":          {"spec: {parallelism: 3}\nstatus: {startTime: x, active: 3}", inProgress("not completed yet")},
		"suspended":        {"spec: {suspend: true}", current},
		"suspended midway": {"spec: {suspend: true}\nstatus: {conditions: [{type: Suspended, status: 'True'}]}", current},
		"resumed":          {"spec: {suspend: false, completions: 1}", inProgress("0 of 1 completion")},
		"complete":         {"status: {conditions: [{type: Complete, status: 'True'}]}", current},
		"not complete":     {"status: {startTime: x, conditions: [{type: Complete, status: 'False'}]}", inProgress("not completed yet")},
		"failed": {`
spec: {suspend: true}
status: {conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded, message: too often}]}`,
			failed("failed: BackoffLimitExceeded: too often")},
	}.run(t, "batch/v1", "Job")
}

// TestPod: a Pod that failed is not ready.
func TestPod(t *testing.T) {
	kindTests{
		"new":       {"spec: {}", inProgress("not running yet")},
		"pending":   {"status: {phase: Pending}", inProgress("not running yet")},
		"succeeded": {"status: {phase: Succeeded}", current},
		"failed":    {"status: {phase: Failed, reason: Evicted, message: no room}", failed("failed: Evicted: no room")},
		"lost":      {"status: {phase: Unknown}", unknown("is in the unknown phase Unknown")},
		"running":   {"status: {phase: Running}", inProgress("running, but not ready")},
		"ready":     {"status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}", current},
		// The time it has been so for does not matter: there is no clock.
		"does not fit": {`
metadata: {creationTimestamp: "2001-01-01T00:00:00Z"}
status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: 0/3 nodes}]}`,
			inProgress("not scheduled: Unschedulable")},
		"crashing": {`
status:
  phase: Running
  containerStatuses:
  - {name: web, state: {waiting: {reason: CrashLoopBackOff}}}
  - {name: log, state: {running: {}}}
  - {name: db, state: {waiting: {reason: CrashLoopBackOff}}}`,
			failed("crashes again and again: db, web")},
		"crashing at first": {`
status: {phase: Pending, initContainerStatuses: [{name: init, state: {waiting: {reason: CrashLoopBackOff}}}]}`,
			failed("crashes again and again: init")},
		"malformed containers": {`
status: {phase: Running, containerStatuses: [web, {name: 1, state: [waiting]}, {state: {waiting: {reason: 2}}}]}`,
			inProgress("running, but not ready")},
		"stalled all the same": {`
status: {phase: Running, conditions: [{type: Ready, status: "True"}, {type: Stalled, status: "True"}]}`,
			failed("Stalled")},
	}.run(t, "v1", "Pod")
}

// TestPersistentVolumeClaim: one that is not bound may be left behind by the waves.
func TestPersistentVolumeClaim(t *testing.T) {
	pending := readiness.Result{Status: apis.ObjectInProgress, Message: "waiting to be bound", Volatile: true}
	kindTests{
		"new":     {"spec: {}", pending},
		"pending": {"status: {phase: Pending}", pending},
		"bound":   {"status: {phase: Bound}", current},
		"lost":    {"status: {phase: Lost}", failed("has lost its volume")},
		"other":   {"status: {phase: Released}", inProgress("is not bound, but Released")},
		"pending, and being deleted": {`
metadata: {deletionTimestamp: "2025-01-02T03:04:05Z"}
status: {phase: Pending}`,
			readiness.Result{Status: apis.ObjectTerminating, Message: "is being deleted"}},
	}.run(t, "v1", "PersistentVolumeClaim")
}

func TestService(t *testing.T) {
	kindTests{
		"of the cluster":                {"spec: {}", current},
		"load balancer":                 {"spec: {type: LoadBalancer}", inProgress("waiting for an address")},
		"load balancer with an address": {"spec: {type: LoadBalancer, clusterIP: 10.0.0.1}", current},
	}.run(t, "v1", "Service")
}

func TestCustomResourceDefinition(t *testing.T) {
	kindTests{
		"new":            {"spec: {}", inProgress("not established yet")},
		"installing":     {"status: {conditions: [{type: Established, status: 'False', reason: Installing}]}", inProgress("not established yet")},
		"names are open": {"status: {conditions: [{type: Established, status: 'True'}]}", inProgress("not established yet")},
		"established": {`
status: {conditions: [{type: Established, status: "True"}, {type: NamesAccepted, status: "True"}]}`,
			current},
		"established once, then its names were lost": {`
status: {conditions: [{type: Established, status: "True"}, {type: NamesAccepted, status: "False", reason: PluralConflict, message: '"things" is taken'}]}`,
			failed(`its names are not accepted: PluralConflict: "things" is taken`)},
		"not to be established": {`
status: {conditions: [{type: Established, status: "False", reason: NotAccepted, message: not all names are accepted}]}`,
			failed("not established: NotAccepted: not all names are accepted")},
	}.run(t, "apiextensions.k8s.io/v1", "CustomResourceDefinition")
}

func TestAPIService(t *testing.T) {
	kindTests{
		"new":         {"spec: {}", inProgress("not available")},
		"unavailable": {"status: {conditions: [{type: Available, status: 'False', reason: MissingEndpoints}]}", inProgress("not available: MissingEndpoints")},
		"available":   {"status: {conditions: [{type: Available, status: 'True'}]}", current},
	}.run(t, "apiregistration.k8s.io/v1", "APIService")
}

func TestOthersAreCurrentByExisting(t *testing.T) {
	for _, kind := range []string{"v1/ConfigMap", "v1/Secret", "v1/ServiceAccount", "batch/v1/CronJob",
		"policy/v1/PodDisruptionBudget"} {
		i := strings.LastIndex(kind, "/")
		kindTests{"": {"", current}}.run(t, kind[:i], kind[i+1:])
	}
}

// A message that is different each time would cause a write of the component each time.
func TestMessagesAreStableAndShort(t *testing.T) {
	tests := map[string]struct{ message, want string }{
		"lines":     {"a\n\tb \u2028 c\x00\x1b[31m", "a b c[31m"},
		"times":     {"probed at 2025-02-03T04:05:06.123Z, and 2025-02-03 04:05:06 +0000 UTC m=+0.5", "probed at …, and …"},
		"uids":      {"pod web(1b4e28ba-2fa1-11d2-883f-0016d3cca427) is gone", "pod web(…) is gone"},
		"not utf-8": {"\xffa\xfe", "a"},
		"long":      {strings.Repeat("ä", 300), strings.Repeat("ä", 90) + "…"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			object := state{ready: "False"}.object()
			object.Object["status"].(map[string]any)["conditions"].([]any)[0].(map[string]any)["message"] = tc.message
			check(t, object, generator.Settings{}, inProgress("Ready is False: "+tc.want))
		})
	}
}

func TestNoObject(t *testing.T) {
	want := unknown("there is no object to look at")
	if got := readiness.Of(nil, generator.Settings{}); got != want {
		t.Errorf("want %v, got %v", want, got)
	}
}
