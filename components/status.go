package components

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/inventory"
	"github.com/espalier-dev/espalier/internal/message"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reason is the reason of the condition in the status.
func (j *job[T]) reason() string {
	if condition := meta.FindStatusCondition(j.status.Conditions, j.Condition); condition != nil {
		return condition.Reason
	}
	return ""
}

// updateStatus sets the status, and changes nothing of it if nothing is new.
func (j *job[T]) updateStatus(ctx context.Context) condition {
	status, generation := j.status, j.resource.GetGeneration()
	timer := rolloutTimer{digest: status.ProcessingDigest}
	if status.ProcessingSince != nil {
		timer.since = status.ProcessingSince.Time
	}
	if !j.facts.suspended {
		digest := j.digest
		if digest == "" {
			// The request ended before the digest was known.
			digest = timer.digest
		}
		timer = timer.tick(digest, j.facts.done && j.facts.err == nil, j.facts.deleting, j.now)
		j.facts.overdue = !timer.since.IsZero() && j.configuration.Timeout > 0 && j.now.Sub(timer.since) >= j.configuration.Timeout
	}
	c := conditionOf(j.facts)
	c.message = message.Truncate(singleLine(c.message)+j.remarks(), maxMessage)

	status.ProcessingDigest = timer.digest
	status.ProcessingSince = keepTime(status.ProcessingSince, timer.since)
	status.State = c.state
	if c.state == apis.ComponentReady {
		if status.AppliedGeneration != generation || j.before.State != apis.ComponentReady || j.report.Changed() {
			status.AppliedGeneration = generation
			status.LastAppliedAt = &metav1.Time{Time: j.now.Truncate(time.Second)}
		}
	}
	if j.facts.err == nil {
		status.ObservedGeneration = generation
	}
	// The slice may be shared with what the status was before.
	status.Conditions = slices.Clone(status.Conditions)
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type:               j.Condition,
		Status:             conditionStatus(c.state),
		ObservedGeneration: generation,
		Reason:             c.reason,
		Message:            c.message,
		LastTransitionTime: metav1.Time{Time: j.now.Truncate(time.Second)},
	})
	if j.differs() {
		status.LastObservedAt = &metav1.Time{Time: j.now.Truncate(time.Second)}
	}
	if j.Reflect != nil {
		j.Reflect(ctx, j.resource, status)
	}
	return c
}

// differs reports whether the status differs from before in more than LastObservedAt.
func (j *job[T]) differs() bool {
	before, after := j.before, *j.status
	if !inventory.Equal(before.Inventory, after.Inventory) {
		return true
	}
	before.Inventory, after.Inventory = nil, nil
	before.LastObservedAt, after.LastObservedAt = nil, nil
	return !equality.Semantic.DeepEqual(before, after)
}

// keepTime returns known if it means the same second as t, so that nothing changes.
func keepTime(known *metav1.Time, t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	t = t.Truncate(time.Second)
	if known != nil && known.Time.Equal(t) {
		return known
	}
	return &metav1.Time{Time: t}
}

// remarks names the types that cannot be watched.
func (j *job[T]) remarks() string {
	if j.report == nil || len(j.report.Polled) == 0 {
		return ""
	}
	remarks := make([]string, 0, len(j.report.Polled))
	for kind, reason := range j.report.Polled {
		remarks = append(remarks, fmt.Sprintf("%s %s, so it is polled", kind.Kind, reason))
	}
	slices.Sort(remarks)
	return ". " + message.Truncate(strings.Join(remarks, "; "), maxRemarks)
}

func singleLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
