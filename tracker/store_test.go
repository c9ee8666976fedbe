package tracker_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/espalier-dev/espalier/tracker"
)

func TestACompleteRoundReplacesWhatTheWatcherRefersTo(t *testing.T) {
	w, _ := newWorld(t, time.Hour)
	w.round(pod("watcher"), true, "old", "kept")
	w.round(pod("watcher"), true, "kept", "new")
	w.want(configMap("old"))
	w.want(configMap("kept"), "watcher")
	w.want(configMap("new"), "watcher")
}

func TestAnIncompleteRoundOnlyAdds(t *testing.T) {
	w, _ := newWorld(t, time.Hour)
	w.round(pod("watcher"), true, "old")
	w.round(pod("watcher"), false, "new")
	w.want(configMap("old"), "watcher")
	w.want(configMap("new"), "watcher")

	w.round(pod("watcher"), true, "newest")
	w.want(configMap("old"))
	w.want(configMap("new"))
	w.want(configMap("newest"), "watcher")
}

func TestOldReferencesStayInForceDuringARound(t *testing.T) {
	w, _ := newWorld(t, time.Hour)
	w.round(pod("watcher"), true, "old")
	w.BeginRound(pod("watcher"))
	w.track(configMap("new"), pod("watcher"))
	w.want(configMap("old"), "watcher")
	w.want(configMap("new"), "watcher")
	w.EndRound(pod("watcher"), true)
	w.want(configMap("old"))
}

func TestARoundConcernsItsWatcherAlone(t *testing.T) {
	w, _ := newWorld(t, time.Hour)
	for _, other := range []string{"other", "another"} {
		w.round(pod(other), true, "x")
	}
	w.round(secret("watcher"), true, "x")
	w.round(pod("watcher"), true, "x")
	w.round(pod("watcher"), true)
	w.want(configMap("x"), "another", "other", "watcher")
	w.round(secret("watcher"), true)
	w.want(configMap("x"), "another", "other")
}

func TestARoundReplacesSelectorsToo(t *testing.T) {
	w, _ := newWorld(t, time.Hour)
	for _, selector := range []string{"app=web", "app=db"} {
		w.BeginRound(pod("watcher"))
		w.trackAll(selecting(t, selector), pod("watcher"))
		w.EndRound(pod("watcher"), true)
	}
	w.want(configMap("x", "app", "web"))
	w.want(configMap("x", "app", "db"), "watcher")
}

func TestARoundSpansClusters(t *testing.T) {
	home, _ := newWorld(t, time.Hour)
	away := in(t, tracker.InCluster(home.Tracker, "away"))

	home.BeginRound(pod("watcher"))
	home.track(configMap("x"), pod("watcher"))
	away.track(configMap("x"), pod("watcher"))
	home.EndRound(pod("watcher"), true)
	away.want(configMap("x"), "watcher")

	away.round(pod("watcher"), true, "x")
	home.want(configMap("x"))
	away.want(configMap("x"), "watcher")

	home.Forget(pod("watcher"))
	home.wantEmpty()
}

func TestControllersOfOneKindKeepTheirOwnReferences(t *testing.T) {
	none, _ := newWorld(t, time.Hour)
	a := in(t, tracker.ForController(none.Tracker, "a"))
	b := in(t, tracker.ForController(none.Tracker, "b"))

	a.round(pod("watcher"), true, "of-a", "shared")
	b.round(pod("watcher"), true, "of-b", "shared")
	none.track(configMap("of-none"), pod("watcher"))

	for obj, seenBy := range map[string][3]bool{
		"of-a":    {true, false, true},
		"of-b":    {false, true, true},
		"shared":  {true, true, true},
		"of-none": {true, true, true},
	} {
		for i, view := range []world{a, b, none} {
			if seenBy[i] {
				view.want(configMap(obj), "watcher")
			} else {
				view.want(configMap(obj))
			}
		}
	}

	a.Forget(pod("watcher"))
	a.want(configMap("shared"))
	b.want(configMap("shared"), "watcher")
}

func TestOverlappingRoundsLoseNothing(t *testing.T) {
	w, _ := newWorld(t, time.Hour)
	w.round(pod("watcher"), true, "old")
	w.BeginRound(pod("watcher"))
	w.track(configMap("first"), pod("watcher"))
	w.round(pod("watcher"), true, "second")
	w.EndRound(pod("watcher"), true)

	w.want(configMap("old"))
	w.want(configMap("first"), "watcher")
	w.want(configMap("second"), "watcher")

	w.round(pod("watcher"), true, "third")
	w.want(configMap("first"))
	w.want(configMap("second"))
	w.want(configMap("third"), "watcher")
}

func TestForget(t *testing.T) {
	w, _ := newWorld(t, time.Hour)
	everything := tracker.Reference{Kind: "ConfigMap", Selector: labels.Everything()}

	w.round(pod("watcher"), true, "x", "y")
	w.trackAll(everything, pod("watcher"))
	w.track(configMap("x"), secret("watcher"))
	w.Forget(pod("watcher"))
	w.want(configMap("x"), "watcher")
	w.want(configMap("y"))

	w.Forget(secret("watcher"))
	w.Forget(pod("never-seen"))
	w.wantEmpty()
}

func TestForgetEndsTheRound(t *testing.T) {
	w, _ := newWorld(t, time.Hour)
	w.BeginRound(pod("watcher"))
	w.track(configMap("x"), pod("watcher"))
	w.Forget(pod("watcher"))
	w.wantEmpty()
	w.EndRound(pod("watcher"), true)
	w.wantEmpty()
}

func TestRoundsWithoutReferencesLeaveNothing(t *testing.T) {
	w, _ := newWorld(t, time.Hour)
	w.EndRound(pod("never-begun"), true)
	w.round(pod("complete"), true)
	w.round(pod("incomplete"), false)
	w.BeginRound(nil)
	w.EndRound(nil, true)
	w.Forget(nil)
	w.wantEmpty()
}

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
