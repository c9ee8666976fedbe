package controlplane_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
)

func TestCountRequests(t *testing.T) {
	for _, tc := range []struct{ method, url, want string }{
		{"GET", "/api/v1/namespaces/a/configmaps/b", "get /api/v1/namespaces/a/configmaps/b"},
		{"GET", "/api/v1/namespaces/a/configmaps?limit=5", "list /api/v1/namespaces/a/configmaps"},
		{"GET", "/api/v1/namespaces/a/configmaps?watch=true", "watch /api/v1/namespaces/a/configmaps"},
		{"GET", "/api/v1/configmaps?watch=1&fieldSelector=x", "watch /api/v1/configmaps"},
		{"GET", "/api/v1/configmaps?watch=false", "list /api/v1/configmaps"},
		{"GET", "/api/v1/namespaces", "list /api/v1/namespaces"},
		{"GET", "/api/v1/namespaces/a", "get /api/v1/namespaces/a"},
		{"PUT", "/api/v1/namespaces/a/finalize", "update /api/v1/namespaces/a/finalize"},
		{"DELETE", "/api/v1/namespaces/a", "delete /api/v1/namespaces/a"},
		{"DELETE", "/api/v1/nodes/a", "delete /api/v1/nodes/a"},
		{"DELETE", "/apis/apps/v1/namespaces/a/deployments", "deletecollection /apis/apps/v1/namespaces/a/deployments"},
		{"POST", "/apis/apps/v1/namespaces/a/deployments", "create /apis/apps/v1/namespaces/a/deployments"},
		{"PATCH", "/apis/g/v1/namespaces/a/tenants/b/status", "patch /apis/g/v1/namespaces/a/tenants/b/status"},
		{"PUT", "/apis/g/v1/tenants/b/status", "update /apis/g/v1/tenants/b/status"},
		{"GET", "/apis/g/v1/tenants", "list /apis/g/v1/tenants"},
		{"GET", "/apis/g/v1", "get /apis/g/v1"},
		{"GET", "/api", "get /api"},
		{"GET", "/api/v1", "get /api/v1"},
		{"GET", "/healthz", "get /healthz"},
		{"GET", "/", "get /"},
		{"POST", "/strange", "post /strange"},
	} {
		t.Run(tc.method+" "+tc.url, func(t *testing.T) {
			server, requests, send := countingClient(t)
			defer server.Close()
			send(tc.method, tc.url)
			if diff := cmp.Diff("1 × "+tc.want, requests.String()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestRequestsSumUp(t *testing.T) {
	server, requests, send := countingClient(t)
	defer server.Close()
	if got, want := requests.String(), "no requests"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			send("GET", "/api/v1/pods?watch=true")
			send("GET", "/api/v1/pods")
			send("POST", "/api/v1/namespaces/a/pods")
			send("POST", "/api/v1/namespaces")
		})
	}
	wg.Wait()
	got := map[string]int{"total": requests.Total(), "watches": requests.Watches(), "writes": requests.Writes()}
	if diff := cmp.Diff(map[string]int{"total": 30, "watches": 10, "writes": 20}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	counts := requests.Counts()
	if n := counts[controlplane.Request{Verb: "create", Path: "/api/v1/namespaces"}]; n != 10 {
		t.Errorf("%d namespaces were created, want 10", n)
	}
	want := "10 × create /api/v1/namespaces\n10 × create /api/v1/namespaces/a/pods\n" +
		"10 × list /api/v1/pods\n10 × watch /api/v1/pods"
	if diff := cmp.Diff(want, requests.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	requests.Reset()
	if requests.Total() != 0 || requests.Watches() != 0 {
		t.Errorf("the requests after Reset are %s, want none", requests)
	}
	if len(counts) == 0 {
		t.Error("a copy that was handed out is empty, want it as it was before Reset")
	}
}

func TestCountRequestsLeavesTheConfigurationAlone(t *testing.T) {
	config := &rest.Config{Host: "http://example.test"}
	counted, _ := controlplane.CountRequests(config)
	if config.WrapTransport != nil {
		t.Error("the original configuration counts requests too, want it left alone")
	}
	if counted.Host != config.Host {
		t.Errorf("the host is %s, want %s", counted.Host, config.Host)
	}
}

// countingClient returns a function that sends requests through a client whose requests are counted.
func countingClient(t *testing.T) (*httptest.Server, *controlplane.Requests, func(method, url string)) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	config, requests := controlplane.CountRequests(&rest.Config{Host: server.URL})
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return server, requests, func(method, url string) {
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL+url, nil)
		if err != nil {
			t.Error(err)
			return
		}
		response, err := client.Do(request)
		if err != nil {
			t.Error(err)
			return
		}
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
	}
}
