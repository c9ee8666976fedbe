package platform_test

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/examples/platform/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/platform/controller"
	"github.com/espalier-dev/espalier/testing/simulation"
	"github.com/espalier-dev/espalier/testing/simulation/internal/stories"
)

func engine() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: stories.Named(namespace, controller.SearchName(name))}
}

func index() *corev1.ConfigMap     { return configMap(controller.IndexName(name)) }
func telemetry() *corev1.ConfigMap { return configMap(controller.TelemetryName(name)) }

// searchIs fails the story unless the condition of the search is as given, at the current generation.
func searchIs(w *simulation.World, status metav1.ConditionStatus, state apis.State) {
	w.Helper()
	p := newPlatform("")
	w.Get(p)
	ready := p.Status.GetCondition(v1alpha1.SearchReady)
	if ready == nil || ready.Status != status || ready.Reason != string(state) ||
		ready.ObservedGeneration != p.Generation {
		w.Errorf("the search is not %s at generation %d: %+v, %+v", state, p.Generation, ready, p.Status.Features)
	}
	for _, record := range p.Status.Features {
		if len(record.Dependents) > 0 {
			w.Errorf("the search is %s, but not all of it: %+v", state, record)
		}
	}
}

// ask changes what is asked of the search. Nil asks for none.
func ask(w *simulation.World, search *v1alpha1.Search) {
	w.Helper()
	p := newPlatform("")
	w.Update(p, func() { p.Spec.Search = search })
}

// build does what the program that builds the index would do.
func build(w *simulation.World, endpoint string) {
	w.Helper()
	found := index()
	w.As("indexer").Update(found, func() { found.Data[controller.Endpoint] = endpoint })
}

// attempt returns a disturbance: somebody makes a request, which may come too early or too late.
func attempt(request func(w *simulation.World, c client.Client) error) func(w *simulation.World) {
	return func(w *simulation.World) { _ = request(w, w.As("somebody").Client) }
}

func attemptBuild(endpoint string) func(w *simulation.World) {
	patch := fmt.Appendf(nil, `{"data":{%q:%q}}`, controller.Endpoint, endpoint)
	return attempt(func(w *simulation.World, c client.Client) error {
		return c.Patch(w.Context(), index(), client.RawPatch(types.MergePatchType, patch))
	})
}

func attemptDelete(obj client.Object) func(w *simulation.World) {
	return attempt(func(w *simulation.World, c client.Client) error { return c.Delete(w.Context(), obj) })
}

// disturbances returns what may happen to a search.
func disturbances() []func(w *simulation.World) {
	return []func(w *simulation.World){
		func(w *simulation.World) { ask(w, nil) },
		func(w *simulation.World) { ask(w, &v1alpha1.Search{}) },
		func(w *simulation.World) { ask(w, &v1alpha1.Search{Suspended: true}) },
		attemptBuild("http://index"),
		attemptBuild("http://elsewhere"),
		attemptBuild(""),
		attempt(func(w *simulation.World, c client.Client) error { return c.Create(w.Context(), telemetry()) }),
		attemptDelete(telemetry()),
		attemptDelete(engine()),
		attemptDelete(index()),
		attempt(func(w *simulation.World, c client.Client) error {
			scale := []byte(`{"spec":{"replicas":1}}`)
			return c.Patch(w.Context(), engine(), client.RawPatch(types.MergePatchType, scale))
		}),
		func(w *simulation.World) { changeVersion(w, controller.Version1) },
		func(w *simulation.World) { changeVersion(w, controller.Version11) },
	}
}

func changeVersion(w *simulation.World, version string) {
	w.Helper()
	p := newPlatform("")
	w.Update(p, func() { p.Spec.Version = version })
}

// disturb has drawn things happen to a search, and lets time pass in between.
func disturb(w *simulation.World) {
	w.Helper()
	// Each seed is told in a test of its own.
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(w.Name()))
	draw := rand.New(rand.NewPCG(sum.Sum64(), 0))
	all := disturbances()
	for range 2 + draw.IntN(6) {
		all[draw.IntN(len(all))](w)
		switch draw.IntN(4) {
		case 0:
		case 1:
			w.Pass(time.Duration(draw.IntN(5000)) * time.Millisecond)
		case 2:
			w.Pass(time.Duration(draw.IntN(600)) * time.Second)
		case 3:
			w.Rest()
		}
	}
}

// settle has the platform be at a release with a search, which is asked for, and has nobody in its way.
func settle(w *simulation.World) {
	w.Helper()
	p := newPlatform("")
	w.Update(p, func() { p.Spec.Version, p.Spec.Search = controller.Version11, &v1alpha1.Search{} })
	w.Rest()
	migrate(w, controller.Version11)
	show(w)
	if found := telemetry(); w.Exists(found) {
		w.Get(found)
		if metav1.GetControllerOf(found) == nil {
			w.As("somebody").Delete(found)
		}
	}
	build(w, "http://index")
	w.Rest()
}

// isHealthy fails the story unless all of the search is there and works.
func isHealthy(w *simulation.World) {
	w.Helper()
	searchIs(w, metav1.ConditionTrue, apis.StateHealthy)
	deployment := engine()
	w.Get(deployment)
	if deployment.Status.AvailableReplicas != controller.SearchReplicas {
		w.Errorf("the Deployment is %+v", deployment.Status)
	}
	if !w.Exists(telemetry()) {
		w.Error("there is no telemetry")
	}
}

// search is the story of a search: whatever happened before, it becomes healthy, rests, goes on, and goes.
func search(w *simulation.World, healthy, suspended, disabled *stories.End) {
	w.Create(newPlatform(controller.Version11))
	w.Rest()
	disturb(w)
	settle(w)
	isReady(w, 7)
	isHealthy(w)
	healthy.Compare(w)
	w.Idle(time.Hour)

	ask(w, &v1alpha1.Search{Suspended: true})
	w.Rest()
	searchIs(w, metav1.ConditionTrue, apis.StateSuspended)
	suspended.Compare(w)
	w.Idle(20 * time.Minute)
	ask(w, &v1alpha1.Search{})
	w.Rest()
	isHealthy(w)
	healthy.Compare(w)

	ask(w, nil)
	w.Rest()
	searchIs(w, metav1.ConditionTrue, apis.StateDisabled)
	if w.Exists(index()) || w.Exists(engine()) || w.Exists(telemetry()) {
		w.Error("something of the search is left")
	}
	disabled.Compare(w)
	w.Idle(time.Hour)
}

// TestSearch tells the story of a search under plans of many seeds, each of which draws what happens to it, too.
func TestSearch(t *testing.T) {
	// The platform counts its revisions.
	others := kinds[1:]
	healthy, suspended := &stories.End{Kinds: others}, &stories.End{Kinds: others}
	disabled := &stories.End{Kinds: others}
	var struck stories.Struck
	t.Cleanup(func() { t.Log(struck.String()) })
	simulation.RunSeeds(t, cluster(t), func(w *simulation.World) {
		search(w, healthy, suspended, disabled)
		struck.Count(w)
	})
}
