package health_test

import "testing"

func TestDeployment(t *testing.T) {
	kindTests{
		"new": {"metadata: {generation: 1}\nspec: {replicas: 3}",
			is(creating, down, "", "0 of 3 replicas available")},
		"no pods": {"metadata: {generation: 1}\nspec: {replicas: 0}",
			is(creating, degraded, "", "the roll-out is not finished")},
		"no field": {"spec: {}", is(creating, down, "", "0 of 1 replica available")},
		"starting": {`
metadata: {generation: 1}
spec: {replicas: 3, progressDeadlineSeconds: 600}
status:
  {observedGeneration: 1, replicas: 3, updatedReplicas: 3, readyReplicas: 1, availableReplicas: 1,
  conditions: [{type: Progressing, status: "True", reason: ReplicaSetUpdated}]}`,
			is(creating, degraded, "", "1 of 3 replicas available")},
		"changed and not observed": {`
metadata: {generation: 2}
spec: {replicas: 1}
status:
  {observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1,
  conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate}]}`,
			is(updating, degraded, "", "has not been observed yet (generation 2, observed 1)")},
		"all ready, but most of them old": {`
metadata: {generation: 2}
spec: {replicas: 3, progressDeadlineSeconds: 600}
status:
  {observedGeneration: 2, replicas: 4, updatedReplicas: 1, readyReplicas: 3, availableReplicas: 3,
  conditions: [{type: Available, status: "True"}, {type: Progressing, status: "True", reason: ReplicaSetUpdated}]}`,
			is(updating, degraded, "", "1 of 3 replicas updated")},
		"an old one remains, by surge": {`
metadata: {generation: 2}
spec: {replicas: 3, progressDeadlineSeconds: 600}
status:
  {observedGeneration: 2, replicas: 4, updatedReplicas: 3, readyReplicas: 4, availableReplicas: 4,
  conditions: [{type: Available, status: "True"}, {type: Progressing, status: "True", reason: ReplicaSetUpdated}]}`,
			is(updating, degraded, "", "waiting for 1 surplus replica to go")},
		"all there, but not said to be": {`
metadata: {generation: 1}
spec: {replicas: 1, progressDeadlineSeconds: 600}
status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1}`,
			is(scaling, degraded, "", "the roll-out is not finished")},
		"rolled out": {`
metadata: {generation: 2}
spec: {replicas: 1, progressDeadlineSeconds: 600}
status:
  {observedGeneration: 2, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1,
  conditions: [{type: Available, status: "True"}, {type: Progressing, status: "True",
    reason: NewReplicaSetAvailable}]}`,
			healthy},
		"a pod was lost after the roll-out": {`
metadata: {generation: 1}
spec: {replicas: 2, progressDeadlineSeconds: 600}
status:
  {observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 1, availableReplicas: 1,
  conditions: [{type: Available, status: "False", reason: MinimumReplicasUnavailable},
    {type: Progressing, status: "True", reason: NewReplicaSetAvailable}]}`,
			is(scaling, degraded, "MinimumReplicasUnavailable", "1 of 2 replicas available")},
		"scaled up": {`
metadata: {generation: 3}
spec: {replicas: 5, progressDeadlineSeconds: 600}
status:
  {observedGeneration: 3, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2,
  conditions: [{type: Available, status: "True"}, {type: Progressing, status: "True",
    reason: NewReplicaSetAvailable}]}`,
			is(scaling, degraded, "", "2 of 5 replicas available")},
		"scaled down": {`
metadata: {generation: 3}
spec: {replicas: 1}
status:
  {observedGeneration: 3, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2,
  conditions: [{type: Available, status: "True"}]}`,
			is(scaling, degraded, "", "waiting for 1 surplus replica to go")},
		"out of time": {`
metadata: {generation: 1}
spec: {replicas: 3, progressDeadlineSeconds: 600}
status:
  {observedGeneration: 1, replicas: 3, updatedReplicas: 3,
  conditions: [{type: Available, status: "False", reason: MinimumReplicasUnavailable},
    {type: Progressing, status: "False", reason: ProgressDeadlineExceeded,
    message: ReplicaSet "web-6d4b75cb6d" timed out}]}`,
			is(failing, down, "ProgressDeadlineExceeded", "progress deadline exceeded: 0 of 3 replicas available")},
		"refused by a quota": {`
metadata: {generation: 2}
spec: {replicas: 3, progressDeadlineSeconds: 600}
status:
  {observedGeneration: 2, replicas: 2, updatedReplicas: 0, readyReplicas: 2, availableReplicas: 2,
  conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate,
    message: pods "web-6d4b75cb6d-x7k2p" is forbidden}]}`,
			but(is(failing, degraded, "FailedCreate", "0 of 3 replicas updated (FailedCreate)"), ongoing,
				"0 of 3 replicas updated (FailedCreate)")},
		"paused with old pods": {`
metadata: {generation: 2}
spec: {replicas: 2, paused: true, progressDeadlineSeconds: 600}
status:
  {observedGeneration: 2, replicas: 2, updatedReplicas: 0, readyReplicas: 2, availableReplicas: 2,
  conditions: [{type: Available, status: "True"}, {type: Progressing, status: Unknown, reason: DeploymentPaused}]}`,
			but(healthy, ongoing, "0 of 2 replicas updated")},
		"paused from the start": {`
metadata: {generation: 1}
spec: {replicas: 2, paused: true, progressDeadlineSeconds: 600}
status: {observedGeneration: 1, conditions: [{type: Progressing, status: Unknown, reason: DeploymentPaused}]}`,
			but(is(creating, down, "DeploymentPaused", "paused: 0 of 2 replicas available"), ongoing,
				"0 of 2 replicas available")},
		"paused amid a surge": {`
metadata: {generation: 2}
spec: {replicas: 2, paused: true, progressDeadlineSeconds: 600}
status: {observedGeneration: 2, replicas: 3, updatedReplicas: 1, readyReplicas: 3, availableReplicas: 3}`,
			but(is(updating, degraded, "DeploymentPaused", "paused: 1 of 2 replicas updated"), ongoing,
				"1 of 2 replicas updated")},
		"being deleted": {`
metadata: {generation: 2, deletionTimestamp: "2025-01-02T03:04:05Z"}
spec: {replicas: 1}
status: {observedGeneration: 2, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1}`,
			is(updating, degraded, "Terminating", "is being deleted")},
	}.run(t, "apps/v1", "Deployment")
}

func TestStatefulSet(t *testing.T) {
	kindTests{
		"new": {"metadata: {generation: 1}\nspec: {replicas: 3}", is(creating, down, "", "0 of 3 replicas ready")},
		"starting": {`
metadata: {generation: 1}
spec: {replicas: 3}
status:
  {observedGeneration: 1, replicas: 2, readyReplicas: 1, currentReplicas: 2, updatedReplicas: 2,
  currentRevision: a, updateRevision: a}`,
			is(creating, degraded, "", "1 of 3 replicas ready")},
		"updating": {`
metadata: {generation: 2}
spec: {replicas: 3}
status:
  {observedGeneration: 2, replicas: 3, readyReplicas: 3, currentReplicas: 2, updatedReplicas: 1,
  currentRevision: a, updateRevision: b}`,
			is(updating, degraded, "", "1 of 3 replicas updated")},
		"scaled up": {`
metadata: {generation: 2}
spec: {replicas: 3}
status:
  {observedGeneration: 2, replicas: 1, readyReplicas: 1, currentReplicas: 1, updatedReplicas: 1,
  currentRevision: a, updateRevision: a}`,
			is(scaling, degraded, "", "1 of 3 replicas ready")},
		"updating above the partition": {`
metadata: {generation: 2}
spec: {replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 1}}}
status:
  {observedGeneration: 2, replicas: 3, readyReplicas: 3, currentReplicas: 2, updatedReplicas: 1,
  currentRevision: a, updateRevision: b}`,
			is(updating, degraded, "", "1 of 2 replicas updated")},
		"updated above the partition": {`
metadata: {generation: 2}
spec: {replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 1}}}
status:
  {observedGeneration: 2, replicas: 3, readyReplicas: 3, currentReplicas: 1, updatedReplicas: 2,
  currentRevision: a, updateRevision: b}`,
			healthy},
		"scaled down": {`
metadata: {generation: 2}
spec: {replicas: 1}
status: {observedGeneration: 2, replicas: 2, readyReplicas: 2}`,
			is(scaling, degraded, "", "waiting for 1 surplus replica to go")},
		"revisions differ": {`
metadata: {generation: 2}
spec: {replicas: 1}
status:
  {observedGeneration: 2, replicas: 1, readyReplicas: 1, currentReplicas: 1, updatedReplicas: 1, currentRevision: a,
  updateRevision: b}`,
			is(updating, degraded, "", "the roll-out is not finished")},
		"a pod was lost, with a partition": {`
metadata: {generation: 2}
spec: {replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 1}}}
status:
  {observedGeneration: 2, replicas: 3, readyReplicas: 2, currentReplicas: 1, updatedReplicas: 2,
  currentRevision: a, updateRevision: b}`,
			is(scaling, degraded, "", "2 of 3 replicas ready")},
		"old pods, replaced by hand": {`
metadata: {generation: 2}
spec: {replicas: 2, updateStrategy: {type: OnDelete}}
status:
  {observedGeneration: 2, replicas: 2, readyReplicas: 2, currentReplicas: 2, currentRevision: a, updateRevision: b}`,
			healthy},
		"pods replaced by hand are not ready": {`
metadata: {generation: 2}
spec: {replicas: 2, updateStrategy: {type: OnDelete}}
status: {observedGeneration: 2, replicas: 2, readyReplicas: 0, currentRevision: a, updateRevision: b}`,
			passes(is(scaling, down, "", "0 of 2 replicas ready"))},
		"pods replaced by hand are too many": {`
metadata: {generation: 2}
spec: {replicas: 1, updateStrategy: {type: OnDelete}}
status: {observedGeneration: 2, replicas: 2, readyReplicas: 2}`,
			passes(is(scaling, degraded, "", "waiting for 1 surplus replica to go"))},
	}.run(t, "apps/v1", "StatefulSet")
}

func TestDaemonSet(t *testing.T) {
	kindTests{
		"new": {"metadata: {generation: 1}", is(creating, degraded, "", "has not been observed yet")},
		"starting": {`
metadata: {generation: 1}
status:
  {observedGeneration: 1, desiredNumberScheduled: 5, currentNumberScheduled: 3, updatedNumberScheduled: 3,
  numberReady: 0, numberMisscheduled: 0}`,
			is(creating, down, "", "0 of 5 nodes ready")},
		"updating": {`
metadata: {generation: 2}
status:
  {observedGeneration: 2, desiredNumberScheduled: 5, currentNumberScheduled: 5, updatedNumberScheduled: 1,
  numberReady: 5, numberAvailable: 5, numberMisscheduled: 0}`,
			is(updating, degraded, "", "1 of 5 nodes updated")},
		"ready, but not for long enough": {`
metadata: {generation: 1}
status:
  {observedGeneration: 1, desiredNumberScheduled: 5, currentNumberScheduled: 5, updatedNumberScheduled: 5,
  numberReady: 5, numberAvailable: 2, numberMisscheduled: 0}`,
			is(scaling, degraded, "", "2 of 5 nodes ready")},
		"a node was added": {`
metadata: {generation: 2}
status:
  {observedGeneration: 2, desiredNumberScheduled: 5, currentNumberScheduled: 4, updatedNumberScheduled: 4,
  numberReady: 4, numberAvailable: 4, numberMisscheduled: 0}`,
			is(scaling, degraded, "", "4 of 5 nodes ready")},
		"old pods, replaced by hand": {`
metadata: {generation: 2}
spec: {updateStrategy: {type: OnDelete}}
status:
  {observedGeneration: 2, desiredNumberScheduled: 2, currentNumberScheduled: 2, numberReady: 2, numberAvailable: 2,
  numberMisscheduled: 0}`,
			but(healthy, ongoing, "0 of 2 nodes updated")},
		"no node needs it": {`
metadata: {generation: 1}
status:
  {observedGeneration: 1, desiredNumberScheduled: 0, currentNumberScheduled: 0, numberReady: 0, numberMisscheduled: 0}`,
			healthy},
	}.run(t, "apps/v1", "DaemonSet")
}

func TestReplicaSet(t *testing.T) {
	kindTests{
		"starting": {`
metadata: {generation: 1}
spec: {replicas: 2}
status: {observedGeneration: 1, replicas: 1, fullyLabeledReplicas: 1}`,
			is(creating, down, "", "0 of 2 replicas available")},
		"shrinking": {`
metadata: {generation: 2}
spec: {replicas: 1}
status: {observedGeneration: 2, replicas: 3, fullyLabeledReplicas: 3, readyReplicas: 3, availableReplicas: 3}`,
			is(scaling, degraded, "", "waiting for 2 surplus replicas to go")},
		"refused": {`
metadata: {generation: 1}
spec: {replicas: 2}
status: {observedGeneration: 1, replicas: 0, conditions: [{type: ReplicaFailure, status: "True",
    reason: FailedCreate}]}`,
			but(is(failing, down, "FailedCreate", "0 of 2 replicas available (FailedCreate)"), ongoing,
				"0 of 2 replicas available (FailedCreate)")},
		"there": {`
metadata: {generation: 1}
spec: {replicas: 1}
status: {observedGeneration: 1, replicas: 1, fullyLabeledReplicas: 1, readyReplicas: 1, availableReplicas: 1}`,
			healthy},
	}.run(t, "apps/v1", "ReplicaSet")
}
