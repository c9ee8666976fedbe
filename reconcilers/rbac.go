package reconcilers

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// verbOrder is the order in which people write verbs; others follow by name.
var verbOrder = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}

// PolicyRules returns the RBAC rules that the tree needs: one for each resource and subresource, sorted by group and
// resource.
//
// What SyncReconcilers use is known as far as their Uses field says it. The scheme tells the group of Go types. The
// mapper tells how the resource of a kind is called; without one (nil), and for a kind it does not know, the name is
// made from the kind by the rules of English, as Kubernetes itself does where it has to guess.
//
// A type that is neither in the scheme nor carries its kind is an error that names the node.
func (d Description) PolicyRules(scheme *runtime.Scheme, mapper meta.RESTMapper) ([]rbacv1.PolicyRule, error) {
	verbs := map[schema.GroupResource]sets.Set[string]{}
	var failed error
	d.Walk(func(path string, node Description) {
		for _, access := range node.Uses {
			gr, err := access.groupResource(d.Resource, scheme, mapper)
			if err != nil {
				if failed == nil {
					failed = fmt.Errorf("%s: %w", path, err)
				}
				return
			}
			if verbs[gr] == nil {
				verbs[gr] = sets.New[string]()
			}
			verbs[gr].Insert(access.Verbs...)
		}
	})
	if failed != nil {
		return nil, failed
	}

	resources := slices.SortedFunc(maps.Keys(verbs), func(a, b schema.GroupResource) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Resource, b.Resource))
	})
	rules := make([]rbacv1.PolicyRule, 0, len(resources))
	for _, gr := range resources {
		rules = append(rules, rbacv1.PolicyRule{
			APIGroups: []string{gr.Group},
			Resources: []string{gr.Resource},
			Verbs:     sortVerbs(verbs[gr]),
		})
	}
	return rules, nil
}

// groupResource returns which resource or subresource a is about, in a tree that reconciles root.
func (a Access) groupResource(
	root client.Object, scheme *runtime.Scheme, mapper meta.RESTMapper,
) (gr schema.GroupResource, err error) {
	obj := a.Object
	if isNil(obj) {
		obj = root
	}
	if isNil(obj) {
		return gr, errors.New("the resource that the tree reconciles is not known: describe the root")
	}
	gvk := obj.GetObjectKind().GroupVersionKind()
	if gvk.Empty() {
		if gvk, err = apiutil.GVKForObject(obj, scheme); err != nil {
			return gr, fmt.Errorf("unable to tell the kind of %T: %w", obj, err)
		}
	}
	gr = resourceOf(gvk, mapper)
	if a.Subresource != "" {
		gr.Resource += "/" + a.Subresource
	}
	return gr, nil
}

func resourceOf(gvk schema.GroupVersionKind, mapper meta.RESTMapper) schema.GroupResource {
	if mapper != nil {
		if mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version); err == nil {
			return mapping.Resource.GroupResource()
		}
	}
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	return plural.GroupResource()
}

func sortVerbs(verbs sets.Set[string]) []string {
	rank := func(verb string) int {
		if i := slices.Index(verbOrder, verb); i >= 0 {
			return i
		}
		return len(verbOrder)
	}
	return slices.SortedFunc(maps.Keys(verbs), func(a, b string) int {
		return cmp.Or(rank(a)-rank(b), strings.Compare(a, b))
	})
}

// RBACMarkers writes rules as the comments from which controller-gen makes a Role: one line each.
func RBACMarkers(rules []rbacv1.PolicyRule) []string {
	markers := make([]string, 0, len(rules))
	for _, rule := range rules {
		markers = append(markers, rbacMarker(rule))
	}
	return markers
}

func rbacMarker(rule rbacv1.PolicyRule) string {
	groups := slices.Clone(rule.APIGroups)
	for i, group := range groups {
		if group == "" {
			groups[i] = `""`
		}
	}
	var arguments []string
	for _, argument := range []struct {
		name   string
		values []string
	}{
		{"groups", groups},
		{"resources", rule.Resources},
		{"resourceNames", rule.ResourceNames},
		{"urls", rule.NonResourceURLs},
		{"verbs", rule.Verbs},
	} {
		if len(argument.values) > 0 {
			arguments = append(arguments, argument.name+"="+strings.Join(argument.values, ";"))
		}
	}
	return "// +kubebuilder:rbac:" + strings.Join(arguments, ",")
}
