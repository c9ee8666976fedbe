package simulation

import (
	"context"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// stuck is set for a test binary in which simulations get stuck.
const stuck = "SIMULATION_STUCK"

// stuckStories are simulations that get stuck, with what the failure says.
var stuckStories = map[string]struct {
	run  func(t *testing.T)
	says []string
}{
	"Mutex": {mutexStory, []string{"stands still", "waits for a mutex", "[sync.Mutex.Lock", "simulation.waitForMutex("}},
	"Pipe":  {pipeStory, []string{"stands still", "[IO wait", "simulation.readOutside("}},
	"Busy":  {busyStory, []string{"stands still", "runs without end", "[runnable", "simulation.isBusy("}},
	"Request": {requestStory, []string{
		"stands still", "request without an answer:", "operator create ConfigMap default/slow", "[sync.Mutex.Lock",
		"simulation.(*guarded).second(",
	}},
	"Channel": {channelStory, []string{
		"did nothing for 720h0m0s", "[chan receive (durable)", "simulation.waitForNobody(",
	}},
	"Operator": {operatorStory, []string{
		"did nothing for 720h0m0s", "simulation.waitForNobody(", "simulation.(*replica).setUp(", "World).end(",
	}},
}

// TestStuck has simulations get stuck in a test binary of their own, which names what they wait for.
func TestStuck(t *testing.T) {
	t.Parallel()
	for name, story := range stuckStories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command := exec.CommandContext(t.Context(), os.Args[0],
				"-test.run=^TestGetStuck$/^"+name+"$", "-simulation.stillness=15s")
			command.Env = append(os.Environ(), stuck+"=true")
			out, err := command.CombinedOutput()
			if err == nil {
				t.Fatalf("it does not fail:\n%s", out)
			}
			if !strings.Contains(string(out), "panic: TestGetStuck/"+name+": ") {
				t.Errorf("the failure does not name the test:\n%s", out)
			}
			for _, says := range story.says {
				// What follows are the stacks of a panic.
				report, _, _ := strings.Cut(string(out), "\ngoroutine 1 [")
				if !strings.Contains(report, says) {
					t.Errorf("the failure does not say %q:\n%s", says, out)
				}
			}
		})
	}
}

func TestGetStuck(t *testing.T) {
	if os.Getenv(stuck) == "" {
		return
	}
	for name, story := range stuckStories {
		t.Run(name, story.run)
	}
}

func mutexStory(t *testing.T) {
	Run(t, Options{}, func(*World) {
		var mu sync.Mutex
		mu.Lock()
		go func() {
			time.Sleep(time.Hour)
			mu.Unlock()
		}()
		waitForMutex(&mu)
	})
}

//go:noinline
func waitForMutex(mu *sync.Mutex) {
	mu.Lock()
	defer mu.Unlock()
}

func busyStory(t *testing.T) {
	var mu sync.Mutex
	Run(t, Options{}, func(*World) {
		mu.Lock()
		go waitForMutex(&mu)
		isBusy(&atomic.Bool{})
	})
}

//go:noinline
func isBusy(ended *atomic.Bool) {
	for !ended.Load() {
	}
}

func pipeStory(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	connection, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	Run(t, Options{}, func(*World) { readOutside(connection) })
}

//go:noinline
func readOutside(connection net.Conn) { _, _ = connection.Read(make([]byte, 1)) }

// guarded is a part of an operator that makes requests while it holds a mutex.
type guarded struct {
	mu  sync.Mutex
	mgr manager.Manager
}

func (g *guarded) first(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mgr.GetClient().Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "slow"},
	})
}

func (g *guarded) second(context.Context) error {
	time.Sleep(time.Millisecond)
	g.mu.Lock()
	defer g.mu.Unlock()
	return nil
}

func requestStory(t *testing.T) {
	plan := Plan{Seed: 1, Latency: time.Hour}
	Run(t, Options{Plan: plan, Operator: func(_ context.Context, mgr ctrl.Manager) error {
		g := &guarded{mgr: mgr}
		_ = mgr.Add(runnable(g.first))
		return mgr.Add(runnable(g.second))
	}}, func(w *World) { w.Rest() })
}

func channelStory(t *testing.T) {
	Run(t, Options{}, func(w *World) {
		w.Create(original("a", ""))
		waitForNobody(make(chan struct{}))
	})
}

//go:noinline
func waitForNobody(nobody chan struct{}) { <-nobody }

func operatorStory(t *testing.T) {
	Run(t, Options{Operator: func(context.Context, ctrl.Manager) error {
		waitForNobody(make(chan struct{}))
		return nil
	}}, func(w *World) { w.Rest() })
}

// TestLongWaits has stories that wait for more than the longest wait, for something that comes.
func TestLongWaits(t *testing.T) {
	t.Parallel()
	const long = longestWait + 2*interval
	for name, wait := range map[string]func(w *World){
		"pass":  func(w *World) { w.Pass(long) },
		"sleep": func(*World) { time.Sleep(long) },
		"another goroutine": func(w *World) {
			var others sync.WaitGroup
			others.Go(func() { w.Pass(long) })
			others.Wait()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			Run(t, Options{}, wait)
		})
	}
}
