package errortext_test

import (
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/errortext"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestNext(t *testing.T) {
	var text errortext.Text
	start := time.Date(2024, time.May, 17, 8, 30, 0, 0, time.UTC)
	shown := (*metav1.Condition)(nil)
	for _, step := range []struct {
		after             time.Duration
		generation        int64
		reason, message   string
		want              string
		nothingToRemember bool
	}{
		{0, 1, "Failed", "port 1", "port 1", false},
		{time.Second, 1, "Failed", "port 2", "port 1", false},
		{2 * time.Second, 1, "Invalid", "port 3", "port 3", false},
		{3 * time.Second, 2, "Invalid", "port 4", "port 4", false},
		{62 * time.Second, 2, "Invalid", "port 5", "port 4", false},
		{63 * time.Second, 2, "Invalid", "port 6", "port 6", false},
		{124 * time.Second, 2, "Invalid", "port 6", "port 6", true},
	} {
		now := start.Add(step.after)
		next := metav1.Condition{Status: metav1.ConditionFalse, Reason: step.reason, Message: step.message}
		if next.Message = text.Next(shown, next, step.generation, now); next.Message != step.want {
			t.Errorf("after %v the text is %q, want %q", step.after, next.Message, step.want)
		}
		if empty := text.Evict(now); empty != step.nothingToRemember {
			t.Errorf("after %v Evict returns %t, want %t", step.after, empty, step.nothingToRemember)
		}
		next.ObservedGeneration = step.generation
		shown = &next
	}
}
