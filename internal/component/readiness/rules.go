package readiness

import (
	"fmt"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/apis"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
)

// The kinds that have a rule or words of their own.
const (
	kindPod         = "Pod"
	kindService     = "Service"
	kindClaim       = "PersistentVolumeClaim"
	kindDeployment  = "apps/Deployment"
	kindReplicaSet  = "apps/ReplicaSet"
	kindStatefulSet = "apps/StatefulSet"
	kindDaemonSet   = "apps/DaemonSet"
	kindJob         = "batch/Job"
	kindCRD         = "apiextensions.k8s.io/CustomResourceDefinition"
	kindAPIService  = "apiregistration.k8s.io/APIService"
)

// general decides by what all kinds have in common. These are the rules of kstatus, which would not tell which of them applied.
func (s *subject) general() (Result, bool) {
	if s.text("metadata", "deletionTimestamp") != "" {
		return Result{Status: apis.ObjectTerminating, Message: "is being deleted"}, true
	}
	generation, known := field(s.object.Object, "metadata", "generation").(int64)
	observed, seen := field(s.object.Object, "status", "observedGeneration").(int64)
	if known && seen && observed != generation {
		if observed == neverObserved {
			return inProgress(fmt.Sprintf("has not been observed yet (generation %d)", generation)), true
		}
		return inProgress(fmt.Sprintf("has not been observed yet (generation %d, observed %d)", generation, observed)), true
	}
	// Whatever their order in the object: as long as it is tried, it has not failed.
	for _, c := range s.conditions {
		if c.name == string(status.ConditionReconciling) && c.status == "True" {
			return inProgress(because(c.name, c.reason, c.message)), true
		}
	}
	for _, c := range s.conditions {
		if c.name == string(status.ConditionStalled) && c.status == "True" {
			return failed(because(c.name, c.reason, c.message)), true
		}
	}
	return Result{}, false
}

// special decides where kstatus is wrong, or does not know the kind.
func (s *subject) special(computed *status.Result) (Result, bool) {
	switch s.kind {
	case kindJob:
		return s.job(computed), true
	case kindClaim:
		return s.claim(computed), true
	case kindCRD:
		return s.definition(computed), true
	case kindAPIService:
		if c, ok := s.condition("Available"); !ok || c.status != "True" {
			return inProgress(because("not available", c.reason)), true
		}
	}
	return Result{}, false
}

// job: to kstatus a job is current once it has started, and a suspended one may never be.
func (s *subject) job(computed *status.Result) Result {
	if s.is("Complete", "True") {
		return current
	}
	if computed.Status == status.FailedStatus {
		c, _ := s.condition("Failed")
		return failed(because("failed", c.reason, c.message))
	}
	if suspended, _ := field(s.object.Object, "spec", "suspend").(bool); suspended {
		return current
	}
	if wanted := s.number(-1, "spec", "completions"); wanted >= 0 {
		return inProgress(fmt.Sprintf("%d of %s", s.number(0, "status", "succeeded"), count(wanted, "completion")))
	}
	return inProgress("not completed yet")
}

// claim: a claim whose storage class binds it to its first consumer cannot be told from one that is about to be bound. To wait for
// it before its consumer is written would be to wait for ever, so none that is still pending holds up a wave.
func (s *subject) claim(computed *status.Result) Result {
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

// definition: to kstatus, what a CustomResourceDefinition is depends on the order of its conditions.
func (s *subject) definition(computed *status.Result) Result {
	if c, ok := s.condition("NamesAccepted"); ok && c.status == "False" {
		return failed(because("its names are not accepted", c.reason, c.message))
	}
	if computed.Status == status.FailedStatus {
		c, _ := s.condition("Established")
		return failed(because("not established", c.reason, c.message))
	}
	if s.is("Established", "True") && s.is("NamesAccepted", "True") {
		return current
	}
	return inProgress("not established yet")
}

// pod: kstatus takes a pod that has failed for current, looks at the clock, and panics at a malformed status.
func (s *subject) pod() Result {
	phase := s.text("status", "phase")
	if phase == "Succeeded" {
		return current
	}
	if phase == "Failed" {
		return failed(because("failed", s.text("status", "reason"), s.text("status", "message")))
	}
	if phase == "Running" && s.is("Ready", "True") {
		return current
	}
	if crashing := s.crashing(); len(crashing) > 0 {
		return failed("crashes again and again: " + strings.Join(crashing, ", "))
	}
	switch phase {
	case "Running":
		return inProgress("running, but not ready")
	case "Pending", "":
		if c, ok := s.condition("PodScheduled"); ok && c.status == "False" {
			return inProgress(because("not scheduled", c.reason))
		}
		return inProgress("not running yet")
	default:
		return unknown("is in the unknown phase " + phase)
	}
}

// crashing returns the names of the containers that are restarted after a crash, sorted.
func (s *subject) crashing() []string {
	var names []string
	for _, list := range []string{"initContainerStatuses", "containerStatuses"} {
		containers, _ := field(s.object.Object, "status", list).([]any)
		for _, item := range containers {
			container, _ := item.(map[string]any)
			if field(container, "state", "waiting", "reason") == "CrashLoopBackOff" {
				name, _ := container["name"].(string)
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}
