package foreign

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/internal/component/plan"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// discovered is what a cluster serves.
type discovered struct {
	// types are sorted.
	types []served
	// failed are the groups that could not be discovered, sorted.
	failed []string
}

func (g *Guard) checkPattern(ctx context.Context, pattern plan.Pattern) (plan.Use, error) {
	all, err := g.discover(ctx)
	if err != nil {
		return plan.Use{}, explain(err, "the types could not be discovered")
	}
	use, err := g.scan(ctx, all.matching(pattern), 1)
	if err != nil || use.State != plan.ForeignNone {
		return use, err
	}
	return use, all.missing(pattern)
}

// discover asks once. A failure is not kept.
func (g *Guard) discover(ctx context.Context) (*discovered, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.discovered != nil {
		return g.discovered, nil
	}
	lists, err := discovery.ServerPreferredResourcesWithContext(ctx, discovery.ToDiscoveryInterfaceWithContext(g.Discovery))
	failed, partial := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partial {
		return nil, err
	}
	all := &discovered{}
	for _, list := range lists {
		all.types = append(all.types, instantiable(list)...)
	}
	slices.SortFunc(all.types, compareServed)
	for version := range failed {
		all.failed = append(all.failed, version.Group)
	}
	slices.Sort(all.failed)
	all.failed = slices.Compact(all.failed)
	g.discovered = all
	return all, nil
}

// instantiable are the types that people have instances of: those of subresources are part of another one, what cannot be
// listed is not kept, and what cannot be created, such as metrics, is made up by the server.
func instantiable(list *metav1.APIResourceList) []served {
	if list == nil {
		return nil
	}
	of, err := schema.ParseGroupVersion(list.GroupVersion)
	if err != nil {
		return nil
	}
	var types []served
	for _, resource := range list.APIResources {
		if strings.Contains(resource.Name, "/") || !slices.Contains(resource.Verbs, "list") || !slices.Contains(resource.Verbs, "create") {
			continue
		}
		gv := of
		if resource.Version != "" {
			gv = schema.GroupVersion{Group: resource.Group, Version: resource.Version}
		}
		types = append(types, served{gv.WithKind(resource.Kind), resource.Name})
	}
	return types
}

func (d *discovered) matching(pattern plan.Pattern) []served {
	var types []served
	for _, t := range d.types {
		if matchesGroup(pattern.Group, t.Group) && (pattern.Kind == "*" || pattern.Kind == t.Kind) {
			types = append(types, t)
		}
	}
	return types
}

// missing says what may match and could not be discovered. Which kinds a group would have had nobody knows.
func (d *discovered) missing(pattern plan.Pattern) error {
	var groups []string
	for _, group := range d.failed {
		if matchesGroup(pattern.Group, group) {
			groups = append(groups, group)
		}
	}
	if len(groups) == 0 {
		return nil
	}
	return &unknownError{reason: fmt.Sprintf("API groups could not be discovered: %s", strings.Join(groups, ", "))}
}

// matchesGroup: "*" is any group, "*.x" one that ends in ".x".
func matchesGroup(pattern, group string) bool {
	if pattern == "*" {
		return true
	}
	if suffix, wild := strings.CutPrefix(pattern, "*"); wild && strings.HasPrefix(suffix, ".") && !strings.Contains(suffix, "*") {
		return strings.HasSuffix(group, suffix)
	}
	return pattern == group
}
