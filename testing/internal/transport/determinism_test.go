package transport_test

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/internal/plan"
	"github.com/espalier-dev/espalier/testing/internal/transport"
)

// processors runs a test with different numbers of processors, several times with each.
func processors(t *testing.T, rounds int, test func(run string)) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, n := range []int{1, 2, 4} {
		runtime.GOMAXPROCS(n)
		for round := range rounds {
			test(fmt.Sprintf("run %d with %d processors", round+1, n))
		}
	}
}

// sameAs fails the test if a text is not the first one.
func sameAs(t *testing.T, first *string, run, text string) {
	t.Helper()
	if *first == "" {
		*first = text
	}
	if text == "" || text != *first {
		t.Errorf("%s differs from the first one:\n%s", run, cmp.Diff(strings.Split(*first, "\n"), strings.Split(text, "\n")))
	}
}

// crowd has 3 actors with 8 workers each write objects and watch, and start again when they die. It returns the log, and
// what happened.
func crowd(t *testing.T, p plan.Plan) (log string, happened []fault.Fault) {
	options := transport.Options{Plan: p}
	run(t, options, func(f *fixture) {
		var group sync.WaitGroup
		for _, actor := range []string{"a", "b", "c"} {
			process := &process{fixture: f, actor: actor, client: f.Client(actor)}
			for i := range 8 {
				group.Go(func() { process.work(fmt.Sprintf("%s/%s-%d", configMaps, actor, i)) })
			}
		}
		group.Wait()
		log, happened = f.Log().String(), f.Happened()
	})
	return log, happened
}

// process is an actor of a crowd.
type process struct {
	*fixture
	actor  string
	mu     sync.Mutex
	client *transport.Client
}

// living returns the transport, a new one if the old one is dead.
func (p *process) living() *transport.Client {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.client.Died():
		p.client = p.Client(p.actor)
	default:
	}
	return p.client
}

func (p *process) work(path string) {
	for range 10 {
		p.ask(p.living(), http.MethodGet, path, "")
		p.ask(p.living(), http.MethodPut, path, "{}")
		response, err := p.living().RoundTrip(p.newRequest(p.Context(), http.MethodGet,
			configMaps+"?watch=1&fieldSelector=metadata.name%3D"+path[strings.LastIndex(path, "/")+1:], ""))
		if err == nil {
			_, _ = io.ReadAll(response.Body)
			_ = response.Body.Close()
		}
		time.Sleep(time.Second)
	}
}

// TestSamePlanGivesSameFaults compares what happened, and the whole log: with latency no two requests arrive at the same
// time.
func TestSamePlanGivesSameFaults(t *testing.T) {
	for seed := range uint64(5) {
		p := plan.FromSeed(seed, plan.Options{Delay: time.Minute})
		var first, order string
		var happened []fault.Fault
		processors(t, 3, func(run string) {
			var log string
			log, happened = crowd(t, p)
			sameAs(t, &first, run, (plan.Plan{Faults: happened}).Code())
			sameAs(t, &order, run, log)
		})
		if len(happened) == 0 {
			t.Errorf("seed %d lets nothing go wrong", seed)
		}
		// What happened, by count, is the same again.
		again, _ := crowd(t, plan.Plan{Seed: p.Seed, Latency: p.Latency, Faults: happened})
		sameAs(t, &order, "the run by count", again)
	}
}

// TestSameFaultsWithoutLatency has faults in an order that only the scheduler knows.
func TestSameFaultsWithoutLatency(t *testing.T) {
	p := plan.FromSeed(1, plan.Options{Kinds: []fault.Kind{fault.Fails, fault.Conflicts, fault.Throttles, fault.LosesAnswer}})
	p.Latency = 0
	p.Chances = []plan.Chance{{Kind: fault.Fails, OneIn: 8}, {Kind: fault.LosesAnswer, OneIn: 8}}
	var first string
	processors(t, 5, func(run string) {
		_, happened := crowd(t, p)
		slices.SortFunc(happened, func(a, b fault.Fault) int { return strings.Compare(a.String(), b.String()) })
		sameAs(t, &first, run, (plan.Plan{Faults: happened}).Code())
	})
}
