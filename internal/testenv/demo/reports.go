package demo

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/apis"
)

// readyReason is the reason of the condition Ready of what is ready.
const readyReason = "Ready"

// Reports holds when the condition of the resource was observed at its current generation, is as given, and its message
// has all of these parts. Said returns it then.
func (s *Scenario) Reports(
	resource client.Object, condition string, status metav1.ConditionStatus, reason string, parts ...string,
) Condition {
	return func(ctx context.Context) error {
		found, err := s.status(ctx, resource)
		if err != nil {
			return err
		}
		c := meta.FindStatusCondition(found.Status.Conditions, condition)
		switch {
		case c == nil:
			return fmt.Errorf("%s has no condition %s", resource.GetName(), condition)
		case c.ObservedGeneration != found.Generation:
			return fmt.Errorf("%s of %s was observed at generation %d of %d",
				condition, resource.GetName(), c.ObservedGeneration, found.Generation)
		}
		s.said = fmt.Sprintf("%s=%s, %s: %s", c.Type, c.Status, c.Reason, c.Message)
		for _, part := range parts {
			if !strings.Contains(c.Message, part) {
				return fmt.Errorf("there is nothing of %q in %s", part, s.said)
			}
		}
		if c.Status != status || c.Reason != reason {
			return fmt.Errorf("the condition of %s is %s", resource.GetName(), s.said)
		}
		return nil
	}
}

// IsReady holds when the condition Ready of the resource is True, and the resource, if it is a component, is deployed
// as it is.
func (s *Scenario) IsReady(resource client.Object) Condition {
	return All(s.Reports(resource, apis.ConditionReady, metav1.ConditionTrue, readyReason),
		func(ctx context.Context) error {
			found, err := s.status(ctx, resource)
			if err != nil {
				return err
			}
			state, applied := found.Status.State, found.Status.AppliedGeneration
			if state != "" && (state != apis.ComponentReady || applied != found.Generation) {
				return fmt.Errorf("%s is %s, at generation %d of %d",
					resource.GetName(), state, applied, found.Generation)
			}
			return nil
		})
}

// Said returns what the condition says that Reports has read.
func (s *Scenario) Said() string { return s.said }

// reported is what Reports reads of a resource of any type.
type reported struct {
	metav1.ObjectMeta `json:"metadata"`
	Status            struct {
		Conditions        []metav1.Condition  `json:"conditions"`
		State             apis.ComponentState `json:"state"`
		AppliedGeneration int64               `json:"appliedGeneration"`
	} `json:"status"`
}

func (s *Scenario) status(ctx context.Context, resource client.Object) (*reported, error) {
	content, err := s.content(ctx, resource)
	if err != nil {
		return nil, err
	}
	found := &reported{}
	return found, runtime.DefaultUnstructuredConverter.FromUnstructured(content.Object, found)
}
