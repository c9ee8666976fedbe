package reconcilers_test

import (
	"slices"
	"testing"

	"github.com/espalier-dev/espalier/internal/kinds"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// The table of cluster-scoped kinds agrees with what an API server says of its own kinds.
func TestClusterScopedKindsAreThoseOfTheAPIServer(t *testing.T) {
	t.Parallel()
	client, err := discovery.NewDiscoveryClientForConfig(plane.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, resource := range list.APIResources {
			kind := gv.WithKind(resource.Kind)
			if !slices.Contains(resource.Verbs, "list") || !clientgoscheme.Scheme.Recognizes(kind) {
				continue
			}
			if got := kinds.IsClusterScoped(kind.GroupKind()); got == resource.Namespaced {
				t.Errorf("%s counts as cluster-scoped: %t, and the API server says namespaced: %t", kind, got, resource.Namespaced)
			}
		}
	}
}
