package clusters_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/espalier-dev/espalier/internal/component/clusters"
	"github.com/espalier-dev/espalier/internal/served"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// shifting is an API server that serves the kind Thing of example.com as it is told to.
type shifting struct {
	mu       sync.Mutex
	versions []string
	resource metav1.APIResource
	requests []string
}

func (s *shifting) serve(resource string, namespaced bool, versions ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.versions, s.resource = versions, metav1.APIResource{Name: resource, Kind: "Thing", Namespaced: namespaced}
}

func (s *shifting) rename(kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resource.Kind = kind
}

// asked returns the requests since the last call.
func (s *shifting) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	requests := s.requests
	s.requests = nil
	return requests
}

func (s *shifting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r.URL.Path)
	answer := s.answer(r.URL.Path)
	if answer == nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

func (s *shifting) answer(path string) any {
	group := metav1.APIGroup{Name: "example.com"}
	for _, version := range s.versions {
		group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{GroupVersion: "example.com/" + version, Version: version})
	}
	switch path {
	case "/api":
		return metav1.APIVersions{Versions: []string{"v1"}}
	case "/apis":
		group.PreferredVersion = group.Versions[0]
		return metav1.APIGroupList{Groups: []metav1.APIGroup{group}}
	}
	for _, version := range s.versions {
		base := "/apis/example.com/" + version
		place := base + "/" + s.resource.Name + "/x"
		if s.resource.Namespaced {
			place = base + "/namespaces/default/" + s.resource.Name + "/x"
		}
		switch path {
		case base:
			return metav1.APIResourceList{GroupVersion: "example.com/" + version, APIResources: []metav1.APIResource{s.resource}}
		case place:
			return map[string]any{
				"apiVersion": "example.com/" + version, "kind": "Thing",
				"metadata": map[string]any{"name": "x", "uid": "1"},
			}
		}
	}
	return nil
}

// What was learned of a type can be forgotten, by the mapper and by the client: it may be served in other versions,
// elsewhere, or not at all by now.
func TestTheMapperCanBeReset(t *testing.T) {
	api := &shifting{}
	server := httptest.NewServer(api)
	defer server.Close()
	made := get(t, t.Context(), &clusters.Pool{Home: &rest.Config{Host: server.URL}}, clusters.Identity{})
	mapper := made.Client.RESTMapper()
	things := schema.GroupKind{Group: "example.com", Kind: "Thing"}
	read := func(version string) error {
		thing := &unstructured.Unstructured{}
		thing.SetGroupVersionKind(things.WithVersion(version))
		return made.Client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "x"}, thing)
	}

	api.serve("things", true, "v1alpha1")
	if err := read("v1alpha1"); err != nil {
		t.Fatal(err)
	}
	api.asked()
	if err := read("v1alpha1"); err != nil {
		t.Fatal(err)
	}
	if got := api.asked(); !slices.Equal(got, []string{"/apis/example.com/v1alpha1/namespaces/default/things/x"}) {
		t.Errorf("the requests for a type that is known are %q, want the one for the object", got)
	}

	api.serve("thingies", false, "v1")
	meta.MaybeResetRESTMapper(mapper)
	if got := api.asked(); len(got) != 0 {
		t.Errorf("the requests of the reset are %q, want none", got)
	}
	mapping, err := mapper.RESTMapping(things)
	if err != nil {
		t.Fatal(err)
	}
	if mapping.Resource.Version != "v1" || mapping.Resource.Resource != "thingies" || mapping.Scope.Name() != meta.RESTScopeNameRoot {
		t.Errorf("the mapping is %v in scope %s, want the thingies of v1 in scope root", mapping.Resource,
			mapping.Scope.Name())
	}
	if _, err := mapper.RESTMapping(things, "v1alpha1"); !meta.IsNoMatchError(err) {
		t.Errorf("the old version: want no match, got %v", err)
	}
	if err := read("v1"); err != nil {
		t.Error(err)
	}

	// The same version, elsewhere: it is the client that has to forget.
	api.serve("things", true, "v1")
	if err := read("v1"); err == nil {
		t.Error("the client knows by itself where the type is served, want an error, or the test shows nothing")
	}
	meta.MaybeResetRESTMapper(mapper)
	if err := read("v1"); err != nil {
		t.Error(err)
	}

	api.serve("others", true, "v1")
	api.rename("Other")
	meta.MaybeResetRESTMapper(mapper)
	var unknown *meta.NoKindMatchError
	if _, err := mapper.RESTMapping(things); !errors.As(err, &unknown) {
		t.Errorf("a type that is gone: want no match, got %v", err)
	}
}

// What a definition says about its type need not be asked for.
func TestTheMapperLearnsFromADefinition(t *testing.T) {
	api := &shifting{}
	server := httptest.NewServer(api)
	defer server.Close()
	made := get(t, t.Context(), &clusters.Pool{Home: &rest.Config{Host: server.URL}}, clusters.Identity{})
	api.serve("things", true, "v1")
	things := schema.GroupKind{Group: "example.com", Kind: "Thing"}
	mapper := made.Client.RESTMapper()
	mapper.(served.Discoverer).Learn(&served.Definition{
		GroupKind: things, Plural: "things", Singular: "thing", Namespaced: true, Versions: []string{"v1"}, Established: true,
	})
	read := func() error {
		thing := &unstructured.Unstructured{}
		thing.SetGroupVersionKind(things.WithVersion("v1"))
		return made.Client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "x"}, thing)
	}
	if err := read(); err != nil {
		t.Fatal(err)
	}
	const place = "/apis/example.com/v1/namespaces/default/things/x"
	if got := api.asked(); !slices.Equal(got, []string{place}) {
		t.Errorf("the requests for a type that was learned are %q, want %q alone", got, place)
	}
	meta.MaybeResetRESTMapper(mapper)
	if err := read(); err != nil {
		t.Fatal(err)
	}
	if got := api.asked(); len(got) < 2 || got[len(got)-1] != place {
		t.Errorf("the requests after a reset are %q, want several, the last one %q", got, place)
	}
}
