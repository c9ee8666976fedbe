package observe_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/espalier-dev/espalier/internal/component/plan"
)

// TestAwaitDeleted: a watch that shows late what the component has deleted is waited for, but not for long.
func TestAwaitDeleted(t *testing.T) {
	const late, limit = 10 * time.Millisecond, 50 * time.Millisecond
	for name, test := range map[string]struct {
		before, late func(o *offline)
		want         plan.Presence
		waited       time.Duration
		watched      bool
	}{
		"gone at once": {before: gone, want: plan.Absent, watched: true},
		"gone":         {late: gone, want: plan.Absent, waited: late, watched: true},
		"lingers":      {late: lingering, want: plan.Present, waited: late, watched: true},
		"not shown":    {want: plan.Present, waited: limit, watched: true},
		"no watch":     {before: interrupted, want: plan.Present},
		"watch ends":   {late: interrupted, want: plan.Present, waited: late},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOffline(t)
				in := interest(configMaps, "a", recorded("1"))
				o.observe(nil, in)
				o.live(configMaps, "10", object(configMaps, "a", "1", "10"))
				if test.before != nil {
					test.before(o)
				}
				o.Deleted(o.component, in.Key, "1", false)
				if test.late != nil {
					time.AfterFunc(late-time.Microsecond, func() { test.late(o) })
				}
				began := time.Now()
				watched := o.AwaitDeleted(t.Context(), o.component)
				if waited := time.Since(began); watched != test.watched || waited != test.waited {
					t.Errorf("it waited %v and found that watches show the objects: %t, want %v and %t", waited, watched, test.waited, test.watched)
				}
				o.presence(o.observe(nil, in), in, test.want)
			})
		})
	}
}

func gone(o *offline)        { o.Gone(configMaps, object(configMaps, "a", "1", "11")) }
func lingering(o *offline)   { o.Shown(configMaps, object(configMaps, "a", "1", "11", terminating)) }
func interrupted(o *offline) { o.Interrupted(configMaps) }
