package clusters_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/component/clusters"
	rtime "github.com/espalier-dev/espalier/time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
)

var start = time.Date(2025, 2, 3, 4, 5, 6, 0, time.UTC)

// at is a request at a time.
func at(t *testing.T, sinceStart time.Duration) context.Context {
	return rtime.StashNow(t.Context(), start.Add(sinceStart))
}

func home() *rest.Config {
	return &rest.Config{Host: "https://home.example.com", BearerToken: "of-the-operator", UserAgent: "gardener/v1"}
}

func get(t *testing.T, ctx context.Context, pool *clusters.Pool, identity clusters.Identity) *clusters.Cluster {
	t.Helper()
	cluster, err := pool.Get(ctx, identity)
	if err != nil {
		t.Fatal(err)
	}
	return cluster
}

func TestEachIdentityHasItsCluster(t *testing.T) {
	remote := kubeConfig(user{"token": "a"}, nil)
	identities := map[string]clusters.Identity{
		"home":                {},
		"user":                {User: "ada"},
		"user and group":      {User: "ada", Groups: []string{"dev"}},
		"user and groups":     {User: "ada", Groups: []string{"dev", "ops"}},
		"the groups in one":   {User: "ada", Groups: []string{"devops"}},
		"group as the user":   {User: "adadev"},
		"remote":              {KubeConfig: remote},
		"remote, user":        {KubeConfig: remote, User: "ada"},
		"another remote user": {KubeConfig: kubeConfig(user{"token": "b"}, nil)},
	}
	pool := &clusters.Pool{Home: home()}
	seen := map[string]string{}
	for name, identity := range identities {
		cluster := get(t, at(t, 0), pool, identity)
		if other, ok := seen[cluster.ID]; ok {
			t.Errorf("%s and %s have the same ID %s, want different ones", name, other, cluster.ID)
		}
		seen[cluster.ID] = name
		again := clusters.Identity{
			KubeConfig: slices.Clone(identity.KubeConfig),
			User:       identity.User,
			Groups:     slices.Clone(identity.Groups),
		}
		slices.Reverse(again.Groups)
		if get(t, at(t, time.Minute), pool, again) != cluster {
			t.Errorf("%s has another cluster the next time, want the same", name)
		}
	}
	if want := len(identities); pool.Kept() != want {
		t.Errorf("want %d clusters kept, got %d", want, pool.Kept())
	}
}

// TestConfigs: a cluster has no limit of requests that the operator does not have, and each request has a deadline.
func TestConfigs(t *testing.T) {
	kubeconfig := kubeConfig(user{"token": "remote-token"}, cluster{"tls-server-name": "api"})
	tests := map[string]struct {
		home     *rest.Config
		identity clusters.Identity
		// want are the differences to make to a config without limits.
		want rest.Config
	}{
		"home": {home(), clusters.Identity{},
			rest.Config{Host: "https://home.example.com", BearerToken: "of-the-operator", UserAgent: "gardener/v1", QPS: -1}},
		"home with a limit": {&rest.Config{Host: "https://home.example.com", QPS: 20, Burst: 30}, clusters.Identity{},
			rest.Config{Host: "https://home.example.com", QPS: 20, Burst: 30}},
		"user": {home(), clusters.Identity{User: "ada"},
			rest.Config{Host: "https://home.example.com", BearerToken: "of-the-operator", UserAgent: "gardener/v1", QPS: -1,
				Impersonate: rest.ImpersonationConfig{UserName: "ada"}}},
		"user and groups": {home(), clusters.Identity{User: "ada", Groups: []string{"ops", "dev"}},
			rest.Config{Host: "https://home.example.com", BearerToken: "of-the-operator", UserAgent: "gardener/v1", QPS: -1,
				Impersonate: rest.ImpersonationConfig{UserName: "ada", Groups: []string{"ops", "dev"}}}},
		"remote": {home(), clusters.Identity{KubeConfig: kubeconfig},
			rest.Config{Host: "https://remote.example.com:6443", BearerToken: "remote-token", UserAgent: "gardener/v1", QPS: -1,
				TLSClientConfig: rest.TLSClientConfig{ServerName: "api"}}},
		"remote, user": {home(), clusters.Identity{KubeConfig: kubeconfig, User: "ada"},
			rest.Config{Host: "https://remote.example.com:6443", BearerToken: "remote-token", UserAgent: "gardener/v1", QPS: -1,
				TLSClientConfig: rest.TLSClientConfig{ServerName: "api"},
				Impersonate:     rest.ImpersonationConfig{UserName: "ada"}}},
		"remote, without a home that impersonates": {&rest.Config{Impersonate: rest.ImpersonationConfig{UserName: "bob"}},
			clusters.Identity{KubeConfig: kubeconfig, User: "ada"},
			rest.Config{Host: "https://remote.example.com:6443", BearerToken: "remote-token", QPS: -1,
				TLSClientConfig: rest.TLSClientConfig{ServerName: "api"},
				Impersonate:     rest.ImpersonationConfig{UserName: "ada"}}},
		"remote, without a home": {nil, clusters.Identity{KubeConfig: kubeconfig},
			rest.Config{Host: "https://remote.example.com:6443", BearerToken: "remote-token", QPS: -1,
				TLSClientConfig: rest.TLSClientConfig{ServerName: "api"}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := rest.CopyConfig(get(t, at(t, 0), &clusters.Pool{Home: tc.home}, tc.identity).Config)
			if got.WrapTransport == nil {
				t.Error("the configuration wraps no transport, want a deadline for requests")
			}
			if remote := len(tc.identity.KubeConfig) > 0; remote != (got.Proxy != nil) {
				t.Errorf("a transport of its own: want %t", remote)
			}
			got.WrapTransport, got.Proxy = nil, nil
			if diff := cmp.Diff(tc.want, *got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// A timeout of the operator's config holds for requests, and does not end watches.
func TestATimeoutOfHomeIsForRequests(t *testing.T) {
	var until []time.Duration
	pool := &clusters.Pool{
		Home: &rest.Config{Host: "https://home.example.com", Timeout: time.Minute},
		Wrap: func(next http.RoundTripper) http.RoundTripper { return next },
	}
	pool.Home.Wrap(func(http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			deadline, ok := r.Context().Deadline()
			if ok {
				until = append(until, time.Until(deadline))
			} else {
				until = append(until, 0)
			}
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
		})
	})
	made := get(t, at(t, 0), pool, clusters.Identity{})
	if made.Config.Timeout != 0 || made.HTTPClient.Timeout != 0 {
		t.Errorf("watches end after %s and %s, want no timeout", made.Config.Timeout, made.HTTPClient.Timeout)
	}
	for _, target := range []string{"/api/v1/pods", "/api/v1/pods?watch=true"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://home.example.com"+target, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := made.HTTPClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
	}
	if len(until) != 2 || until[0] <= clusters.RequestTimeout || until[0] > time.Minute || until[1] != 0 {
		t.Errorf("the deadlines are in %v, want one of a minute for the request, and none for the watch", until)
	}
}

func TestHomeIsNotChanged(t *testing.T) {
	pool := &clusters.Pool{Home: home(), Wrap: func(next http.RoundTripper) http.RoundTripper { return next }}
	get(t, at(t, 0), pool, clusters.Identity{User: "ada"})
	if diff := cmp.Diff(*home(), *pool.Home); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestWrongIdentities: a client that cannot be made is an error, and is not kept.
func TestWrongIdentities(t *testing.T) {
	impersonating := home()
	impersonating.Impersonate.Groups = []string{"dev"}
	const already = "the client already impersonates a user, and cannot impersonate another one"
	tests := map[string]struct {
		home     *rest.Config
		identity clusters.Identity
		want     string
	}{
		"groups without a user": {home(), clusters.Identity{Groups: []string{"dev"}}, "groups can only be impersonated together with a user"},
		"home impersonates":     {impersonating, clusters.Identity{User: "ada"}, already},
		"the kubeconfig impersonates": {home(),
			clusters.Identity{User: "ada", KubeConfig: kubeConfig(user{"token": "t", "as": "bob"}, nil)}, already},
		"no home": {nil, clusters.Identity{User: "ada"},
			"there is neither a kubeconfig, nor a config of the operator's own cluster"},
		"no certificates": {&rest.Config{Host: "https://x", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("x")}}, clusters.Identity{},
			"could not make an HTTP client: unable to load root certificates: unable to parse bytes as PEM block"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pool := &clusters.Pool{Home: tc.home}
			for range 2 {
				cluster, err := pool.Get(at(t, 0), tc.identity)
				if cluster != nil || err == nil || err.Error() != tc.want {
					t.Errorf("want %q, got %v", tc.want, err)
				}
			}
			if pool.Kept() != 0 {
				t.Errorf("%d clusters are kept, want none", pool.Kept())
			}
		})
	}
}

// The time of the requests counts, not the time of the wall clock.
func TestL10ClustersThatAreNotAskedForGo(t *testing.T) {
	ada, bob := clusters.Identity{User: "ada"}, clusters.Identity{User: "bob"}
	pool := &clusters.Pool{Home: home()}
	first := get(t, at(t, 0), pool, ada)
	get(t, at(t, 0), pool, bob)

	if get(t, at(t, 15*time.Minute), pool, ada) != first {
		t.Error("after 15 minutes the cluster is another, want the same")
	}
	// This request began before the one above.
	get(t, at(t, 5*time.Minute), pool, ada)
	if get(t, at(t, 30*time.Minute), pool, ada) != first {
		t.Error("15 minutes after the last use the cluster is another, want the same")
	}
	if pool.Kept() != 1 {
		t.Errorf("%d clusters are kept, want the 1 that was asked for lately", pool.Kept())
	}

	second := get(t, at(t, 45*time.Minute+time.Second), pool, ada)
	if second == first {
		t.Error("the cluster is still the same, want another")
	}
	if second.ID != first.ID {
		t.Errorf("the same identity has the ID %s, want %s", second.ID, first.ID)
	}
}

// A cluster that has expired is not returned, also between two evictions.
func TestAnExpiredClusterIsNotReturned(t *testing.T) {
	ada := clusters.Identity{User: "ada"}
	pool := &clusters.Pool{Home: home()}
	first := get(t, at(t, 0), pool, ada)
	get(t, at(t, 14*time.Minute+50*time.Second), pool, clusters.Identity{})
	if get(t, at(t, 15*time.Minute+10*time.Second), pool, ada) == first {
		t.Error("the cluster is still the same, want another")
	}
}

func TestManyAskAtOnce(t *testing.T) {
	pool := &clusters.Pool{Home: home()}
	const identities = 8
	var mu sync.Mutex
	got := make([]map[*clusters.Cluster]bool, identities)
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			n := i % identities
			cluster, err := pool.Get(at(t, 0), clusters.Identity{User: fmt.Sprint("user-", n)})
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if got[n] == nil {
				got[n] = map[*clusters.Cluster]bool{}
			}
			got[n][cluster] = true
		})
	}
	wg.Wait()
	for n, made := range got {
		if len(made) != 1 {
			t.Errorf("identity %d has %d clusters, want 1", n, len(made))
		}
	}
}

// Another cluster gets nothing of what the operator is known by in its own.
func TestWhatIsSent(t *testing.T) {
	var mu sync.Mutex
	var requests []http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		requests = append(requests, r.Header.Clone())
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"major": "1", "minor": "36"}`))
	}))
	defer server.Close()

	counted := 0
	operator := home()
	operator.Wrap(func(next http.RoundTripper) http.RoundTripper {
		t.Error("the transport of the operator's own cluster is used, want another")
		return next
	})
	pool := &clusters.Pool{Home: operator, Wrap: func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			counted++
			return next.RoundTrip(r)
		})
	}}
	remote := get(t, at(t, 0), pool, clusters.Identity{
		KubeConfig: kubeConfig(nil, cluster{"server": server.URL}),
		User:       "ada", Groups: []string{"dev", "ops"},
	})
	if _, err := remote.Discovery().ServerVersion(); err != nil {
		t.Fatal(err)
	}
	if len(requests) != 1 || counted != 1 {
		t.Fatalf("%d requests were made and %d counted, want 1 and 1", len(requests), counted)
	}
	for name, want := range map[string]string{
		"User-Agent": "gardener/v1", "Impersonate-User": "ada", "Impersonate-Group": "dev,ops", "Authorization": "",
	} {
		if got := strings.Join(requests[0].Values(name), ","); got != want {
			t.Errorf("%s: want %q, got %q", name, want, got)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

func BenchmarkGet(b *testing.B) {
	pool := &clusters.Pool{Home: home()}
	identity := clusters.Identity{KubeConfig: kubeConfig(user{"token": "a"}, nil), User: "ada", Groups: []string{"dev"}}
	ctx := rtime.StashNow(b.Context(), start)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := pool.Get(ctx, identity); err != nil {
			b.Fatal(err)
		}
	}
}
