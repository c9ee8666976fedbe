package componentfaults_test

import (
	"context"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
)

// faultWorkers is how many runs are under way at the same time: most of their time they wait for the API server, which holds up
// each client of a type that is new.
const faultWorkers = 24

// faultStep says that each thirteenth point is tried: TestReplayedComponentFaults tries all, in memory. It has no common factor
// with the number of points of a write, so that each sort of fault is among the points.
const faultStep = 13

var faultSorts = []faultSort{diesBefore, diesAfter, failsWithout, losesAnswer, conflicts, staleRead}

var faultRuns atomic.Int64

// playFault runs the scenario with a fault, and reports what breaks an invariant.
func playFault(t *testing.T, world *faultWorld, point faultPoint) (*faultRun, *faultOutcome) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*faultPatience)
	defer cancel()
	r := newFaultRun(world, fmt.Sprintf("run-%d-x", faultRuns.Add(1)), point)
	outcome, err := r.play(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		t.Error(err)
	}
	for _, violation := range r.violations {
		t.Error(violation)
	}
	return r, outcome
}

// story is what happened, for people.
func (r *faultRun) story() string { return strings.Join(r.trace, "\n") }

// roomyPlane is a control plane that may use memory to save time, which is scarce here, and so may this process.
func roomyPlane(t *testing.T) *rest.Config {
	t.Helper()
	controlplanetest.SkipIfShort(t)
	const percent = 400
	t.Setenv("GOGC", strconv.Itoa(percent))
	before := debug.SetGCPercent(percent)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	env, err := controlplane.Start(t.Context(), controlplane.Options{
		CRDs: []*apiextensionsv1.CustomResourceDefinition{resources.AssemblyCRD()},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	return env.Config()
}

// TestComponentFaults runs the platform scenario on an API server, for a sample of the calls that write and the sorts of faults, and
// of the reads that may be stale. Invariants L2, L4, L5, L11.
func TestComponentFaults(t *testing.T) {
	world := newFaultWorld(t, roomyPlane(t))
	reference, want := playFault(t, world, faultPoint{})
	if t.Failed() {
		t.Fatalf("without a fault:\n%s", reference.story())
	}
	t.Logf("%d writes without a fault:\n%s", len(reference.writes), strings.Join(reference.writes, "\n"))
	points := sampled(faultPoints(reference), faultStep)
	began := time.Now()
	var tried, missed faultCounter
	group := errgroup.Group{}
	group.SetLimit(faultWorkers)
	for _, point := range points {
		group.Go(func() error {
			t.Run(point.String(), func(t *testing.T) {
				r, got := playFault(t, world, point)
				if r.fired == "" {
					missed.add(point.sort)
				} else {
					tried.add(point.sort)
				}
				if got != nil {
					compareOutcomes(t, point, want, got)
				}
				if t.Failed() {
					t.Logf("%s\n%s", point, r.story())
				}
			})
			return nil
		})
	}
	_ = group.Wait()
	total := 0
	for _, sort := range faultSorts {
		total += tried.by[sort]
		t.Logf("tried %d points: %s (%d more were not reached)", tried.by[sort], sort, missed.by[sort])
	}
	t.Logf("tried %d points in %s", total, time.Since(began).Round(time.Second))
	// How often the status is written depends a little on how long the API server takes.
	if selected := tried.total() + missed.total(); selected == len(points) && total < selected*9/10 {
		t.Errorf("%d of %d points were not reached", selected-total, selected)
	}
}

// faultCounter counts points by sort.
type faultCounter struct {
	mu sync.Mutex
	by map[faultSort]int
}

func (c *faultCounter) add(sort faultSort) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = map[faultSort]int{}
	}
	c.by[sort]++
}

func (c *faultCounter) total() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	total := 0
	for _, n := range c.by {
		total += n
	}
	return total
}

// faultPoints are all there are. The instance that met with the fault goes on where it remembers something: what it has written of the
// resource, and that it does not know.
func faultPoints(reference *faultRun) []faultPoint {
	var points []faultPoint
	add := func(point faultPoint, goesOn bool) {
		points = append(points, point)
		if goesOn {
			point.goesOn = true
			points = append(points, point)
		}
	}
	for i, what := range reference.writes {
		resource := strings.Contains(what, " assemblies/")
		for _, sort := range []faultSort{diesBefore, diesAfter, failsWithout, losesAnswer, conflicts} {
			add(faultPoint{sort: sort, at: i + 1, what: what}, sort == losesAnswer || sort == conflicts && resource)
		}
	}
	for _, stale := range reference.stalePoints {
		add(stale, stale.resource == "assemblies")
	}
	return points
}

// sampled are some points.
func sampled(points []faultPoint, step int) []faultPoint {
	var some []faultPoint
	for i := 0; i < len(points); i += step {
		some = append(some, points[i])
	}
	return some
}

// compareOutcomes checks invariant L11: the outcome is the same.
func compareOutcomes(t *testing.T, point faultPoint, want, got *faultOutcome) {
	t.Helper()
	for i, end := range want.ends {
		if i < len(got.ends) && got.ends[i] != end {
			t.Errorf("another state than without the fault (-want +got):\n%s", cmp.Diff(strings.Split(end, "\n"), strings.Split(got.ends[i], "\n")))
		}
	}
	anonymous := func(counts map[string]int) map[string]int {
		out := map[string]int{}
		for key, n := range counts {
			parts := strings.Split(key, "/")
			if strings.HasSuffix(parts[0], "customresourcedefinitions") {
				parts[2] = "type"
			}
			out[parts[0]+" "+parts[2]] = n
		}
		return out
	}
	if diff := cmp.Diff(anonymous(want.creates), anonymous(got.creates)); diff != "" {
		t.Errorf("not as many creates (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(anonymous(want.deletes), anonymous(got.deletes)); diff != "" {
		t.Errorf("not as many deletes (-want +got):\n%s", diff)
	}
	more := 0
	allowed := anonymous(want.tries)
	tries := anonymous(got.tries)
	for _, key := range slices.Sorted(maps.Keys(tries)) {
		more += max(0, tries[key]-allowed[key])
	}
	if limit := moreTries(point); more > limit {
		t.Errorf("%d more attempts than without the fault, not %d:\n%s", more, limit, cmp.Diff(allowed, tries))
	}
}

// moreTries is how many attempts to create or to delete may be refused: one, where an answer was lost, or another client was faster; and one
// for each answer that came too late.
func moreTries(point faultPoint) int {
	switch point.sort {
	case diesBefore, failsWithout:
		return 0
	case staleRead:
		return point.lag
	}
	return 1
}
