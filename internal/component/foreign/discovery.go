package foreign

import (
	"context"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/component/plan"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
)

// discovered is what a cluster serves.
type discovered struct {
	// types are sorted, and so are those whose objects are in namespaces.
	types, namespaced []served
	// failed are the groups that could not be discovered, sorted.
	failed []string
}

func (g *Guard) checkPattern(ctx context.Context, pattern plan.Pattern) (plan.Use, error) {
	all, err := g.discover(ctx)
	if err != nil {
		return plan.Use{}, explain(err, "the types could not be discovered")
	}
	matches := generator.TypePattern{Group: pattern.Group, Kind: pattern.Kind}.Matches
	var types []served
	for _, t := range all.types {
		if matches(t.GroupKind()) {
			types = append(types, t)
		}
	}
	use, err := g.scan(ctx, types, 1)
	if err != nil || use.State != plan.ForeignNone {
		return use, err
	}
	// Any kind may be in a group that could not be discovered.
	anyKind := generator.TypePattern{Group: pattern.Group, Kind: "*"}
	missing := slices.DeleteFunc(slices.Clone(all.failed), func(group string) bool {
		return !anyKind.Matches(schema.GroupKind{Group: group})
	})
	if len(missing) > 0 {
		return use, &unknownError{reason: "API groups could not be discovered: " + strings.Join(missing, ", ")}
	}
	return use, nil
}

// discover discovers the types once. A failure is not kept.
func (g *Guard) discover(ctx context.Context) (*discovered, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.discovered != nil {
		return g.discovered, nil
	}
	api := discovery.ToDiscoveryInterfaceWithContext(g.Discovery)
	lists, err := discovery.ServerPreferredResourcesWithContext(ctx, api)
	failed, partial := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partial {
		return nil, err
	}
	groups := sets.New[string]()
	for version := range failed {
		groups.Insert(version.Group)
	}
	namespaced := discovery.FilteredBy(isNamespaced, lists)
	g.discovered = &discovered{instantiable(lists...), instantiable(namespaced...), sets.List(groups)}
	return g.discovered, nil
}

var isNamespaced = discovery.ResourcePredicateFunc(func(_ string, r *metav1.APIResource) bool { return r.Namespaced })

// instantiable returns the types that users have instances of, sorted. Subresources are part of another type, types
// that cannot be listed are not stored, and the server itself makes what cannot be created, such as metrics.
func instantiable(lists ...*metav1.APIResourceList) []served {
	var types []served
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "create"}}, lists) {
		of, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, resource := range list.APIResources {
			gv := of
			if resource.Version != "" {
				gv = schema.GroupVersion{Group: resource.Group, Version: resource.Version}
			}
			if !strings.Contains(resource.Name, "/") {
				types = append(types, served{gv.WithKind(resource.Kind), resource.Name})
			}
		}
	}
	slices.SortFunc(types, compareServed)
	return types
}
