package observe_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/observe"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// heart is a Deployment that is ready and has been read, and whose status changes again and again.
type heart struct {
	*offline
	in      observe.Interest
	version int
	// readAt are the times of the reads, since the beginning. recheck is when the caller has to come back.
	readAt  []time.Duration
	recheck time.Time
}

func newHeart(t *testing.T) *heart {
	t.Helper()
	h := &heart{offline: newOffline(t), in: interest(deployments, "a", recorded("1"), wanting), version: 10}
	h.world["a"] = object(deployments, "a", "1", "10", ready)
	h.observe(nil, h.in)
	h.live(deployments, "10", h.world["a"])
	h.observe([]string{"get a"}, h.in)
	return h
}

// beat shows a new version of the object.
func (h *heart) beat(change ...func(*unstructured.Unstructured)) {
	h.version++
	changes := append([]func(*unstructured.Unstructured){ready}, change...)
	h.world["a"] = object(deployments, "a", "1", fmt.Sprint(h.version), changes...)
	h.Shown(deployments, h.world["a"])
}

// look observes if the component is woken, or has to come back. It returns the status, and whether it has looked.
func (h *heart) look() (status apis.ObjectStatus, looked bool) {
	h.t.Helper()
	if len(h.woken) == 0 && (h.recheck.IsZero() || h.component.Now.Before(h.recheck)) {
		return "", false
	}
	h.woken, h.reads = nil, nil
	got, err := h.Observe(h.t.Context(), h.component, []observe.Interest{h.in})
	if err != nil {
		h.t.Fatal(err)
	}
	for range h.reads {
		h.readAt = append(h.readAt, h.component.Now.Sub(epoch))
	}
	h.reads, h.recheck = nil, got.Recheck
	return got.Objects[h.in.Key].Status, true
}

// An object that stays ready is read seldom, and then once in a minute, however often its status changes, and the
// component is not woken meanwhile. Once the heart has stopped, the object is read once more, and not again.
func TestHeartbeat(t *testing.T) {
	h := newHeart(t)
	looks := 0
	for range 5 * 300 {
		h.beat()
		if status, looked := h.look(); looked {
			if looks++; status != apis.ObjectCurrent {
				t.Fatalf("after %v it is %q, want %q", h.component.Now.Sub(epoch), status, apis.ObjectCurrent)
			}
		}
		h.after(200 * time.Millisecond)
	}
	want := []time.Duration{0, 1e9, 11e9, 31e9, 71e9, 131e9, 191e9, 251e9}
	if !slices.Equal(h.readAt, want) {
		t.Errorf("five changes a second for 5 minutes are read after %v, want after %v", h.readAt, want)
	}
	if looks > 2*len(want) {
		t.Errorf("the component has looked %d times at %d reads, want at most twice for each", looks, len(want))
	}
	for range 600 {
		h.after(time.Second)
		h.look()
	}
	if more := len(h.readAt) - len(want); more != 1 || !h.recheck.IsZero() || !h.Unchanged(h.component) {
		t.Errorf("there are %d reads after the last change, to come back at %v, and unchanged is %t; want one, never and true",
			more, h.recheck, h.Unchanged(h.component))
	}
	h.beat()
	if h.look(); h.readAt[len(h.readAt)-1] != h.component.Now.Sub(epoch) {
		t.Errorf("a change after a long rest is read after %v, want at once", h.readAt)
	}
}

// What is seen of an object whose status is not read for a while.
func TestChangeDuringHeartbeat(t *testing.T) {
	unready := func(u *unstructured.Unstructured) { delete(u.Object, "status") }
	generation := func(u *unstructured.Unstructured) { u.SetGeneration(u.GetGeneration() + 1) }
	drift := func(u *unstructured.Unstructured) { u.SetManagedFields(nil) }
	for name, test := range map[string]struct {
		change []func(*unstructured.Unstructured)
		after  time.Duration
		want   apis.ObjectStatus
	}{
		"it is not ready":          {[]func(*unstructured.Unstructured){unready}, 20 * time.Second, apis.ObjectInProgress},
		"another generation":       {[]func(*unstructured.Unstructured){generation, unready}, 0, apis.ObjectInProgress},
		"another generation, read": {[]func(*unstructured.Unstructured){generation}, 0, apis.ObjectCurrent},
		"drift":                    {[]func(*unstructured.Unstructured){drift}, 0, apis.ObjectCurrent},
		"deletion":                 {[]func(*unstructured.Unstructured){terminating}, 0, apis.ObjectTerminating},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHeart(t)
			for range 12 * 5 {
				h.beat()
				h.look()
				h.after(200 * time.Millisecond)
			}
			start := h.component.Now
			h.beat(test.change...)
			for h.component.Now.Sub(start) < 10*time.Minute {
				if got, looked := h.look(); looked {
					if after := h.component.Now.Sub(start); got != test.want || after > test.after {
						t.Errorf("it is %q after %v, want %q after at most %v", got, after, test.want, test.after)
					}
					return
				}
				h.after(time.Second)
			}
			t.Errorf("nobody looks within 10 minutes, want after at most %v", test.after)
		})
	}
}

// An object that becomes ready is read with each change of it until it is.
func TestBecomingReadyIsReadAtOnce(t *testing.T) {
	h := newHeart(t)
	for range 30 {
		h.beat(func(u *unstructured.Unstructured) { delete(u.Object, "status") })
		h.look()
		h.after(100 * time.Millisecond)
	}
	if len(h.readAt) != 30 {
		t.Errorf("30 changes of an object that is not ready are read %d times, want each time", len(h.readAt))
	}
	h.beat()
	if status, _ := h.look(); status != apis.ObjectCurrent {
		t.Errorf("it is %q once it is ready, want %q at once", status, apis.ObjectCurrent)
	}
}
