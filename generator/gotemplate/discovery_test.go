package gotemplate_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/generator/gotemplate"
	rtime "github.com/espalier-dev/espalier/time"
)

// server is what a discovery client says.
type server struct {
	discovery.DiscoveryInterface

	mu        sync.Mutex
	requests  int
	version   string
	err       error
	resources []*metav1.APIResourceList
	failed    map[schema.GroupVersion]error
}

func (s *server) ServerVersion() (*version.Info, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	return &version.Info{Major: "1", GitVersion: s.version}, s.err
}

func (s *server) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		return nil, s.resources, &discovery.ErrGroupDiscoveryFailed{Groups: s.failed}
	}
	return nil, s.resources, nil
}

func kinds(version string, names ...string) *metav1.APIResourceList {
	list := &metav1.APIResourceList{GroupVersion: version}
	for _, name := range names {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: name, Kind: name})
	}
	return list
}

var start = time.Date(2025, 2, 3, 4, 5, 6, 0, time.UTC)

func discover(t *testing.T, from discovery.DiscoveryInterface, after time.Duration) *gotemplate.Served {
	t.Helper()
	served, err := gotemplate.Discover(discovering(from, after))
	if err != nil {
		t.Fatal(err)
	}
	return served
}

func discovering(from discovery.DiscoveryInterface, after time.Duration) context.Context {
	return generator.NewContext(rtime.StashNow(context.Background(), start.Add(after))).WithDiscovery(from)
}

func TestDiscover(t *testing.T) {
	s := &server{version: "v1.34.0", resources: []*metav1.APIResourceList{
		kinds("v1", "pods", "configmaps"), nil, kinds("apps/v1", "deployments", "deployments/status"), kinds("v1"),
	}}
	first := discover(t, s, 0)
	if len(first.Resources) != 2 || first.Resources[0].GroupVersion != "apps/v1" || first.Resources[1].APIResources[0].Name != "configmaps" {
		t.Errorf("the resources are %v, want them sorted: apps/v1 and then v1, with configmaps first", first.Resources)
	}
	if first.Version.GitVersion != "v1.34.0" || first.Identity() == "" {
		t.Errorf("the version is %v and the identity %q, want v1.34.0 and some", first.Version, first.Identity())
	}

	// Another order is the same, another client asks for itself.
	other := &server{version: "v1.34.0", resources: []*metav1.APIResourceList{
		kinds("apps/v1", "deployments/status", "deployments"), kinds("v1", "configmaps", "pods"),
	}}
	if got := discover(t, other, 0).Identity(); got != first.Identity() || other.requests != 1 {
		t.Errorf("the identity is %q after %d requests, want %q after 1", got, other.requests, first.Identity())
	}

	s.resources = append(s.resources, kinds("example.com/v1", "things"))
	for _, step := range []struct {
		after    time.Duration
		requests int
		changed  bool
	}{{time.Minute, 1, false}, {10*time.Minute - 1, 1, false}, {10 * time.Minute, 2, true}, {11 * time.Minute, 2, true}, {time.Hour, 3, true}} {
		got := discover(t, s, step.after)
		if s.requests != step.requests || (got.Identity() != first.Identity()) != step.changed {
			t.Errorf("after %s there are %d requests, and the identity changed: %t, want %d and %t", step.after,
				s.requests, got.Identity() != first.Identity(), step.requests, step.changed)
		}
	}

	before := discover(t, s, time.Hour)
	s.version = "v1.35.0"
	if got := discover(t, s, 2*time.Hour); got.Identity() == before.Identity() {
		t.Error("another version has the same identity, want another")
	}
}

func TestDiscoverWithoutAnAnswerOfAGroup(t *testing.T) {
	metrics, custom := kinds("metrics.k8s.io/v1beta1", "pods"), schema.GroupVersion{Group: "custom.example.com", Version: "v1"}
	s := &server{version: "v1", resources: []*metav1.APIResourceList{kinds("v1", "pods"), metrics}}
	before := discover(t, s, 0)
	s.resources, s.failed = s.resources[:1], map[schema.GroupVersion]error{
		{Group: "metrics.k8s.io", Version: "v1beta1"}: errors.New("down"),
	}
	if got := discover(t, s, 15*time.Minute); got.Identity() != before.Identity() {
		t.Errorf("the resources are %v, want what did not answer as before", got.Resources)
	}
	s.failed[custom] = errors.New("down")
	got := discover(t, s, 16*time.Minute)
	if len(got.Resources) != 3 || got.Resources[0].GroupVersion != custom.String() || len(got.Resources[0].APIResources) != 0 {
		t.Errorf("the resources are %v, want 3 groups, the first %s and empty", got.Resources, custom)
	}
	if s.requests != 3 {
		t.Errorf("there are %d requests, want 3", s.requests)
	}
}

func TestDiscoverErrors(t *testing.T) {
	if _, err := gotemplate.Discover(context.Background()); err == nil {
		t.Error("the error without a client is nil, want one")
	}
	s := &server{err: errors.New("unreachable")}
	if _, err := gotemplate.Discover(discovering(s, 0)); !errors.Is(err, s.err) {
		t.Errorf("the error is %v, want %v", err, s.err)
	}
	s.err = nil
	if _, err := gotemplate.Discover(discovering(s, 0)); err != nil {
		t.Errorf("the error is kept: %v", err)
	}
}

func TestDiscoverInParallel(t *testing.T) {
	s := &server{version: "v1"}
	var wait sync.WaitGroup
	for range 32 {
		wait.Go(func() {
			if _, err := gotemplate.Discover(discovering(s, 0)); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if s.requests != 1 {
		t.Errorf("there are %d requests, want 1", s.requests)
	}
}

// A discovery client says no more than "unknown" of a request that is forbidden.
func TestDiscoverWithoutRights(t *testing.T) {
	forbidden := apierrors.NewGenericServerResponse(403, "get", schema.GroupResource{}, "", "unknown", 0, true)
	_, err := gotemplate.Discover(discovering(&server{err: forbidden}, 0))
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "the permission to impersonate this user is missing") {
		t.Errorf("the error is %v, want it forbidden, and the missing permission named", err)
	}
}
