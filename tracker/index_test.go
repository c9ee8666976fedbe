package tracker_test

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/espalier-dev/espalier/tracker"
)

func TestL12AnEventLooksOnlyAtSelectorsThatMayMatch(t *testing.T) {
	const watchers = 2_000
	tests := map[string]struct {
		selector func(i int) string
		obj      []string
		atMost   int
	}{
		"one value each": {
			selector: func(i int) string { return fmt.Sprintf("instance=i%d", i) },
			obj:      []string{"instance", "i7"},
			atMost:   1,
		},
		// The first of them may be kept under what all have in common.
		"a value in common": {
			selector: func(i int) string { return fmt.Sprintf("app=web,instance=i%d", i) },
			obj:      []string{"app", "web", "instance", "i7"},
			atMost:   2,
		},
		"a key in common": {
			selector: func(i int) string { return fmt.Sprintf("app,instance in (i%d,j%d)", i, i) },
			obj:      []string{"app", "web", "instance", "j7"},
			atMost:   1,
		},
		"a key each": {
			selector: func(i int) string { return fmt.Sprintf("!legacy,key%d", i) },
			obj:      []string{"key7", ""},
			atMost:   1,
		},
		"the same for all": {
			selector: func(int) string { return "app=web,tier=front" },
			obj:      []string{"app", "web", "tier", "back"},
			atMost:   1,
		},
		"an object without labels": {
			selector: func(i int) string { return fmt.Sprintf("instance=i%d", i) },
			atMost:   0,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w, _ := newWorld(t, 0)
			for i := range watchers {
				w.trackAll(selecting(t, tc.selector(i)), pod(fmt.Sprint("watcher-", i)))
			}
			if got := tracker.Plausible(w.Tracker, configMap("x", tc.obj...)); got > tc.atMost {
				t.Errorf("want at most %d selectors evaluated, got %d", tc.atMost, got)
			}
		})
	}
}

func TestL12OtherNamespacesKindsAndClustersAreNotLookedAt(t *testing.T) {
	w, _ := newWorld(t, 0)
	everything := labels.Everything()
	for i := range 100 {
		by := pod(fmt.Sprint("watcher-", i))
		namespace := fmt.Sprint("ns-", i)
		w.trackAll(tracker.Reference{Kind: "ConfigMap", Namespace: namespace, Selector: everything}, by)
		w.trackAll(tracker.Reference{Kind: fmt.Sprint("Kind", i), Selector: everything}, by)
		away := in(t, tracker.InCluster(w.Tracker, i))
		away.trackAll(tracker.Reference{Kind: "ConfigMap", Selector: everything}, by)
	}
	if got := tracker.Plausible(w.Tracker, configMap("x")); got != 0 {
		t.Errorf("want no selector evaluated, got %d", got)
	}
}

// The index may only save work: whatever the selectors, the answer is the one that evaluating all of them gives.
func TestTheIndexFindsWhatEvaluatingAllSelectorsFinds(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	pick := func(from ...string) string { return from[random.Intn(len(from))] }
	requirement := func() string {
		form := pick("K=V", "K!=V", "K", "!K", "K in (V,W)", "K notin (V,W)", "K>V", "K<V")
		return strings.NewReplacer(
			"K", pick("a", "b", "c"), "V", pick("1", "2", "3"), "W", pick("1", "2", "3"),
		).Replace(form)
	}

	w, _ := newWorld(t, 0)
	tracked := map[string]labels.Selector{}
	for step := range 3000 {
		by := fmt.Sprint("watcher-", random.Intn(40))
		if random.Intn(4) == 0 {
			w.Forget(pod(by))
			delete(tracked, by)
		} else if _, again := tracked[by]; !again {
			ref := selecting(t, requirement()+","+requirement())
			w.trackAll(ref, pod(by))
			tracked[by] = ref.Selector
		}

		set := labels.Set{}
		for _, key := range []string{"a", "b", "c"} {
			if random.Intn(2) == 0 {
				set[key] = pick("1", "2", "3")
			}
		}
		var want []string
		for name, selector := range tracked {
			if selector.Matches(set) {
				want = append(want, name)
			}
		}
		slices.Sort(want)
		obj := configMap("x")
		obj.Labels = set
		w.want(obj, want...)
		if t.Failed() {
			t.Fatalf("step %d, labels %v, selectors %v", step, set, tracked)
		}
	}
	for by := range tracked {
		w.Forget(pod(by))
	}
	w.wantEmpty()
}

func TestNothingIsLeftOfWatchersThatComeAndGo(t *testing.T) {
	watchers := 1_000
	if testing.Short() {
		watchers = 100
	}
	come := func(w world, i int) {
		by := pod(fmt.Sprint("watcher-", i))
		w.track(configMap(fmt.Sprint("own-", i)), by)
		w.track(configMap("shared"), by)
		w.trackAll(selecting(t, fmt.Sprintf("app=web,instance in (i%d,j%d)", i, i)), by)
		w.trackAll(selecting(t, "app"), by)
		w.trackAll(tracker.Reference{Kind: "Node", Selector: labels.Everything()}, by)
	}

	t.Run("by being forgotten", func(t *testing.T) {
		w, _ := newWorld(t, 0)
		for i := range watchers {
			come(w, i)
		}
		for i := range watchers {
			w.Forget(pod(fmt.Sprint("watcher-", i)))
		}
		w.wantEmpty()
	})
	t.Run("by saying nothing in a round", func(t *testing.T) {
		w, _ := newWorld(t, time.Hour)
		for i := range watchers {
			by := pod(fmt.Sprint("watcher-", i))
			w.BeginRound(by)
			come(w, i)
			w.EndRound(by, true)
		}
		for i := range watchers {
			w.round(pod(fmt.Sprint("watcher-", i)), true)
		}
		w.wantEmpty()
	})
	t.Run("by the end of their leases", func(t *testing.T) {
		w, clock := newWorld(t, time.Hour)
		for i := range watchers {
			come(w, i)
			clock.advance(time.Second)
		}
		clock.advance(2 * time.Hour)
		w.wantEmpty()
	})
}
