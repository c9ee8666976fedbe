package health

import (
	"fmt"
	"reflect"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/content"
	"github.com/espalier-dev/espalier/internal/kinds"
	"github.com/espalier-dev/espalier/internal/message"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Suspension says how objects of one kind are suspended. An object without a rule is left alone, and counts as
// suspended.
type Suspension struct {
	// Suspend changes a desired object so that it does not run. It is also called with a copy of the object in the
	// cluster, to see whether that is changed already: a second call must change nothing. Nil changes nothing.
	Suspend func(desired *unstructured.Unstructured) error
	// Delete means that the object is deleted while it is to be suspended. Suspend is not called then.
	Delete bool
	// Suspended says whether the object does not run any more, and what it waits for otherwise. Nil: it stops at once.
	Suspended func(live *unstructured.Unstructured) (suspended bool, message string)
}

// Suspensions are the rules of kinds that are not known here, or that are to be suspended in another way. Nil has none.
//
// Without a rule here, a Deployment, a StatefulSet and a ReplicaSet are scaled to zero, a Job and a CronJob are
// suspended, and a DaemonSet, a Pod and a HorizontalPodAutoscaler are deleted. Objects of all other kinds are left
// alone, and count as suspended.
type Suspensions map[schema.GroupKind]Suspension

// builtInSuspensions are the rules of kinds that are known here.
var builtInSuspensions = Suspensions{
	kinds.Deployment:              {Suspend: SetField(0, "spec", "replicas"), Suspended: withoutReplicas},
	kinds.StatefulSet:             {Suspend: SetField(0, "spec", "replicas"), Suspended: withoutReplicas},
	kinds.ReplicaSet:              {Suspend: SetField(0, "spec", "replicas"), Suspended: withoutReplicas},
	kinds.Job:                     {Suspend: SetField(true, "spec", "suspend"), Suspended: withoutPods},
	kinds.CronJob:                 {Suspend: SetField(true, "spec", "suspend"), Suspended: withoutJobs},
	kinds.DaemonSet:               {Delete: true},
	kinds.Pod:                     {Delete: true},
	kinds.HorizontalPodAutoscaler: {Delete: true}, // it would scale its target up again
}

// rule returns the rule of a kind.
func (r Suspensions) rule(kind schema.GroupKind) Suspension {
	if rule, ok := r[kind]; ok {
		return rule
	}
	return builtInSuspensions[kind]
}

// Suspend changes a desired object so that it does not run. If it returns true, the object has to be deleted, and is
// not changed. The object has its kind, or is of a Go type of a built-in kind.
func (r Suspensions) Suspend(desired client.Object) (remove bool, err error) {
	kind := content.KindOf(desired)
	rule := r.rule(kind.GroupKind())
	if rule.Delete || rule.Suspend == nil {
		return rule.Delete, nil
	}
	if u, ok := desired.(*unstructured.Unstructured); ok {
		return false, suspendError(kind, u, rule.Suspend(u))
	}
	u, err := content.Of(kind, desired)
	if err == nil {
		err = rule.Suspend(u)
	}
	if err == nil {
		own := desired.GetObjectKind().GroupVersionKind()
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, desired)
		desired.GetObjectKind().SetGroupVersionKind(own)
	}
	return false, suspendError(kind, desired, err)
}

func suspendError(kind schema.GroupVersionKind, object client.Object, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %q cannot be suspended: %w", kind.Kind, object.GetName(), err)
}

// Of says how a live object that is to be suspended is: Suspended, Suspending or PendingSuspension. The last one means
// that the object in the cluster was not told to suspend yet. It does not change the object. If a rule cannot be
// applied to the object, the state is Unknown.
func (r Suspensions) Of(live client.Object) apis.Health {
	kind := content.KindOf(live)
	rule := r.rule(kind.GroupKind())
	u, err := content.Of(kind, live)
	if err != nil {
		return suspended(apis.StateUnknown, err.Error())
	}
	if rule.Delete {
		if u.GetDeletionTimestamp() != nil {
			return suspended(apis.StateSuspending, "is being deleted")
		}
		return suspended(apis.StatePendingSuspension, "is to be deleted")
	}
	if _, custom := r[kind.GroupKind()]; !custom && kind.GroupKind() == kinds.Job && finished(u) {
		return suspended(apis.StateSuspended, "")
	}
	told, err := rule.told(u)
	if err != nil {
		return suspended(apis.StateUnknown, err.Error())
	}
	if !told {
		return suspended(apis.StatePendingSuspension, "was not told to suspend yet")
	}
	if rule.Suspended == nil {
		return suspended(apis.StateSuspended, "")
	}
	if done, message := rule.Suspended(u); !done {
		return suspended(apis.StateSuspending, message)
	}
	return suspended(apis.StateSuspended, "")
}

func suspended(state apis.State, text string) apis.Health {
	return apis.Health{State: state, Message: message.Stable(text)}
}

// told reports whether the object is as Suspend would make it.
func (r Suspension) told(live *unstructured.Unstructured) (bool, error) {
	if r.Suspend == nil {
		return true, nil
	}
	suspended := live.DeepCopy()
	if err := r.Suspend(suspended); err != nil {
		return false, err
	}
	return reflect.DeepEqual(live.Object, suspended.Object), nil
}
