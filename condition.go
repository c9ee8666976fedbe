package espalier

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"regexp"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/health"
	"github.com/espalier-dev/espalier/internal/content"
	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/message"
	"github.com/espalier-dev/espalier/internal/objectname"
	"github.com/espalier-dev/espalier/internal/statusfield"
	"github.com/espalier-dev/espalier/reconcilers"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The reasons of conditions that nodes report. The other reasons are those of [NotReady], and those of the API server
// (AlreadyExists, Forbidden, Invalid, NotFound).
const (
	// ReasonReady means that the child, or each child of a set, is ready.
	ReasonReady = "Ready"
	// ReasonNotDesired means that there is to be no child, or that there is nothing to read.
	ReasonNotDesired = "NotDesired"
	// ReasonInProgress means that a child is not ready yet. The message says what it waits for.
	ReasonInProgress = "InProgress"
	// ReasonFailed means that a child has failed, or that the function of a step returned an error.
	ReasonFailed = "Failed"
	// ReasonTerminating means that a child is being deleted. Another one is created when it is gone.
	ReasonTerminating = "Terminating"
	// ReasonUnknown means that the status of a child does not have the form that its kind should have.
	ReasonUnknown = "Unknown"
	// ReasonFound means that the object that a node reads exists.
	ReasonFound = "Found"
	// ReasonSucceeded means that the function of a step returned no error.
	ReasonSucceeded = "Succeeded"
	// ReasonNotReady takes the place of a reason of [NotReady] that is none for the API server.
	ReasonNotReady = "NotReady"
	// ReasonNotOurs means that an object that is to be absent is there, and stays: nothing proves that the resource
	// made it. The message says whose it is.
	ReasonNotOurs = "NotOurs"
	// ReasonBlocked means that the guard of a node says why it waits.
	ReasonBlocked = "Blocked"
	// ReasonWaiting means that the node waits for what the message names: a condition, values, or other nodes.
	ReasonWaiting = "Waiting"
)

// ReflectChild returns a function for the field ReflectChildStatusOnParent of a literal
// [reconcilers.ChildReconciler]. The function reports the child as [Child.Reports] does. Name the condition in the
// field Conditions of the literal too: a summary counts it then.
func ReflectChild[Type, ChildType client.Object](
	conditionType string,
) func(ctx context.Context, resource Type, child ChildType, err error) {
	return func(ctx context.Context, resource Type, child ChildType, err error) {
		condition := conditionOfError(err)
		if err == nil {
			condition = conditionOfChild(stateOf(ctx, child))
		}
		condition.Type = conditionType
		reconcilers.ReportCondition(ctx, resource, condition)
	}
}

// maxReason and validReason say what the API server accepts as a reason, see [metav1.Condition].
const maxReason = 1024

var validReason = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

func isReason(text string) bool { return len(text) <= maxReason && validReason.MatchString(text) }

// checkStatus returns an error if a node reports a condition that the status of the resource cannot have.
func checkStatus(ctx context.Context, kind, name, condition string) error {
	resource := reconcilers.RetrieveResourceType(ctx)
	if condition == "" || resource == nil || statusfield.CanHaveConditions(reflect.TypeOf(resource)) {
		return nil
	}
	return fmt.Errorf("%s %q reports the condition %s, so %T must have a status with Conditions of type "+
		"[]metav1.Condition", kind, name, condition, resource)
}

// maxMessage is the length of the longest message about an error, in bytes. It is that of the condition of a root.
const maxMessage = 1024

// conditionOfError returns the condition that says that err happened. It has no type.
func conditionOfError(err error) metav1.Condition {
	if err == nil {
		return metav1.Condition{}
	}
	// A text that is another one each time would wake the controller for ever.
	condition := metav1.Condition{Status: metav1.ConditionFalse, Message: message.StableWithin(err.Error(), maxMessage)}
	if notReady := asNotReady(err); notReady != nil {
		condition.Reason, condition.Message = ReasonNotReady, message.Printable(notReady.Message)
		if isReason(notReady.Reason) {
			condition.Reason = notReady.Reason
		}
		return condition
	}
	condition.Reason = cmp.Or(string(apierrs.ReasonForError(err)), ReasonFailed)
	return condition
}

// childState is how ready a child is. It has no status if there is no child.
type childState struct {
	health.Readiness
	// name is the kind and the name of the child.
	name string
	// reason is why the child is not ready, by a rule of the node. It is empty if there is none.
	reason string
}

// conditionOfChild returns the condition that says how one child is. It has no type.
func conditionOfChild(child childState) metav1.Condition {
	condition := metav1.Condition{Status: metav1.ConditionFalse, Message: child.name}
	if child.Message != "" {
		condition.Message += ": " + child.Message
	}
	switch child.Status {
	case "":
		condition.Status, condition.Reason = metav1.ConditionTrue, ReasonNotDesired
	case apis.ObjectCurrent:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, ReasonReady, child.Message
	case apis.ObjectInProgress:
		condition.Reason = ReasonInProgress
	case apis.ObjectFailed:
		condition.Reason = ReasonFailed
	case apis.ObjectTerminating:
		condition.Reason = ReasonTerminating
	default:
		condition.Status, condition.Reason = metav1.ConditionUnknown, ReasonUnknown
	}
	condition.Reason = cmp.Or(child.reason, condition.Reason)
	return condition
}

// conditionOfChildren returns the condition that says how the children of a set are: like the first that is not ready.
// It has no type.
func conditionOfChildren(children []childState) metav1.Condition {
	ready, first := 0, -1
	for i, child := range children {
		if child.Status == apis.ObjectCurrent {
			ready++
		} else if first < 0 {
			first = i
		}
	}
	switch {
	case len(children) == 0:
		return conditionOfChild(childState{})
	case first < 0:
		return conditionOfChild(children[0])
	}
	condition := conditionOfChild(children[first])
	condition.Message = fmt.Sprintf("%d of %d ready, %s", ready, len(children), condition.Message)
	return condition
}

// stateOf returns how ready a child is.
func stateOf[C client.Object](ctx context.Context, child C) childState {
	if gotype.IsNil(child) {
		return childState{}
	}
	kind := child.GetObjectKind().GroupVersionKind()
	if config, err := reconcilers.RetrieveConfig(ctx); err == nil && kind.Empty() {
		kind, _ = config.GroupVersionKindFor(child) // the rules for all kinds apply to a kind that is not known
	}
	return childState{
		name:      objectname.Text(kind.Kind, child.GetNamespace(), child.GetName()),
		Readiness: readinessOf(kind, child),
	}
}

// stateOf returns how ready an object of the node is.
func (s *Switches[Self, T, CT]) stateOf(ctx context.Context, object CT) childState {
	state := stateOf(ctx, object)
	if s.health != nil && object.GetDeletionTimestamp() == nil {
		found := s.health(object)
		state.Readiness, _ = readinessIn(found)
		if isNotReady(state) && isReason(found.Reason) {
			state.reason = found.Reason
		}
	}
	return state
}

// statesOf returns how ready the objects of an outcome are.
func (s *Switches[Self, T, CT]) statesOf(ctx context.Context, o *outcome[CT]) []childState {
	if o.states == nil {
		o.states = make([]childState, len(o.live))
		for i, object := range o.live {
			o.states[i] = s.stateOf(ctx, object)
		}
	}
	return o.states
}

func isNotReady(state childState) bool { return state.Status != apis.ObjectCurrent }

// conditionOf returns the condition that says what came of a node. It has no type.
func (s *Switches[Self, T, CT]) conditionOf(ctx context.Context, o *outcome[CT]) metav1.Condition {
	switch {
	case o.reflected != nil:
		return conditionOfError(o.reflected)
	case o.waits != nil:
		return *o.waits
	case len(o.live) == 0:
		return metav1.Condition{Status: metav1.ConditionTrue, Reason: cmp.Or(o.none, ReasonNotDesired)}
	case s.many:
		return conditionOfChildren(s.statesOf(ctx, o))
	}
	return conditionOfChild(s.statesOf(ctx, o)[0])
}

// readinessOf returns how ready a child is: as package health says. A child for which health only waits for somebody
// else, such as an Ingress without an address, is as kstatus says.
func readinessOf(kind schema.GroupVersionKind, child client.Object) health.Readiness {
	if child.GetDeletionTimestamp() != nil {
		return health.Readiness{Status: apis.ObjectTerminating, Message: message.Deletion(child.GetFinalizers())}
	}
	if health.Static(kind.GroupKind()) {
		return health.Readiness{Status: apis.ObjectCurrent}
	}
	object, err := content.Of(kind, child)
	if err != nil {
		return health.Readiness{Status: apis.ObjectUnknown, Message: err.Error()}
	}
	if readiness, ok := readinessIn(health.OfKind(kind, object)); ok {
		return readiness
	}
	return health.ReadinessOf(object)
}

// readinessIn returns how ready a child is that a rule has judged. It returns false for a state that says nothing of
// that, such as one of waiting for somebody else; the child is in progress then.
func readinessIn(found apis.Health) (readiness health.Readiness, ok bool) {
	readiness = health.Readiness{Status: apis.ObjectInProgress, Message: found.Message}
	switch {
	case health.Healthy(found.State):
		return health.Readiness{Status: apis.ObjectCurrent}, true
	case health.Failing(found.State):
		readiness.Status = apis.ObjectFailed
		return readiness, true
	}
	return readiness, found.State == apis.StateCreating || found.State == apis.StateUpdating ||
		found.State == apis.StateScaling
}

// conditions returns a list of the types that are not empty.
func conditions(conditionType string) []string {
	if conditionType == "" {
		return nil
	}
	return []string{conditionType}
}
