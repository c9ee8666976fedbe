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
	// judge returns the verdict about an object to which no rule for all kinds applies. It gets what kstatus says, but
	// not for a Pod. Nil: as kstatus says.
	judge func(s *subject, v verdict) verdict
}

// rules are the rules of kinds, for all that is said of an object but its suspension. Other kinds are plain.
var rules = map[schema.GroupKind]rule{
	kinds.Deployment:  {class: alive, judge: judgeWorkload},
	kinds.StatefulSet: {class: alive, judge: judgeWorkload},
	kinds.DaemonSet:   {class: alive, judge: judgeWorkload},
	kinds.ReplicaSet:  {class: alive, judge: judgeWorkload},
	kinds.Pod:         {class: pod, judge: judgePod},
	kinds.Job:         {class: completable, judge: judgeJob},

	kinds.Service:                  {class: operational, judge: judgeService},
	kinds.Ingress:                  {class: operational, judge: judgeIngress},
	kinds.Gateway:                  {class: operational, judge: judgeGateway},
	kinds.HTTPRoute:                {class: operational, judge: judgeGateway},
	kinds.GRPCRoute:                {class: operational, judge: judgeGateway},
	kinds.PersistentVolumeClaim:    {class: operational, judge: judgePersistentVolumeClaim},
	kinds.PersistentVolume:         {class: operational, judge: judgePersistentVolume},
	kinds.HorizontalPodAutoscaler:  {class: operational, judge: judgeAutoscaler},
	kinds.CustomResourceDefinition: {class: operational, judge: judgeDefinition},
	kinds.APIService:               {class: operational, judge: judgeAPIService},
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

// judgeJob differs from kstatus, which says that a Job is Current once it has started, and that a suspended one may
// never be. A suspended Job is not done, but no wave waits for it. A Job fails as soon as its failure is certain; the
// waves see that when its pods are gone.
func judgeJob(s *subject, v verdict) verdict {
	switch {
	case s.has("Complete", "True"):
		return current
	case v.status == apis.ObjectFailed:
		c, _ := s.condition("Failed")
		return failed(message.WithReasons("failed", c.Reason, c.Message))
	case content.Is(s.object, "spec", "suspend"):
		return inProgress("is suspended").because(ReasonSuspended).toWaves(current)
	}
	v = inProgress("not completed yet")
	if wanted := s.number(-1, "spec", "completions"); wanted >= 0 {
		v.message = fmt.Sprintf("%d of %s", s.number(0, "status", "succeeded"), count(wanted, "completion"))
	}
	if c, ok := s.condition("FailureTarget"); ok && c.Status == "True" {
		return failed("fails: " + c.Reason).toWaves(v)
	}
	return v
}

func judgeService(s *subject, v verdict) verdict {
	switch {
	case v.status != apis.ObjectCurrent:
		v.message = "waiting for an address"
	case s.text("spec", "type") == "LoadBalancer":
		return judgeIngress(s, v)
	}
	return v
}

// judgeIngress demands that a load balancer has an address. No wave waits for that.
func judgeIngress(s *subject, _ verdict) verdict {
	for _, item := range content.List(s.object, "status", "loadBalancer", "ingress") {
		address, _ := item.(map[string]any)
		for _, field := range []string{"ip", "hostname"} {
			if text, _ := address[field].(string); text != "" {
				return current
			}
		}
	}
	return inProgress("waiting for an address").because("NoAddress").toWaves(current)
}

// judgeGateway says that a Gateway or a route of one is volatile while it waits. It waits for a controller, a Gateway
// or a backend, which may be deployed after it.
func judgeGateway(s *subject, _ verdict) verdict {
	v := s.attachment()
	return v.because(cmp.Or(s.reason(), v.reason)).volatile()
}

// attachment finds out whether controllers serve a Gateway, or a route of one. The status of a route has an entry for
// each parent that knows it.
func (s *subject) attachment() verdict {
	if s.kind == kinds.Gateway {
		return s.unmet(s.conditions, "Accepted", "Programmed")
	}
	parents := content.List(s.object, "status", "parents")
	for _, item := range parents {
		parent, _ := item.(map[string]any)
		conditions := content.ConditionsOf(map[string]any{"status": parent})
		if v := s.unmet(conditions, "Accepted", "ResolvedRefs"); v.status != apis.ObjectCurrent {
			v.message = parentName(parent) + ": " + v.message
			return v
		}
	}
	if missing := len(content.List(s.object, "spec", "parentRefs")) - len(parents); missing > 0 {
		return inProgress("waiting for " + count(int64(missing), "Gateway"))
	}
	return current
}

// unmet finds the first of the names whose condition is not True. A condition of an earlier generation says nothing.
func (s *subject) unmet(conditions []content.Condition, names ...string) verdict {
	for _, name := range names {
		i := slices.IndexFunc(conditions, func(c content.Condition) bool { return c.Type == name })
		if i < 0 || s.outdates(conditions[i]) {
			return inProgress("waiting until " + name + " is True")
		}
		c := conditions[i]
		if c.Status == "True" {
			continue
		}
		if name == "Accepted" && c.Status == "False" && c.Reason != "Pending" {
			return failed(c.String()).because(c.Reason)
		}
		return inProgress(c.String()).because(c.Reason)
	}
	return current
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

// judgePersistentVolumeClaim says that a pending claim is volatile. A claim that is bound when its first consumer
// exists looks like one that is about to be bound. To wait for it before its consumer is written would be to wait for
// ever.
func judgePersistentVolumeClaim(s *subject, v verdict) verdict {
	phase := s.phase()
	switch {
	case v.status == apis.ObjectCurrent:
		return v
	case phase == "", phase == "Pending":
		v = inProgress("waiting to be bound").volatile()
	case phase == "Lost":
		v = failed("has lost its volume")
	default:
		v = inProgress("is not bound, but " + phase)
	}
	return v.because(phase)
}

// judgePersistentVolume demands more than kstatus. No wave waits for that.
func judgePersistentVolume(s *subject, _ verdict) verdict {
	switch phase := s.phase(); phase {
	case "Available", "Bound":
		return current
	case "Released", "Failed":
		return failed("is in the phase " + phase).because(phase).toWaves(current)
	default:
		return inProgress("is not available yet").because(phase).toWaves(current)
	}
}

// judgeAutoscaler demands more than kstatus. No wave waits for that. It takes no message of a condition, because such a
// message may name another pod each time.
func judgeAutoscaler(s *subject, _ verdict) verdict {
	if c, ok := s.condition("AbleToScale"); ok && c.Status == "False" {
		return failed("cannot scale: " + c.Reason).because(c.Reason).toWaves(current)
	}
	c, ok := s.condition("ScalingActive")
	var v verdict
	switch {
	case ok && c.Status == "True":
		return current
	case !ok && s.object.GroupVersionKind().Version == "v1":
		// That version has no conditions.
		return current
	case c.Status == "False" && c.Reason != "ScalingDisabled":
		v = failed("does not scale: " + c.Reason)
	case c.Status == "False":
		// Somebody scaled the target to zero, as a suspension does.
		v = inProgress("does not scale, because its target has no replicas")
	default:
		v = inProgress("does not scale yet")
	}
	return v.because(c.Reason).toWaves(current)
}

// judgeDefinition differs from kstatus, whose result depends on the order of the conditions.
func judgeDefinition(s *subject, v verdict) verdict {
	if c, ok := s.condition("NamesAccepted"); ok && c.Status == "False" {
		return failed(message.WithReasons("its names are not accepted", c.Reason, c.Message))
	}
	if v.status == apis.ObjectFailed {
		c, _ := s.condition("Established")
		return failed(message.WithReasons("not established", c.Reason, c.Message))
	}
	if s.has("Established", "True") && s.has("NamesAccepted", "True") {
		return current
	}
	return inProgress("not established yet")
}

func judgeAPIService(s *subject, v verdict) verdict {
	if c, ok := s.condition("Available"); !ok || c.Status != "True" {
		return inProgress(message.WithReasons("not available", c.Reason))
	}
	return v
}

func judgeNamespace(s *subject, v verdict) verdict {
	if s.phase() == "Terminating" {
		return terminating("is being deleted")
	}
	return v
}
