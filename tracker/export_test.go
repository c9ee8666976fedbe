package tracker

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// SetClock replaces the clock that leases of t are measured by.
func SetClock(t Tracker, now func() time.Time) {
	t.(view).store.now = now
}

// Plausible returns how many selectors t evaluates for an event of obj.
func Plausible(t Tracker, obj client.Object) int {
	v := t.(view)
	ref, err := v.reference(obj)
	if err != nil {
		return -1
	}
	n := 0
	v.store.index.plausible(topicKeyOf(v.cluster, ref), obj.GetLabels(), func(*topic) { n++ })
	return n
}

// Held returns the sizes of everything that t holds on to.
func Held(t Tracker) map[string]int {
	s := t.(view).store
	return map[string]int{
		"topics":    len(s.topics),
		"buckets":   len(s.index),
		"watchers":  len(s.watchers),
		"leases":    s.leases.Len(),
		"interests": s.interests,
	}
}
