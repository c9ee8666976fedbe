package component_test

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// BenchmarkComponentAtRest is a request for a component that is as desired, over the watches of a running manager, by
// the number of its objects and by whether its generator is deterministic: another one is called in each request.
// live-B/object is the live memory of the operator for the idle component, by object.
func BenchmarkComponentAtRest(b *testing.B) {
	for _, deterministic := range []bool{true, false} {
		for _, objects := range []int{1_000, 10_000} {
			b.Run(fmt.Sprintf("deterministic=%v/objects=%d", deterministic, objects), func(b *testing.B) {
				c, namespace := live(b), plane.Namespace(b)
				r := startIdle(b, c, namespace, objects, deterministic)
				request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(r.assembly)}
				// The first one may look at what the watches have shown meanwhile.
				if _, err := r.root.Reconcile(b.Context(), request); err != nil {
					b.Fatal(err)
				}
				// The test keeps what was generated last.
				r.made.last = nil
				live := float64(int64(liveHeap() - r.before))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := r.root.Reconcile(b.Context(), request); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(b.Elapsed().Seconds()*1000/float64(b.N), "ms/op")
				b.ReportMetric(float64(r.requests.Total())/float64(b.N), "requests/op")
				b.ReportMetric(live/float64(objects), "live-B/object")
				b.ReportMetric(0, "requests/op-target")
				if objects == 10_000 {
					b.ReportMetric(1<<10, "live-B/object-target")
				}
				if objects == 10_000 && deterministic {
					b.ReportMetric(1, "ms/op-target")
					b.ReportMetric(1_000, "allocs/op-target")
				}
				runtime.KeepAlive(r)
			})
		}
	}
}

type idleComponent struct {
	assembly *resources.Assembly
	requests *controlplane.Requests
	made     *countingGenerator
	root     *reconcilers.ResourceReconciler[*resources.Assembly]
	// before is the live memory with a component of one object.
	before uint64
}

// startIdle returns a component of ConfigMaps whose inventory is in Secrets, once it is ready and no request is made
// any more.
func startIdle(b *testing.B, c client.Client, namespace string, objects int, deterministic bool) *idleComponent {
	b.Helper()
	config, requests := controlplane.CountRequests(plane.Config(b))
	mgr := newManager(b, config, ctrl.Options{Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}}})
	done := make(chan struct{}, 1)
	made := &countingGenerator{deterministic: deterministic, Generator: generator.GeneratorFunc(
		func(_ context.Context, _, name string, _ generator.Unstructurable) ([]client.Object, error) {
			if name == "one" {
				return []client.Object{partOf(namespace, "one", "0")}, nil
			}
			generated := make([]client.Object, objects)
			for i := range generated {
				generated[i] = partOf(namespace, "part-"+strconv.Itoa(i), strconv.Itoa(i%3))
			}
			return generated, nil
		})}
	root := component.NewComponentRoot(componentPrefix, made, component.Options[*resources.Assembly]{
		Config:    reconcilers.NewConfig(mgr, &resources.Assembly{}, time.Hour),
		Inventory: component.Inventory{Kind: "Secret"},
		Hooks: generator.Hooks[*resources.Assembly]{PostReconcile: []generator.Hook[*resources.Assembly]{
			func(context.Context, client.Client, *resources.Assembly) error {
				select {
				case done <- struct{}{}:
				default:
				}
				return nil
			},
		}},
	})
	if err := root.SetupWithManager(b.Context(), mgr); err != nil {
		b.Fatal(err)
	}
	startManager(b, mgr)
	r := &idleComponent{requests: requests, made: made, root: root}
	for _, name := range []string{"one", "all"} {
		r.before = liveHeap()
		r.assembly = resources.NewAssembly(namespace, name)
		if err := c.Create(b.Context(), r.assembly); err != nil {
			b.Fatal(err)
		}
		select {
		case <-done:
		case <-b.Context().Done():
			b.Fatal(b.Context().Err())
		}
		controlplanetest.Rest(b, requests)
		for len(done) > 0 {
			<-done
		}
	}
	requests.Reset()
	return r
}
