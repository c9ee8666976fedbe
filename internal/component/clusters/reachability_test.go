package clusters_test

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/component/clusters"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"

	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// apiServer answers all requests alike, over TLS, and counts its connections.
type apiServer struct {
	*httptest.Server

	// answer is called for each request.
	answer   atomic.Pointer[http.HandlerFunc]
	requests atomic.Int64

	mu     sync.Mutex
	states map[net.Conn]http.ConnState
	made   int
}

func versionOf(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"major": "1", "minor": "36"}`))
}

func newAPIServer(t *testing.T) *apiServer {
	t.Helper()
	s := &apiServer{states: map[net.Conn]http.ConnState{}}
	s.answers(versionOf)
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		(*s.answer.Load())(w, r)
	}))
	s.Config.ConnState = func(conn net.Conn, state http.ConnState) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.states[conn] = state; state == http.StateNew {
			s.made++
		}
		if state == http.StateClosed {
			delete(s.states, conn)
		}
	}
	// With HTTP/1.1, a connection is idle as soon as the answer was read, so that it can be closed then.
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *apiServer) answers(with http.HandlerFunc) { s.answer.Store(&with) }

// noAnswer waits until the client gives up. A handler that returned then would send an answer, which the client may
// still read.
func noAnswer(_ http.ResponseWriter, r *http.Request) {
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}

// open returns how many connections are open, and how many there have been.
func (s *apiServer) open() (open, made int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.states), s.made
}

// identity is one of a user of the server.
func (s *apiServer) identity(token string) clusters.Identity {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return clusters.Identity{KubeConfig: kubeConfig(user{"token": token}, cluster{"server": s.URL, "certificate-authority-data": ca})}
}

// A kubeconfig that changes each hour leaves neither connections nor clusters behind.
func TestRotatedKubeConfigsLeaveNothing(t *testing.T) {
	server := newAPIServer(t)
	pool := &clusters.Pool{}
	const rotations = 40
	for i := range rotations {
		made := get(t, at(t, time.Duration(i)*time.Hour), pool, server.identity(fmt.Sprint("token-", i)))
		if _, err := made.Discovery().ServerVersion(); err != nil {
			t.Fatal(err)
		}
		if pool.Kept() != 1 {
			t.Fatalf("after %d rotations %d clusters are kept, want 1", i, pool.Kept())
		}
		// The connection of the former cluster is closed at once, and not when it was idle for long.
		controlplanetest.Eventually(t, "connections of former clusters stay open", func(context.Context) error {
			if open, made := server.open(); open > 1 {
				return fmt.Errorf("%d of %d are open", open, made)
			}
			return nil
		})
	}
	if _, made := server.open(); made != rotations {
		t.Errorf("%d connections were made, want one for each of %d kubeconfigs", made, rotations)
	}
}

// Nobody can use the connections of another kubeconfig, and a cluster that was dropped can still be used.
func TestADroppedClusterStaysUsable(t *testing.T) {
	server := newAPIServer(t)
	pool := &clusters.Pool{}
	dropped := get(t, at(t, 0), pool, server.identity("a"))
	if _, err := dropped.Discovery().ServerVersion(); err != nil {
		t.Fatal(err)
	}
	get(t, at(t, time.Hour), pool, server.identity("b"))
	if _, err := dropped.Discovery().ServerVersion(); err != nil {
		t.Error(err)
	}
	// It is not in the pool any more.
	dropped.HTTPClient.CloseIdleConnections()
	again := get(t, at(t, time.Hour), pool, server.identity("a"))
	if again == dropped || again.ID != dropped.ID {
		t.Errorf("the cluster is the dropped one or has the ID %s, want a new one with the ID %s", again.ID, dropped.ID)
	}
}

// Requests to other clusters are in the metrics of controller-runtime.
func TestRequestsAreInTheMetrics(t *testing.T) {
	server := newAPIServer(t)
	metrics.RegisterRESTClientMetrics(metrics.MetricRequestLatency)
	made := get(t, at(t, 0), &clusters.Pool{}, server.identity("a"))
	for range 3 {
		if _, err := made.Discovery().ServerVersion(); err != nil {
			t.Fatal(err)
		}
	}
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	host := strings.TrimPrefix(server.URL, "https://")
	counted := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "host" && label.GetValue() == host {
					counted[family.GetName()] += metric.GetCounter().GetValue() + float64(metric.GetHistogram().GetSampleCount())
				}
			}
		}
	}
	for _, name := range []string{"rest_client_requests_total", "rest_client_request_duration_seconds"} {
		if counted[name] != 3 {
			t.Errorf("%s has %v requests of %s, want 3", name, counted[name], host)
		}
	}
}

// A server that hangs ends a request within the limit. Until it is asked again, requests fail at once.
func TestAClusterThatHangs(t *testing.T) {
	server := newAPIServer(t)
	server.answers(noAnswer)
	const limit = 200 * time.Millisecond
	made := get(t, at(t, 0), &clusters.Pool{Timeout: limit}, server.identity("a"))
	changes := atomic.Int64{}
	defer made.Reachability.Listen(func() { changes.Add(1) })()
	if err := made.Reachability.Check(t.Context()); err != nil {
		t.Fatalf("nothing has failed yet: %v", err)
	}

	began := time.Now()
	_, err := made.Discovery().ServerVersion()
	took := time.Since(began)
	failed := wantUnreachable(t, err, "does not answer in time")
	if took < limit || took > 20*time.Second {
		t.Errorf("the request took %s, want %s and not much more", took, limit)
	}
	if failed.RetryAfter <= 0 || failed.RetryAfter > time.Second {
		t.Errorf("the next request is due after %s, want within a second", failed.RetryAfter)
	}
	asked := server.requests.Load()
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			_, err := made.Discovery().ServerVersion()
			wantUnreachable(t, err, "does not answer in time")
			wantUnreachable(t, made.Reachability.Check(t.Context()), "does not answer in time")
		})
	}
	wg.Wait()
	// On a busy machine, one may be due by now.
	if more := server.requests.Load() - asked; more != 0 && time.Since(began) < limit+time.Second {
		t.Errorf("there are %d requests before one is due, want none", more)
	}

	// It answers again.
	server.answers(versionOf)
	controlplanetest.Eventually(t, "it is not found out that the cluster answers", made.Reachability.Check)
	if changes.Load() != 2 {
		t.Errorf("%d changes were told, want 2", changes.Load())
	}
	before := server.requests.Load()
	if err := made.Reachability.Check(t.Context()); err != nil || server.requests.Load() != before {
		t.Errorf("the check of a cluster that answers ends with %v after %d requests, want no error and none", err,
			server.requests.Load()-before)
	}
}

func wantUnreachable(t *testing.T, err error, problem string) *clusters.UnreachableError {
	t.Helper()
	var failed *clusters.UnreachableError
	if !errors.As(err, &failed) {
		t.Errorf("want an UnreachableError, got %v", err)
		return &clusters.UnreachableError{}
	}
	if failed.Problem != problem {
		t.Errorf("want %q, got %q", problem, failed.Problem)
	}
	return failed
}

// What does not answer is named in words that never change.
func TestProblems(t *testing.T) {
	closed := newAPIServer(t)
	closed.Close()
	server := newAPIServer(t)
	rejecting := newAPIServer(t)
	rejecting.answers(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no "+hidden, http.StatusUnauthorized) })
	hangingUp := newAPIServer(t)
	hangingUp.answers(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	with := func(c cluster) clusters.Identity {
		return clusters.Identity{KubeConfig: kubeConfig(user{"token": hidden}, c)}
	}
	for name, tc := range map[string]struct {
		identity clusters.Identity
		want     string
	}{
		"refused":      {closed.identity("a"), "does not answer: connection refused"},
		"no such host": {with(cluster{"server": "https://nowhere.invalid"}), "does not answer: the name of its host cannot be resolved"},
		"not trusted":  {with(cluster{"server": server.URL}), "cannot be trusted: its certificate is signed by an unknown authority"},
		"another host": {with(cluster{"server": server.URL, "certificate-authority-data": ca, "tls-server-name": "other"}),
			"cannot be trusted: its certificate is for another host"},
		"rejected": {rejecting.identity("a"), "rejects the credentials of the kubeconfig"},
		"hung up":  {hangingUp.identity("a"), "does not answer: the connection failed"},
	} {
		t.Run(name, func(t *testing.T) {
			made := get(t, at(t, 0), &clusters.Pool{}, tc.identity)
			_, first := made.Discovery().ServerVersion()
			if first == nil {
				t.Fatal("the cluster answers, want an error")
			}
			err := made.Reachability.Check(t.Context())
			wantUnreachable(t, err, tc.want)
			for _, err := range []error{first, err} {
				if strings.Contains(err.Error(), hidden) {
					t.Errorf("the error shows what is secret, want it hidden: %v", err)
				}
			}
		})
	}
}

// A caller that gives up says nothing about the cluster.
func TestACallerThatGivesUp(t *testing.T) {
	server := newAPIServer(t)
	server.answers(noAnswer)
	made := get(t, at(t, 0), &clusters.Pool{}, server.identity("a"))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/version", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if response, err := made.HTTPClient.Do(request); err == nil {
		_ = response.Body.Close()
		t.Fatal("the request has an answer, want an error")
	}
	if err := made.Reachability.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// A watch may be answered after minutes. It does not keep others from finding out that the cluster answers.
func TestAWatchIsNoProbe(t *testing.T) {
	server := newAPIServer(t)
	server.answers(noAnswer)
	made := get(t, at(t, 0), &clusters.Pool{Timeout: 500 * time.Millisecond}, server.identity("a"))
	_, err := made.Discovery().ServerVersion()
	wantUnreachable(t, err, "does not answer in time")

	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	watching := make(chan struct{}, 1)
	server.answers(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") != "" {
			watching <- struct{}{}
			noAnswer(w, r)
		}
		versionOf(w, r)
	})
	controlplanetest.Eventually(t, "it is not found out that the cluster answers", func(context.Context) error {
		// When the first pause is over, the watch comes first. It fails at once, or has no answer.
		failed := make(chan struct{})
		wg.Go(func() {
			defer close(failed)
			url := server.URL + "/api/v1/pods?watch=true"
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
			if err != nil {
				t.Error(err)
				return
			}
			if response, err := made.HTTPClient.Do(request); err == nil {
				_ = response.Body.Close()
			}
		})
		select {
		case <-failed:
		case <-watching:
		}
		return made.Reachability.Check(t.Context())
	})
}
