package objectstatus

import (
	"fmt"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/content"
	"github.com/espalier-dev/espalier/internal/kinds"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// StaticKinds are kinds whose objects are Current as soon as they exist: every API server serves them, and their status
// has nothing that a rule looks at, neither conditions nor an observed generation. It is for reading only.
var StaticKinds = map[schema.GroupKind]bool{
	kinds.ConfigMap:          true,
	kinds.Secret:             true,
	{Kind: "ServiceAccount"}: true,
	{Kind: "LimitRange"}:     true,
	{Kind: "ResourceQuota"}:  true,
	{Kind: "Endpoints"}:      true,
	{Kind: "PodTemplate"}:    true,

	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:               true,
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:        true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:        true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: true,

	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:     true,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}:   true,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicyBinding"}: true,

	kinds.CronJob: true,
	{Group: "coordination.k8s.io", Kind: "Lease"}:         true,
	{Group: "discovery.k8s.io", Kind: "EndpointSlice"}:    true,
	{Group: "networking.k8s.io", Kind: "IngressClass"}:    true,
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:   true,
	{Group: "node.k8s.io", Kind: "RuntimeClass"}:          true,
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:   true,
	{Group: "storage.k8s.io", Kind: "CSIDriver"}:          true,
	{Group: "storage.k8s.io", Kind: "StorageClass"}:       true,
	{Group: "storage.k8s.io", Kind: "CSIStorageCapacity"}: true,
}

// kindRules applies the rules of kstatus and of the kind.
func (s *subject) kindRules() Result {
	if s.kind == kinds.Pod {
		return s.pod()
	}
	computed, err := status.Compute(s.object)
	if err != nil {
		return unknown(fmt.Sprintf("its status cannot be read: %v", err))
	}
	switch s.kind {
	case kinds.Job:
		return s.job(computed)
	case kinds.PersistentVolumeClaim:
		return s.persistentVolumeClaim(computed)
	case kinds.CustomResourceDefinition:
		return s.customResourceDefinition(computed)
	case kinds.APIService:
		if c, ok := s.condition("Available"); !ok || c.Status != "True" {
			return inProgress(withReasons("not available", c.Reason))
		}
	}
	if computed.Status == status.CurrentStatus {
		return current
	}
	return Result{Status: apis.ObjectStatus(computed.Status), Message: s.message(computed)}
}

// message says why an object is not Current by the rules of kstatus.
func (s *subject) message(computed *status.Result) string {
	switch s.kind {
	case kinds.Deployment:
		return s.deployment(computed)
	case kinds.ReplicaSet:
		return s.replicaSet()
	case kinds.StatefulSet:
		return s.statefulSet()
	case kinds.DaemonSet:
		return s.daemonSet()
	case kinds.Service:
		return "waiting for an address"
	}
	if c, ok := s.condition("Ready"); ok {
		return c.String()
	}
	return computed.Message
}

// job has rules of its own, because kstatus says that a job is current once it has started, and that a suspended one
// may never be.
func (s *subject) job(computed *status.Result) Result {
	if s.has("Complete", "True") {
		return current
	}
	if computed.Status == status.FailedStatus {
		c, _ := s.condition("Failed")
		return failed(withReasons("failed", c.Reason, c.Message))
	}
	if suspended, _ := content.Field(s.object, "spec", "suspend").(bool); suspended {
		return current
	}
	if wanted := s.number(-1, "spec", "completions"); wanted >= 0 {
		return inProgress(fmt.Sprintf("%d of %s", s.number(0, "status", "succeeded"), count(wanted, "completion")))
	}
	return inProgress("not completed yet")
}

// persistentVolumeClaim says that a claim is volatile. A claim that is bound when its first consumer exists looks like
// one that is about to be bound. To wait for it before its consumer is written would be to wait for ever. So no wave
// waits for a pending claim.
func (s *subject) persistentVolumeClaim(computed *status.Result) Result {
	if computed.Status == status.CurrentStatus {
		return current
	}
	switch phase := s.text("status", "phase"); phase {
	case "", "Pending":
		return Result{Status: apis.ObjectInProgress, Message: "waiting to be bound", Volatile: true}
	case "Lost":
		return failed("has lost its volume")
	default:
		return inProgress("is not bound, but " + phase)
	}
}

// customResourceDefinition has rules of its own, because the result of kstatus depends on the order of the conditions.
func (s *subject) customResourceDefinition(computed *status.Result) Result {
	if c, ok := s.condition("NamesAccepted"); ok && c.Status == "False" {
		return failed(withReasons("its names are not accepted", c.Reason, c.Message))
	}
	if computed.Status == status.FailedStatus {
		c, _ := s.condition("Established")
		return failed(withReasons("not established", c.Reason, c.Message))
	}
	if s.has("Established", "True") && s.has("NamesAccepted", "True") {
		return current
	}
	return inProgress("not established yet")
}

// pod does not use kstatus, which says that a failed pod is current, reads the clock, and panics if the status is
// malformed.
func (s *subject) pod() Result {
	phase := s.text("status", "phase")
	if phase == "Succeeded" {
		return current
	}
	if phase == "Failed" {
		return failed(withReasons("failed", s.text("status", "reason"), s.text("status", "message")))
	}
	if phase == "Running" && s.has("Ready", "True") {
		return current
	}
	if crashing := s.crashLooping(); len(crashing) > 0 {
		return failed("crashes again and again: " + strings.Join(crashing, ", "))
	}
	switch phase {
	case "Running":
		return inProgress("running, but not ready")
	case "Pending", "":
		if c, ok := s.condition("PodScheduled"); ok && c.Status == "False" {
			return inProgress(withReasons("not scheduled", c.Reason))
		}
		return inProgress("not running yet")
	default:
		return unknown("is in the unknown phase " + phase)
	}
}

// crashLooping returns the names of the containers that are restarted again and again after a crash, sorted.
func (s *subject) crashLooping() []string {
	var names []string
	for _, list := range []string{"initContainerStatuses", "containerStatuses"} {
		containers, _ := content.Field(s.object, "status", list).([]any)
		for _, item := range containers {
			container, _ := item.(map[string]any)
			if content.At(container, "state", "waiting", "reason") == "CrashLoopBackOff" {
				name, _ := container["name"].(string)
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

const messageUnfinished = "the roll-out is not finished"

func (s *subject) deployment(computed *status.Result) string {
	wanted := s.number(1, "spec", "replicas")
	total := s.number(0, "status", "replicas")
	updated := s.number(0, "status", "updatedReplicas")
	available := s.number(0, "status", "availableReplicas")
	ready := s.number(0, "status", "readyReplicas")

	message := messageUnfinished
	switch {
	case updated < wanted && updated < available:
		message = Progress(updated, wanted, "replica", "updated")
	case available < wanted:
		message = Progress(available, wanted, "replica", "available")
	case ready < wanted:
		message = Progress(ready, wanted, "replica", "ready")
	case total > wanted:
		message = Surplus(total - wanted)
	}
	if computed.Status == status.FailedStatus {
		message = "progress deadline exceeded: " + message
	}
	return message + s.replicaFailure()
}

func (s *subject) replicaSet() string {
	wanted := s.number(1, "spec", "replicas")
	total := s.number(0, "status", "replicas")
	available := s.number(0, "status", "availableReplicas")

	message := messageUnfinished
	switch {
	case available < wanted:
		message = Progress(available, wanted, "replica", "available")
	case total > wanted:
		message = Surplus(total - wanted)
	}
	return message + s.replicaFailure()
}

// replicaFailure says why replicas cannot be created. It omits the message of the condition, which names another pod
// each time.
func (s *subject) replicaFailure() string {
	if c, ok := s.condition("ReplicaFailure"); ok && c.Status == "True" && c.Reason != "" {
		return " (" + c.Reason + ")"
	}
	return ""
}

func (s *subject) statefulSet() string {
	wanted := s.number(1, "spec", "replicas")
	total := s.number(0, "status", "replicas")
	updated := s.number(0, "status", "updatedReplicas")
	ready := min(total, s.number(0, "status", "readyReplicas"))
	// Replicas below the partition are not updated.
	changing := max(0, wanted-s.number(0, "spec", "updateStrategy", "rollingUpdate", "partition"))

	switch {
	case ready < wanted:
		return Progress(ready, wanted, "replica", "ready")
	case total > wanted:
		return Surplus(total - wanted)
	case updated < changing:
		return Progress(updated, changing, "replica", "updated")
	}
	return messageUnfinished
}

func (s *subject) daemonSet() string {
	wanted := s.number(-1, "status", "desiredNumberScheduled")
	updated := s.number(0, "status", "updatedNumberScheduled")
	ready := min(s.number(0, "status", "numberReady"), s.number(0, "status", "numberAvailable"))

	switch {
	case wanted < 0 || content.Field(s.object, "status", "observedGeneration") == nil:
		return "has not been observed yet"
	case updated < wanted && updated < ready:
		return Progress(updated, wanted, "node", "updated")
	case ready < wanted:
		return Progress(ready, wanted, "node", "ready")
	}
	return messageUnfinished
}

// Progress says how far a roll-out is, as in "1 of 3 replicas available".
func Progress(n, wanted int64, noun, state string) string {
	return fmt.Sprintf("%d of %s %s", n, count(wanted, noun), state)
}

// Surplus says how many replicas are left over.
func Surplus(n int64) string {
	return "waiting for " + count(n, "surplus replica") + " to go"
}

func count(n int64, noun string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, noun)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
