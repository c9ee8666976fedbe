package tracker_test

import (
	"testing"
	"time"

	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/espalier-dev/espalier/tracker"
)

func TestAReferenceLastsForItsLease(t *testing.T) {
	w, clock := newWorld(t, time.Minute)
	w.track(configMap("x"), pod("watcher"))
	clock.advance(time.Minute)
	w.want(configMap("x"), "watcher")
	clock.advance(1)
	w.want(configMap("x"))
	w.wantEmpty()
}

func TestALeaseIsRenewed(t *testing.T) {
	w, clock := newWorld(t, time.Minute)
	w.track(configMap("x"), pod("renewed"))
	w.track(configMap("x"), pod("lapsed"))
	clock.advance(40 * time.Second)
	w.track(configMap("x"), pod("renewed"))
	clock.advance(40 * time.Second)
	w.want(configMap("x"), "renewed")
	clock.advance(40 * time.Second)
	w.want(configMap("x"))
	w.wantEmpty()
}

func TestALeaseOfANanosecondIsOverByTheLookup(t *testing.T) {
	w := in(t, tracker.New(clientgoscheme.Scheme, time.Nanosecond))
	w.track(configMap("x"), pod("watcher"))
	w.trackAll(selecting(t, "app=web"), pod("watcher"))
	w.want(configMap("x", "app", "web"))
	w.wantEmpty()
}

func TestWithoutLeaseNothingExpires(t *testing.T) {
	for _, lease := range []time.Duration{0, -time.Second} {
		w, clock := newWorld(t, lease)
		w.track(configMap("x"), pod("watcher"))
		clock.advance(1000 * time.Hour)
		w.want(configMap("x"), "watcher")
	}
}

func TestReferencesOfARoundHaveNoLease(t *testing.T) {
	w, clock := newWorld(t, time.Minute)
	w.track(configMap("x"), pod("watcher"))
	w.round(pod("watcher"), true, "x", "y")
	// Said again outside of a round, they do not start to expire.
	w.track(configMap("y"), pod("watcher"))
	clock.advance(time.Hour)
	w.want(configMap("x"), "watcher")
	w.want(configMap("y"), "watcher")
}

func TestACompleteRoundDropsLeasedReferencesToo(t *testing.T) {
	w, _ := newWorld(t, time.Hour)
	w.track(configMap("leased"), pod("watcher"))
	w.round(pod("watcher"), true, "x")
	w.want(configMap("leased"))
	w.track(configMap("leased"), pod("watcher"))
	w.round(pod("watcher"), false, "x")
	w.want(configMap("leased"), "watcher")
	w.round(pod("watcher"), true)
	w.wantEmpty()
}

func TestWhatExpiredIsFreedWhoeverIsLookedUp(t *testing.T) {
	w, clock := newWorld(t, time.Minute)
	w.track(configMap("never-heard-of-again"), pod("gone"))
	w.trackAll(selecting(t, "app=web"), pod("gone"))
	clock.advance(time.Hour)
	w.want(configMap("something-else"))
	w.wantEmpty()
}
