package feature

import (
	"cmp"
	"context"
	"fmt"
	"regexp"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/health"
	"github.com/espalier-dev/espalier/internal/content"
	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/message"
	"github.com/espalier-dev/espalier/reconcilers"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DependsOn is met if a condition of the same resource is True, such as that of another feature. A condition that was
// observed for an older generation of the resource does not count.
//
// The set-up of a root refuses a condition that can never be True: a condition of the root itself, one that no node of
// the tree describes, and one that waits for this feature in turn. For a condition that a function of yours sets, or
// another program, write a Prerequisite with a Check of its own.
func DependsOn[Type client.Object](conditionType string) Prerequisite[Type] {
	return Prerequisite[Type]{condition: conditionType, Check: func(_ context.Context, resource Type) (string, error) {
		condition := reconcilers.GetCondition(resource, conditionType)
		return unmetCondition(condition, conditionType, resource.GetGeneration()), nil
	}}
}

// unmetCondition says why a condition does not meet a prerequisite.
func unmetCondition(condition *metav1.Condition, conditionType string, generation int64) string {
	switch {
	case condition == nil:
		return fmt.Sprintf("waiting for the condition %s", conditionType)
	case !apis.ConditionIsTrue(condition):
		waiting := fmt.Sprintf("waiting for the condition %s, which is %s", conditionType, condition.Status)
		return message.WithReasons(waiting, why(condition.Message, condition.Reason))
	case condition.ObservedGeneration != 0 && condition.ObservedGeneration < generation:
		return fmt.Sprintf("waiting for the condition %s, which is about generation %d", conditionType,
			condition.ObservedGeneration)
	}
	return ""
}

// ownText is in each text that is made here.
var ownText = regexp.MustCompile("waiting for (the condition |.*, which )")

// why returns the text of what is waited for. A text that was made here gives way to the reason: two that wait for each
// other, or for the same, would repeat each other, and the text would grow with each request.
func why(text, reason string) string {
	if ownText.MatchString(text) {
		return reason
	}
	return cmp.Or(text, reason)
}

// DependsOnObject is met if a condition of another object is True. If conditionType is empty, the object has to be
// healthy by the rules of package health. The object has the type of sample, and the name that key returns. An empty
// name means that there is nothing to wait for. The object is tracked, so its events bring the resource back.
func DependsOnObject[Type client.Object](
	sample client.Object, key func(resource Type) types.NamespacedName, conditionType string,
) Prerequisite[Type] {
	check := func(ctx context.Context, resource Type) (string, error) {
		name := key(resource)
		if name.Name == "" {
			return "", nil
		}
		config, err := reconcilers.RetrieveConfig(ctx)
		if err != nil {
			return "", err
		}
		object := sample.DeepCopyObject().(client.Object)
		kind, _ := config.GroupVersionKindFor(object) // the message has no kind if it is not known
		described := objectName(kind.Kind, name.Namespace, name.Name)
		switch err := config.TrackAndGet(ctx, name, object); {
		case apierrs.IsNotFound(err):
			return fmt.Sprintf("waiting for %s, which does not exist", described), nil
		case apierrs.ReasonForError(err) == reconcilers.StatusReasonKindNotServed:
			return fmt.Sprintf("waiting for %s: %v", described, err), nil
		case err != nil:
			return "", fmt.Errorf("unable to read %s: %w", described, err)
		}
		if conditionType != "" {
			return unmetConditionOf(object, described, conditionType)
		}
		h := healthOf(object, kind)
		if health.Healthy(h.State) {
			return "", nil
		}
		waiting := fmt.Sprintf("waiting for %s, which is %s", described, h.State)
		return message.WithReasons(waiting, why(h.Message, h.Reason)), nil
	}
	uses := reconcilers.Access{Object: sample, Verbs: []string{"get", "list", "watch"}, Optional: true}
	p := Prerequisite[Type]{Check: check, Uses: []reconcilers.Access{uses}}
	if gotype.IsNil(sample) || key == nil {
		return Prerequisite[Type]{}
	}
	return p
}

// unmetConditionOf says why a condition of another object does not meet a prerequisite. Conditions of any type that has
// the members of a condition count.
func unmetConditionOf(object client.Object, described, conditionType string) (string, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return "", fmt.Errorf("unable to read the conditions of %s: %w", described, err)
	}
	for _, c := range content.ConditionsOf(fields) {
		if c.Type != conditionType {
			continue
		}
		observed, _ := c.ObservedGeneration.(int64)
		condition := &metav1.Condition{
			Type: c.Type, Status: metav1.ConditionStatus(c.Status), ObservedGeneration: observed,
			Reason: c.Reason, Message: message.Stable(c.Message),
		}
		unmet := unmetCondition(condition, conditionType, object.GetGeneration())
		return withObject(unmet, described), nil
	}
	return withObject(unmetCondition(nil, conditionType, 0), described), nil
}

func withObject(unmet, described string) string {
	if unmet == "" {
		return ""
	}
	return described + ": " + unmet
}
