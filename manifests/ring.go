package manifests

import (
	"bytes"
	"fmt"

	"github.com/espalier-dev/espalier/internal/kinds"
	"github.com/espalier-dev/espalier/internal/ring"
	"github.com/espalier-dev/espalier/reconcilers"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"
)

// Paths of the files that [Generator.Ring] makes.
const (
	// RingFile is the ControllerRing.
	RingFile = "sharding/ring.yaml"
	// SharderRoleFile is what the sharder, and the shards in addition to their role, may do.
	SharderRoleFile = "sharding/role.yaml"
)

// Ring returns the files that have the processes of an operator share its resources, see package sharding: [RingFile]
// with a ControllerRing of that name, and [SharderRoleFile]. The second has a ClusterRole for the sharder, with its
// binding, which lets it list and patch what the ring shares, and a ClusterRole with which the operator gives resources
// back. The trees are those of all roots of the operator. It returns an error that names what cannot be sharded, and
// why.
func (g Generator) Ring(name string, trees ...reconcilers.Description) (Files, error) {
	mapper, err := g.mapper()
	if err != nil {
		return nil, err
	}
	shared, err := ring.Of(g.Scheme, trees...)
	if err != nil {
		return nil, fmt.Errorf("unable to derive the ring %q: %w", name, err)
	}
	spec := ringSpec{}
	var all, main reconcilers.Description
	for _, r := range shared.Resources() {
		resource, err := g.resourceOf(mapper, r.Object)
		if err != nil {
			return nil, err
		}
		if g.isClusterScoped(mapper, r.Object) {
			return nil, fmt.Errorf("unable to derive the ring %q: %s is cluster-scoped, and a ring does not assign "+
				"objects without a namespace", name, resource.Resource)
		}
		main.Uses = append(main.Uses, reconcilers.Access{Object: r.Object, Verbs: []string{"patch"}})
		all.Uses = append(all.Uses, reconcilers.Access{Object: r.Object, Verbs: []string{"list", "patch"}})
		entry := ringResource{groupResource: resource}
		for _, obj := range r.Controlled {
			if g.isClusterScoped(mapper, obj) {
				continue // a resource with a namespace cannot own it
			}
			controlled, err := g.resourceOf(mapper, obj)
			if err != nil {
				return nil, err
			}
			entry.ControlledResources = append(entry.ControlledResources, controlled)
			all.Uses = append(all.Uses, reconcilers.Access{Object: obj, Verbs: []string{"list", "patch"}})
		}
		spec.Resources = append(spec.Resources, entry)
	}
	manifest, err := documents(controllerRing{
		TypeMeta:   metav1.TypeMeta{APIVersion: "sharding.timebertt.dev/v1alpha1", Kind: "ControllerRing"},
		ObjectMeta: ringMeta{Name: name}, Spec: spec,
	})
	if err != nil {
		return nil, err
	}
	roles, err := g.ringRoles(mapper, name, all, main)
	if err != nil {
		return nil, err
	}
	return Files{RingFile: manifest, SharderRoleFile: roles}, nil
}

// controllerRing is the manifest of a ControllerRing. The namespaces are left to who installs it.
type controllerRing struct {
	metav1.TypeMeta `json:",inline"`
	ObjectMeta      ringMeta `json:"metadata"`
	Spec            ringSpec `json:"spec"`
}

type ringMeta struct {
	Name string `json:"name"`
}

type ringSpec struct {
	Resources []ringResource `json:"resources"`
}

type ringResource struct {
	groupResource       `json:",inline"`
	ControlledResources []groupResource `json:"controlledResources,omitempty"`
}

// groupResource is a resource. The definition of a ControllerRing requires a group, if only the empty one of the core.
type groupResource struct {
	Group    string `json:"group"`
	Resource string `json:"resource"`
}

// resourceOf returns the resource of the type of an object, as the rules of roles name it.
func (g Generator) resourceOf(mapper meta.RESTMapper, obj client.Object) (groupResource, error) {
	uses := reconcilers.Description{Uses: []reconcilers.Access{{Object: obj, Verbs: []string{"list"}}}}
	rules, err := uses.PolicyRules(g.Scheme, mapper)
	if err != nil {
		return groupResource{}, err
	}
	return groupResource{Group: rules[0].APIGroups[0], Resource: rules[0].Resources[0]}, nil
}

// isClusterScoped reports whether the type of an object is known to be cluster-scoped.
func (g Generator) isClusterScoped(mapper meta.RESTMapper, obj client.Object) bool {
	kind, err := apiutil.GVKForObject(obj, g.Scheme)
	if err != nil {
		return false
	}
	if mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version); err == nil && mapping != nil {
		return mapping.Scope.Name() == meta.RESTScopeNameRoot
	}
	return kinds.IsClusterScoped(kind.GroupKind())
}

// ringRoles returns the ClusterRoles of the sharder and of the shards, and the binding of the first.
func (g Generator) ringRoles(mapper meta.RESTMapper, ring string, all, main reconcilers.Description) ([]byte, error) {
	sharder, err := all.PolicyRules(g.Scheme, mapper)
	if err != nil {
		return nil, err
	}
	shard, err := main.PolicyRules(g.Scheme, mapper)
	if err != nil {
		return nil, err
	}
	name := "sharding:controllerring:" + ring
	role := func(name string, rules []rbacv1.PolicyRule) rbacv1.ClusterRole {
		return rbacv1.ClusterRole{
			TypeMeta: typeMeta("ClusterRole"), ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules,
		}
	}
	guessed, err := all.GuessedResources(g.Scheme, mapper)
	if err != nil {
		return nil, err
	}
	content, err := documents(
		role(name, sharder),
		rbacv1.ClusterRoleBinding{
			TypeMeta: typeMeta("ClusterRoleBinding"), ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{
				{Kind: rbacv1.ServiceAccountKind, Namespace: "sharding-system", Name: "sharder"},
			},
		},
		role(ring+"-shard", shard))
	if err != nil {
		return nil, err
	}
	return noteGuessed(content, sharder, guessed), nil
}

// noteGuessed adds a comment for each name of a resource that is guessed.
func noteGuessed(
	manifest []byte, rules []rbacv1.PolicyRule, guessed map[schema.GroupResource]schema.GroupKind,
) []byte {
	out := bytes.NewBufferString(header)
	for _, rule := range rules {
		for gr, kind := range guessed {
			if rule.APIGroups[0] == gr.Group && rule.Resources[0] == gr.Resource {
				fmt.Fprintf(out, "# The resource %s is guessed from the kind %s.\n", gr, kind.Kind)
			}
		}
	}
	out.Write(bytes.TrimPrefix(manifest, []byte(header)))
	return out.Bytes()
}

// documents returns objects as the documents of a file.
func documents(objects ...any) ([]byte, error) {
	out := bytes.NewBufferString(header)
	for i, obj := range objects {
		content, err := yaml.Marshal(obj)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out.WriteString("---\n")
		}
		out.Write(content)
	}
	return out.Bytes(), nil
}
