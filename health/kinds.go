package health

import (
	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/content"
	"github.com/espalier-dev/espalier/internal/kinds"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// class says which words describe the objects of a kind.
type class int

const (
	// static objects are as their status says.
	static class = iota
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
	static:      {apis.StateHealthy, apis.StateFailing},
	alive:       {apis.StateHealthy, apis.StateFailing},
	pod:         {apis.StateHealthy, apis.StateFailing},
	operational: {apis.StateOperational, apis.StateOperationFailing},
	completable: {apis.StateCompleted, apis.StateTaskFailing},
}

// rule says how objects of a kind are. Its judge gets what the status says by the rules for all kinds, and returns that
// or something better. A rule without a judge keeps it.
type rule struct {
	class class
	judge func(s *subject, found finding) finding
}

// rules are the rules of kinds. Other kinds are static and have no judge.
var rules = map[schema.GroupKind]rule{
	kinds.Deployment:               {alive, judgeWorkload},
	kinds.StatefulSet:              {alive, judgeWorkload},
	kinds.DaemonSet:                {alive, judgeWorkload},
	kinds.ReplicaSet:               {alive, judgeWorkload},
	kinds.Pod:                      {pod, judgePod},
	kinds.Job:                      {completable, judgeJob},
	kinds.CronJob:                  {operational, nil},
	kinds.Service:                  {operational, judgeService},
	kinds.Ingress:                  {operational, judgeIngress},
	kinds.PersistentVolumeClaim:    {operational, judgePersistentVolumeClaim},
	kinds.PersistentVolume:         {operational, judgePersistentVolume},
	kinds.HorizontalPodAutoscaler:  {operational, judgeAutoscaler},
	kinds.CustomResourceDefinition: {operational, nil},
	kinds.APIService:               {operational, nil},
	kinds.Namespace:                {static, judgeNamespace},
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

func judgeService(s *subject, found finding) finding {
	if content.Text(s.object, "spec", "type") != "LoadBalancer" {
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

func judgeNamespace(s *subject, found finding) finding {
	if found.level == well && s.phase() == "Terminating" {
		return finding{level: waiting, reason: ReasonTerminating, message: "is being deleted"}
	}
	return found
}
