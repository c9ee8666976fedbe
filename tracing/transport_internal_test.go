package tracing

import (
	"testing"

	"k8s.io/client-go/rest"
)

// The paths of an API server behind another server begin with a path of that.
func TestBaseOf(t *testing.T) {
	for host, want := range map[string]string{
		"https://10.0.0.1:6443":                "",
		"10.0.0.1":                             "",
		"https://rancher.example.com/k8s/c-1/": "/k8s/c-1",
		"https://rancher.example.com/k8s/c-1":  "/k8s/c-1",
		"://":                                  "",
	} {
		if got := baseOf(&rest.Config{Host: host}); got != want {
			t.Errorf("the paths at %s begin with %q, want %q", host, got, want)
		}
	}
}

func TestTargetOf(t *testing.T) {
	for path, want := range map[string]target{
		"/api/v1/namespaces/default/configmaps/a": {
			"configmaps", "/api/v1/namespaces/{namespace}/configmaps/{name}", "default"},
		"/apis/apps/v1/namespaces/default/deployments/a/status": {
			"deployments/status", "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/status", "default"},
		"/apis/apps/v1/deployments":      {"deployments", "/apis/apps/v1/deployments", ""},
		"/api/v1/namespaces":             {"namespaces", "/api/v1/namespaces", ""},
		"/api/v1/namespaces/a":           {"namespaces", "/api/v1/namespaces/{name}", ""},
		"/api/v1/namespaces/a/finalize":  {"namespaces/finalize", "/api/v1/namespaces/{name}/finalize", ""},
		"/api/v1/namespaces/a/pods":      {"pods", "/api/v1/namespaces/{namespace}/pods", "a"},
		"/api/v1/nodes/a/proxy/secret/x": {"nodes/proxy", "/api/v1/nodes/{name}/proxy/{path}", ""},
		"/apis/apps/v1":                  {"/apis/apps/v1", "/apis/apps/v1", ""},
		"/api":                           {"/api", "/api", ""},
		"/version":                       {"/version", "/version", ""},
		"/healthz/a":                     {"/healthz", "/healthz", ""},
		"":                               {"/", "/", ""},
	} {
		if got := targetOf(path); got != want {
			t.Errorf("%s is for %+v, want %+v", path, got, want)
		}
	}
}
