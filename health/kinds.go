package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/content"
	"github.com/espalier-dev/espalier/internal/kinds"
	"github.com/espalier-dev/espalier/internal/message"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// class says which words describe the objects of a kind.
type class int

const (
	// plain objects are as their status says.
	plain class = iota
	// alive objects run replicas.
	alive
	// pod is one replica.
	pod
	// operational objects wait for something else.
	operational
	// completable objects come to an end.
	completable
)

// words are the states of a class whose name does not depend on the object.
var words = map[class]struct{ healthy, failing apis.State }{
	plain:       {apis.StateHealthy, apis.StateFailing},
	alive:       {apis.StateHealthy, apis.StateFailing},
	pod:         {apis.StateHealthy, apis.StateFailing},
	operational: {apis.StateOperational, apis.StateOperationFailing},
	completable: {apis.StateCompleted, apis.StateTaskFailing},
}

// rule says how objects of a kind are.
type rule struct {
	class class
	// static is true if its objects are Current as soon as they exist, see [Static].
	static bool
	// ready says how ready an object is, if it differs from what kstatus says.
	ready func(s *subject, computed *kstatus.Result) Readiness
	// why says why an object is not Current by kstatus. Nil: its condition Ready says so, or kstatus.
	why func(s *subject, computed *kstatus.Result) string
	// judge gets what the readiness of an object says, and returns that or something better. Nil keeps it.
	judge func(s *subject, found finding) finding
}

// rules are the rules of kinds, for all that is said of an object but its suspension. Other kinds are plain.
var rules = map[schema.GroupKind]rule{
	kinds.Deployment:  {class: alive, why: (*subject).whyDeployment, judge: judgeWorkload},
	kinds.StatefulSet: {class: alive, why: (*subject).whyStatefulSet, judge: judgeWorkload},
	kinds.DaemonSet:   {class: alive, why: (*subject).whyDaemonSet, judge: judgeWorkload},
	kinds.ReplicaSet:  {class: alive, why: (*subject).whyReplicaSet, judge: judgeWorkload},
	kinds.Pod:         {class: pod, judge: judgePod}, // and podReadiness
	kinds.Job:         {class: completable, ready: (*subject).jobReadiness, judge: judgeJob},
	kinds.Service:     {class: operational, why: whyService, judge: judgeService},
	kinds.Ingress:     {class: operational, judge: judgeIngress},
	kinds.Gateway:     {class: operational, ready: (*subject).gatewayReadiness, judge: judgeGateway},
	kinds.HTTPRoute:   {class: operational, ready: (*subject).gatewayReadiness, judge: judgeGateway},
	kinds.GRPCRoute:   {class: operational, ready: (*subject).gatewayReadiness, judge: judgeGateway},
	kinds.PersistentVolumeClaim: {
		class: operational, ready: (*subject).claimReadiness, judge: judgePersistentVolumeClaim,
	},
	kinds.PersistentVolume:         {class: operational, judge: judgePersistentVolume},
	kinds.HorizontalPodAutoscaler:  {class: operational, judge: judgeAutoscaler},
	kinds.CustomResourceDefinition: {class: operational, ready: (*subject).definitionReadiness},
	kinds.APIService:               {class: operational, ready: (*subject).apiServiceReadiness},
	kinds.Namespace:                {judge: judgeNamespace},

	kinds.CronJob:            {class: operational, static: true},
	kinds.ConfigMap:          {static: true},
	kinds.Secret:             {static: true},
	{Kind: "ServiceAccount"}: {static: true},
	{Kind: "LimitRange"}:     {static: true},
	{Kind: "ResourceQuota"}:  {static: true},
	{Kind: "Endpoints"}:      {static: true},
	{Kind: "PodTemplate"}:    {static: true},

	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:               {static: true},
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:        {static: true},
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:        {static: true},
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: {static: true},

	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:     {static: true},
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}:   {static: true},
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicyBinding"}: {static: true},

	{Group: "coordination.k8s.io", Kind: "Lease"}:         {static: true},
	{Group: "discovery.k8s.io", Kind: "EndpointSlice"}:    {static: true},
	{Group: "networking.k8s.io", Kind: "IngressClass"}:    {static: true},
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:   {static: true},
	{Group: "node.k8s.io", Kind: "RuntimeClass"}:          {static: true},
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:   {static: true},
	{Group: "storage.k8s.io", Kind: "CSIDriver"}:          {static: true},
	{Group: "storage.k8s.io", Kind: "StorageClass"}:       {static: true},
	{Group: "storage.k8s.io", Kind: "CSIStorageCapacity"}: {static: true},
}

// jobReadiness has rules of its own, because kstatus says that a job is current once it has started, and that a
// suspended one may never be.
func (s *subject) jobReadiness(computed *kstatus.Result) Readiness {
	if s.has("Complete", "True") {
		return current
	}
	if computed.Status == kstatus.FailedStatus {
		c, _ := s.condition("Failed")
		return failed(message.WithReasons("failed", c.Reason, c.Message))
	}
	if content.Is(s.object, "spec", "suspend") {
		return current
	}
	if wanted := s.number(-1, "spec", "completions"); wanted >= 0 {
		return inProgress(fmt.Sprintf("%d of %s", s.number(0, "status", "succeeded"), count(wanted, "completion")))
	}
	return inProgress("not completed yet")
}

// judgeJob says that a Job fails as soon as its failure is certain, and that a suspended one is not done.
func judgeJob(s *subject, found finding) finding {
	if c, ok := s.condition("FailureTarget"); ok && c.Status == "True" && found.level == waiting {
		found.level, found.message = failing, "fails: "+c.Reason
		return found
	}
	c, _ := s.condition("Complete")
	if found.level == well && c.Status != "True" {
		return finding{level: waiting, reason: ReasonSuspended, message: "is suspended"}
	}
	return found
}

func whyService(*subject, *kstatus.Result) string { return "waiting for an address" }

func judgeService(s *subject, found finding) finding {
	if s.text("spec", "type") != "LoadBalancer" {
		return found
	}
	return waitForAddress(s, found)
}

func judgeIngress(s *subject, found finding) finding { return waitForAddress(s, found) }

// waitForAddress demands that a load balancer has an address.
func waitForAddress(s *subject, found finding) finding {
	if found.level != well {
		return found
	}
	for _, item := range content.List(s.object, "status", "loadBalancer", "ingress") {
		address, _ := item.(map[string]any)
		for _, field := range []string{"ip", "hostname"} {
			if text, _ := address[field].(string); text != "" {
				return found
			}
		}
	}
	return finding{level: waiting, reason: "NoAddress", message: "waiting for an address"}
}

// gatewayReadiness says that a Gateway or a route of one is volatile. It waits for a controller, a Gateway or a
// backend, which may be deployed after it.
func (s *subject) gatewayReadiness(*kstatus.Result) Readiness {
	found := s.attachment()
	switch found.level {
	case well:
		return current
	case failing:
		return failed(found.message)
	}
	return Readiness{Status: apis.ObjectInProgress, Message: found.message, Volatile: true}
}

func judgeGateway(s *subject, found finding) finding {
	if found.level != well && found.reason == "" {
		found.reason = s.attachment().reason
	}
	return found
}

// attachment finds out whether controllers serve a Gateway, or a route of one. The status of a route has an entry for
// each parent that knows it.
func (s *subject) attachment() finding {
	if s.kind == kinds.Gateway {
		return s.unmet(s.conditions, "Accepted", "Programmed")
	}
	parents := content.List(s.object, "status", "parents")
	for _, item := range parents {
		parent, _ := item.(map[string]any)
		conditions := content.ConditionsOf(map[string]any{"status": parent})
		if found := s.unmet(conditions, "Accepted", "ResolvedRefs"); found.level != well {
			found.message = parentName(parent) + ": " + found.message
			return found
		}
	}
	if missing := len(content.List(s.object, "spec", "parentRefs")) - len(parents); missing > 0 {
		return finding{level: waiting, message: "waiting for " + count(int64(missing), "Gateway")}
	}
	return finding{}
}

// unmet finds the first of the names whose condition is not True. A condition of an earlier generation says nothing.
func (s *subject) unmet(conditions []content.Condition, names ...string) finding {
	for _, name := range names {
		i := slices.IndexFunc(conditions, func(c content.Condition) bool { return c.Type == name })
		if i < 0 || s.outdates(conditions[i]) {
			return finding{level: waiting, message: "waiting until " + name + " is True"}
		}
		c := conditions[i]
		if c.Status == "True" {
			continue
		}
		found := finding{level: waiting, reason: c.Reason, message: c.String()}
		if name == "Accepted" && c.Status == "False" && c.Reason != "Pending" {
			found.level = failing
		}
		return found
	}
	return finding{}
}

// outdates reports whether a condition is known to be about an earlier generation of the object.
func (s *subject) outdates(c content.Condition) bool {
	observed, known := c.ObservedGeneration.(int64)
	return known && observed < s.number(0, "metadata", "generation")
}

// parentName names what a route belongs to, as in "Gateway edge/web".
func parentName(parent map[string]any) string {
	text := func(field string) string {
		text, _ := content.At(parent, "parentRef", field).(string)
		return text
	}
	name := text("name")
	if namespace := text("namespace"); namespace != "" {
		name = namespace + "/" + name
	}
	return strings.TrimSpace(cmp.Or(text("kind"), "Gateway") + " " + name)
}

// claimReadiness says that a claim is volatile. A claim that is bound when its first consumer exists looks like
// one that is about to be bound. To wait for it before its consumer is written would be to wait for ever. So no wave
// waits for a pending claim.
func (s *subject) claimReadiness(computed *kstatus.Result) Readiness {
	if computed.Status == kstatus.CurrentStatus {
		return current
	}
	switch phase := s.text("status", "phase"); phase {
	case "", "Pending":
		return Readiness{Status: apis.ObjectInProgress, Message: "waiting to be bound", Volatile: true}
	case "Lost":
		return failed("has lost its volume")
	default:
		return inProgress("is not bound, but " + phase)
	}
}

func judgePersistentVolumeClaim(s *subject, found finding) finding {
	if found.level != well {
		found.reason = s.phase()
	}
	return found
}

func judgePersistentVolume(s *subject, found finding) finding {
	if found.level != well {
		return found
	}
	switch phase := s.phase(); phase {
	case "Available", "Bound":
		return found
	case "Released", "Failed":
		return finding{level: failing, reason: phase, message: "is in the phase " + phase}
	default:
		return finding{level: waiting, reason: phase, message: "is not available yet"}
	}
}

// judgeAutoscaler takes no message of a condition, because such a message may name another pod each time.
func judgeAutoscaler(s *subject, found finding) finding {
	if found.level != well {
		return found
	}
	if c, ok := s.condition("AbleToScale"); ok && c.Status == "False" {
		return finding{level: failing, reason: c.Reason, message: "cannot scale: " + c.Reason}
	}
	c, ok := s.condition("ScalingActive")
	switch {
	case ok && c.Status == "True":
		return found
	case !ok && s.object.GroupVersionKind().Version == "v1":
		// That version has no conditions.
		return found
	case c.Status == "False" && c.Reason != "ScalingDisabled":
		return finding{level: failing, reason: c.Reason, message: "does not scale: " + c.Reason}
	case c.Status == "False":
		// Somebody scaled the target to zero, as a suspension does.
		return finding{level: waiting, reason: c.Reason, message: "does not scale, because its target has no replicas"}
	}
	return finding{level: waiting, reason: c.Reason, message: "does not scale yet"}
}

// definitionReadiness has rules of its own, because the result of kstatus depends on the order of the conditions.
func (s *subject) definitionReadiness(computed *kstatus.Result) Readiness {
	if c, ok := s.condition("NamesAccepted"); ok && c.Status == "False" {
		return failed(message.WithReasons("its names are not accepted", c.Reason, c.Message))
	}
	if computed.Status == kstatus.FailedStatus {
		c, _ := s.condition("Established")
		return failed(message.WithReasons("not established", c.Reason, c.Message))
	}
	if s.has("Established", "True") && s.has("NamesAccepted", "True") {
		return current
	}
	return inProgress("not established yet")
}

func (s *subject) apiServiceReadiness(computed *kstatus.Result) Readiness {
	if c, ok := s.condition("Available"); !ok || c.Status != "True" {
		return inProgress(message.WithReasons("not available", c.Reason))
	}
	return s.byKstatus(computed, nil)
}

func judgeNamespace(s *subject, found finding) finding {
	if found.level == well && s.phase() == "Terminating" {
		return finding{level: waiting, reason: ReasonTerminating, message: "is being deleted"}
	}
	return found
}
