package release

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/restmapper"
)

// KindFor returns the kind that users call by a name: the resource in singular or plural, the kind, or a short name,
// each with or without the group.
func (c *Cluster) KindFor(name string) (schema.GroupVersionKind, error) {
	mapper := restmapper.NewShortcutExpander(c.RESTMapper(), c.discovery, nil)
	versioned, resource := schema.ParseResourceArg(strings.ToLower(name))
	if versioned != nil {
		if gvk, err := mapper.KindFor(*versioned); err == nil {
			return gvk, nil
		}
	}
	gvk, err := mapper.KindFor(resource.WithVersion(""))
	if meta.IsNoMatchError(err) {
		return gvk, fmt.Errorf("it serves no such resource")
	}
	return gvk, err
}
