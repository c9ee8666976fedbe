package tracker_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/espalier-dev/espalier/tracker"
)

// Run with -race.
func TestConcurrentUse(t *testing.T) {
	w := in(t, tracker.New(clientgoscheme.Scheme, time.Microsecond))
	selector := selecting(t, "app=web")
	var group sync.WaitGroup
	for g := range 8 {
		group.Go(func() {
			away := in(t, tracker.InCluster(w.Tracker, g%2))
			for i := range 200 {
				by := pod(fmt.Sprint("watcher-", (g+i)%10))
				w.BeginRound(by)
				w.track(configMap(fmt.Sprint("x-", i%7)), by)
				away.trackAll(selector, by)
				w.EndRound(by, i%3 > 0)
				w.track(configMap("leased"), by)
				if _, err := w.GetObservers(configMap("x-1", "app", "web")); err != nil {
					t.Error(err)
				}
				kinds := away.Tracker.(tracker.KindObservers)
				if _, err := kinds.ObserversOfKind(configMap("leased"), schema.GroupKind{Kind: "Pod"}); err != nil {
					t.Error(err)
				}
				w.Tracker.(tracker.Sizer).Size()
				if i%11 == 0 {
					w.Forget(by)
				}
			}
		})
	}
	group.Wait()
	for i := range 10 {
		w.Forget(pod(fmt.Sprint("watcher-", i)))
	}
	w.wantEmpty()
}
