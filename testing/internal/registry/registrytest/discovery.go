package registrytest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// Discover returns what discovery says of the resources and subresources of an API server, by their versions and names,
// and of the versions of its groups. Not all versions of Kubernetes serve versions that are not generally available:
// those are left out.
func Discover(t testing.TB, config *rest.Config) map[string]string {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	groups, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, group := range groups {
		found["group "+group.Name] = "prefers " + group.PreferredVersion.Version
	}
	for _, list := range lists {
		if _, version, _ := strings.Cut("/"+list.GroupVersion, "/v"); strings.ContainsAny(version, "ab") {
			continue
		}
		for _, r := range list.APIResources {
			kind := r.Kind
			if r.Group != "" || r.Version != "" {
				kind = r.Group + "/" + r.Version + " " + kind
			}
			scope := "of the cluster"
			if r.Namespaced {
				scope = "namespaced"
			}
			slices.Sort(r.Verbs)
			found[list.GroupVersion+" "+r.Name] = fmt.Sprintf("%s %q %s, verbs %s, short %s, categories %s", kind,
				r.SingularName, scope, r.Verbs, r.ShortNames, r.Categories)
		}
	}
	return found
}

// Discovered returns what discovery says of a real API server.
func Discovered(t testing.TB) map[string]string {
	t.Helper()
	return decodeYAML[map[string]string](t, DiscoveredFile)
}
