package simulation

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crcluster "sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/internal/fault"
)

// work is who worked on what, in which order. Processes is how many processes were set up.
type work struct {
	mu        sync.Mutex
	by        []string
	ages      map[string]time.Duration
	processes int
}

var works External[work]

func (w *work) add(actor, name string, age time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.by = append(w.by, actor+" "+name)
	if w.ages == nil {
		w.ages = map[string]time.Duration{}
	}
	w.ages[actor] = age.Round(time.Minute)
}

// take returns who worked on what since the last call, without repetitions and sorted.
func (w *work) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	by := slices.Compact(slices.Sorted(slices.Values(w.by)))
	w.by = nil
	return by
}

// workers is an operator that takes down which of its processes works on which ConfigMap of a user.
func workers(ctx context.Context, mgr ctrl.Manager) error {
	done, actor := works.In(ctx), mgr.GetConfig().UserAgent
	done.mu.Lock()
	done.processes++
	done.mu.Unlock()
	return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(reconcile.Func(
		func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			seen := &corev1.ConfigMap{}
			if err := mgr.GetClient().Get(ctx, r.NamespacedName, seen); err != nil {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			if seen.Labels["copy"] != "" {
				done.add(actor, r.Name, time.Since(seen.CreationTimestamp.Time))
			}
			return reconcile.Result{}, nil
		}))
}

// worked fails the story if others worked, or on other things, since the last call.
func worked(w *World, want ...string) {
	w.Helper()
	if got := works.Of(w).take(); !slices.Equal(got, want) {
		w.Errorf("who worked: %q, want %q", got, want)
	}
}

func TestKillStopStart(t *testing.T) {
	t.Parallel()
	Run(t, Options{Operator: workers}, func(w *World) {
		w.Create(original("a", ""))
		w.Pass(time.Minute)
		worked(w, "operator a")
		w.Kill()
		w.Create(original("b", ""))
		worked(w)
		w.Pass(time.Minute)
		worked(w, "operator a", "operator b")
		w.Stop()
		w.Stop()
		w.Create(original("c", ""))
		w.Kill()
		w.Pass(time.Hour)
		worked(w)
		w.Start()
		w.Start()
		w.Pass(time.Minute)
		worked(w, "operator a", "operator b", "operator c")
		if n := works.Of(w).processes; n != 3 {
			w.Errorf("there were %d processes", n)
		}
	})
}

func TestStopped(t *testing.T) {
	t.Parallel()
	Run(t, Options{Operator: workers, Replicas: 2}, func(w *World) { w.Stop() })
	Run(t, Options{Operator: workers, Replicas: 2}, func(w *World) { w.Kill() })
	Run(t, Options{Operator: workers, Replicas: 2}, func(w *World) { w.RestartServer(time.Hour) })
	Run(t, Options{Operator: workers, Replicas: 2}, func(w *World) {
		w.RestartServer(time.Minute)
		w.RestartServer(time.Second)
		w.Kill()
	})
}

// TestFailsAtStart has an operator that fails in its first processes.
func TestFailsAtStart(t *testing.T) {
	t.Parallel()
	var failures External[int]
	options := Options{Operator: func(ctx context.Context, mgr ctrl.Manager) error {
		if n := failures.In(ctx); *n < 3 {
			*n++
			return errors.New("not yet")
		}
		return workers(ctx, mgr)
	}}
	Run(t, options, func(w *World) {
		w.Create(original("a", ""))
		w.Pass(6 * time.Second)
		worked(w)
		w.Pass(2 * time.Second)
		worked(w, "operator a")
	})
}

// TestNeverStarts has operators that fail in each process, also after the first one that was set up.
func TestNeverStarts(t *testing.T) {
	t.Parallel()
	fails(t, Options{Operator: func(context.Context, ctrl.Manager) error {
		return errors.New("no such directory")
	}}, (*World).Rest,
		"operator does not start: 5 processes failed to be set up, the last one with: no such directory",
		"What happened:", "operator starts", "operator error: the process ends: no such directory", "times more")
	fails(t, Options{Operator: func(context.Context, ctrl.Manager) error { panic("broken") }}, (*World).Rest,
		"operator panics: broken", "processes_test.go")
	Run(t, Options{Operator: func(ctx context.Context, mgr ctrl.Manager) error {
		if works.In(ctx).processes > 0 {
			return errors.New("only once")
		}
		return workers(ctx, mgr)
	}}, func(w *World) {
		w.Pass(time.Minute)
		w.Kill()
		w.Pass(time.Hour)
	})
}

// TestFailsLater has an operator whose manager ends.
func TestFailsLater(t *testing.T) {
	t.Parallel()
	Run(t, Options{Operator: func(ctx context.Context, mgr ctrl.Manager) error {
		return errors.Join(workers(ctx, mgr), mgr.Add(runnable(func(context.Context) error {
			time.Sleep(time.Minute)
			return errors.New("worn out")
		})))
	}}, func(w *World) {
		w.Pass(time.Hour)
		if n := works.Of(w).processes; n != 17 {
			w.Errorf("there were %d processes", n)
		}
	})
}

type runnable func(ctx context.Context) error

func (r runnable) Start(ctx context.Context) error { return r(ctx) }

// TestDies has processes die at a request: what it had no effect for is done by the next one.
func TestDies(t *testing.T) {
	t.Parallel()
	for _, kind := range []FaultKind{DiesBefore, DiesAfter} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			options := Options{Operator: copies, Plan: Plan{Faults: []Fault{
				{Kind: kind, Actor: Operator, Verb: fault.Create},
				{Kind: kind, Actor: Operator, Verb: fault.Update, Times: 3},
				{Kind: kind, Actor: Operator, Verb: fault.Watch, Path: "/api/v1/secrets"},
				{Kind: kind, Actor: Operator, Verb: fault.Discover, Path: "/api"},
			}}}
			Run(t, options, func(w *World) {
				a := original("a", "1")
				w.Create(a)
				w.Rest()
				isCopied(w, "a", "1")
				w.Update(a, func() { a.Data["key"] = "2" })
				w.Rest()
				isCopied(w, "a", "2")
				if missed := options.Plan.Missed(w.network.Happened()); kind == DiesBefore && len(missed) > 0 {
					w.Errorf("these did not happen: %v", missed)
				}
			})
		})
	}
}

// TestDiesWhileCachesSync has processes die while their manager waits for the informer of an index.
func TestDiesWhileCachesSync(t *testing.T) {
	t.Parallel()
	for name, indexer := range map[string]func(ctrl.Manager) (client.FieldIndexer, error){
		"of the manager": func(mgr ctrl.Manager) (client.FieldIndexer, error) { return mgr.GetFieldIndexer(), nil },
		"of another cluster": func(mgr ctrl.Manager) (client.FieldIndexer, error) {
			other, err := crcluster.New(mgr.GetConfig())
			if err != nil {
				return nil, err
			}
			return other.GetFieldIndexer(), mgr.Add(other)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			starts := 0
			Run(t, Options{
				Operator: func(ctx context.Context, mgr ctrl.Manager) error {
					starts++
					in, err := indexer(mgr)
					if err != nil {
						return err
					}
					return in.IndexField(ctx, &corev1.ConfigMap{}, "data.a", func(client.Object) []string { return nil })
				},
				Plan: Plan{Faults: []Fault{
					{Kind: DiesBefore, Actor: Operator, Verb: fault.List, Path: "/api/v1/configmaps"},
					{Kind: DiesBefore, Actor: Operator, Verb: fault.Watch, Path: "/api/v1/configmaps"},
					{Kind: DiesAfter, Actor: Operator, Verb: fault.Watch, Path: "/api/v1/configmaps", Nth: 2},
				}},
			}, func(w *World) {
				w.Kill()
				w.Rest()
			})
			if starts < 3 {
				t.Errorf("%d processes are set up, want at least 3", starts)
			}
		})
	}
}

// TestReplicas has two replicas that work at the same time, with clocks that differ.
func TestReplicas(t *testing.T) {
	t.Parallel()
	plan := Plan{Clocks: []Clock{{Actor: "operator-2", Ahead: 2 * time.Hour}}}
	Run(t, Options{Operator: workers, Replicas: 2, Plan: plan}, func(w *World) {
		w.Create(original("a", ""))
		w.Pass(time.Second)
		worked(w, "operator a", "operator-2 a")
		ages := works.Of(w).ages
		if ages["operator"] != 0 || ages["operator-2"] != 2*time.Hour {
			w.Errorf("the ages are %v", ages)
		}
	})
}

// TestLeaderElection has two replicas of which one works. The other one takes over if that dies.
func TestLeaderElection(t *testing.T) {
	t.Parallel()
	for name, plan := range map[string]Plan{
		"true clocks": {}, "a wrong clock": {Clocks: []Clock{{Actor: "operator-2", Ahead: 2 * time.Hour}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			manager := ctrl.Options{LeaderElection: true, LeaderElectionID: "workers"}
			Run(t, Options{Operator: workers, Manager: manager, Replicas: 2, Plan: plan}, func(w *World) {
				w.Create(original("a", ""))
				w.Pass(time.Hour)
				by := works.Of(w).take()
				if len(by) != 1 {
					w.Fatalf("who worked: %q", by)
				}
				leader, follower := Operator, "operator-2"
				if by[0] != "operator a" {
					leader, follower = follower, leader
				}
				w.Stop(leader)
				w.Create(original("b", ""))
				w.Pass(10 * time.Second)
				worked(w)
				w.Pass(30 * time.Second)
				worked(w, follower+" a", follower+" b")
				w.Start(leader)
				w.Create(original("c", ""))
				w.Pass(time.Hour)
				worked(w, follower+" c")
				w.Kill(follower)
				w.Create(original("d", ""))
				w.Pass(10 * time.Second)
				worked(w)
				w.Pass(30 * time.Second)
				if by := works.Of(w).take(); len(by) != 4 {
					w.Errorf("who worked after the leader died: %q", by)
				}
				w.Idle(10 * time.Minute)
				w.RestartServer(time.Minute)
				w.Pass(10 * time.Minute)
				_ = works.Of(w).take()
				w.Create(original("e", ""))
				w.Pass(time.Minute)
				if by := works.Of(w).take(); len(by) != 1 {
					w.Errorf("who worked after a restart: %q", by)
				}
			})
		})
	}
}

// TestServerRestarts restarts the API server in the middle of a request and of steps of the story.
func TestServerRestarts(t *testing.T) {
	t.Parallel()
	options := Options{Operator: copies, Plan: Plan{
		Seed: 1, Latency: 10 * time.Second, Actors: []string{Operator, user},
		Faults: []Fault{
			{Kind: Restarts, Actor: Operator, Verb: fault.Create, Delay: 5 * time.Second},
			{Kind: Restarts, Actor: user, Verb: fault.Update},
		},
	}}
	Run(t, options, func(w *World) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 20 {
				w.RestartServer(time.Second)
				time.Sleep(7 * time.Second)
			}
		}()
		a := original("a", "1")
		w.Create(a)
		w.Update(a, func() { a.Data["key"] = "2" })
		<-done
		w.Rest()
		isCopied(w, "a", "2")
	})
}

// TestActors has somebody edit and delete at the same time as the user and the operator.
func TestActors(t *testing.T) {
	t.Parallel()
	Run(t, Options{Operator: copies, Plan: Plan{Seed: 2, Latency: time.Second}}, func(w *World) {
		a := original("a", "1")
		w.Create(a)
		w.Rest()
		var others sync.WaitGroup
		others.Go(func() {
			editor := w.As("editor")
			for range 20 {
				copied := secret("a")
				err := editor.Client.Get(context.Background(), client.ObjectKeyFromObject(copied), copied)
				if err == nil {
					copied.Data["key"] = []byte("other")
					_ = editor.Client.Update(context.Background(), copied)
				}
				time.Sleep(time.Second)
			}
		})
		others.Go(func() {
			for range 10 {
				_ = w.As("eraser").Client.Delete(context.Background(), secret("a"))
				time.Sleep(3 * time.Second)
			}
		})
		for range 10 {
			w.Update(a, func() { a.Data["key"] += "1" })
			time.Sleep(2 * time.Second)
		}
		others.Wait()
		w.Rest()
		isCopied(w, "a", "11111111111")
	})
}

// TestHalfway ends worlds that could not be made.
func TestHalfway(t *testing.T) {
	t.Parallel()
	fails(t, Options{Objects: []client.Object{original("a", ""), original("a", "")}}, (*World).Rest,
		"the simulation does not start: options: Objects: ConfigMap default/a:", "already exists")
	definitions := ReadDefinitions(t, "testdata/broken.yaml")
	fails(t, Options{Definitions: definitions}, (*World).Rest, "the simulation does not start: create Custom")
	fails(t, Options{Plan: Plan{
		Actors: []string{cluster}, Faults: []Fault{{Kind: Fails, Actor: cluster, Times: 1000000}},
	}}, (*World).Rest, "the simulation does not start: start the controllers")
}
