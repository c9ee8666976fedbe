package testing

import (
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/testing/internal/check"
)

// unfinished returns an error if nothing changes any more and a component of the resource still is not ready.
func (r Rollout[Type]) unfinished(resource client.Object) error {
	if resource.GetDeletionTimestamp() != nil {
		return nil
	}
	for _, status := range check.ComponentStatuses(resource) {
		if status.State == apis.ComponentReady || status.State == "" {
			continue
		}
		text := "the roll-out waits for what does not happen in a test"
		if r.Complete == nil {
			text += ": set Complete to rtesting.MakeReady, or to a function that does what the controllers of a " +
				"cluster would"
		}
		return errors.New(text + "; for a state in between, set Requests" + waits(resource))
	}
	return nil
}

// endless returns the error of a roll-out that changes something with each request.
func (r Rollout[Type]) endless(c *cluster[Type], resource client.Object) error {
	text := fmt.Sprintf("the roll-out has not come to an end after %d requests", maxRequests)
	if last := c.lastWrites; len(last) > 0 {
		text += "; the last one wrote: " + strings.Join(last, ", ")
	} else if c.completing {
		text += "; Complete changes an object after each of them"
	} else {
		text += "; the last one changed the resource in memory"
	}
	return errors.New(text + waits(resource))
}

// waits says what the conditions of a resource wait for.
func waits(resource client.Object) string {
	var text strings.Builder
	for _, status := range check.ComponentStatuses(resource) {
		for _, condition := range status.Conditions {
			if condition.Status != metav1.ConditionTrue {
				fmt.Fprintf(&text, "\n  condition %s is %s (%s): %s",
					condition.Type, condition.Status, condition.Reason, condition.Message)
			}
		}
	}
	return text.String()
}
