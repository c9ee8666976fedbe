package tracker_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-dev/espalier/tracker"
)

func BenchmarkGetObservers(b *testing.B) {
	for _, watchers := range []int{100, 10_000} {
		w, _ := newWorld(b, 0)
		for i := range watchers {
			by := pod(fmt.Sprint("watcher-", i))
			w.track(configMap(fmt.Sprint("own-", i)), by)
			w.trackAll(selecting(b, fmt.Sprintf("app=web,instance=i%d", i)), by)
		}
		run := func(name string, obj *corev1.ConfigMap) {
			b.Run(fmt.Sprintf("%s/%d watchers", name, watchers), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if got, err := w.GetObservers(obj); err != nil || len(got) != 1 {
						b.Fatal(got, err)
					}
				}
			})
		}
		run("one by name", configMap("own-7"))
		run("one by selector", configMap("x", "app", "web", "instance", "i7", "tier", "front"))
	}
}

// A round of ten references that are all known already, as in each reconcile that changes nothing.
func BenchmarkSteadyRound(b *testing.B) {
	w, _ := newWorld(b, time.Hour)
	by := pod("watcher")
	var refs []*corev1.ConfigMap
	for i := range 10 {
		refs = append(refs, configMap(fmt.Sprint("x-", i)))
	}
	b.ReportAllocs()
	for b.Loop() {
		w.BeginRound(by)
		for _, ref := range refs {
			w.track(ref, by)
		}
		w.EndRound(by, true)
	}
	if got := w.Tracker.(tracker.Sizer).Size().References; got != 10 {
		b.Fatal(got)
	}
}
