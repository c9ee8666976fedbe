package fault

import (
	"cmp"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Key names an object of a run.
type Key struct {
	Kind            schema.GroupKind
	Namespace, Name string
	// Cluster is the name of the cluster; empty for the only one, and for the first of several.
	Cluster string
}

// String returns the kind, without its group, and the name, such as "Deployment shop/web" or "App ns/a in remote".
func (k Key) String() string {
	name := k.Kind.Kind + " " + k.Name
	if k.Namespace != "" {
		name = k.Kind.Kind + " " + k.Namespace + "/" + k.Name
	}
	return name + In(k.Cluster)
}

// In is what the name of something in a cluster ends with, such as " in remote".
func In(cluster string) string {
	if cluster == "" {
		return ""
	}
	return " in " + cluster
}

// Compare orders keys by cluster, kind, group, namespace and name.
func (k Key) Compare(other Key) int {
	return cmp.Or(
		cmp.Compare(k.Cluster, other.Cluster),
		cmp.Compare(k.Kind.Kind, other.Kind.Kind), cmp.Compare(k.Kind.Group, other.Kind.Group),
		cmp.Compare(k.Namespace, other.Namespace), cmp.Compare(k.Name, other.Name),
	)
}
