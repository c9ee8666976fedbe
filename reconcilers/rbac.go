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

// verbOrder is the usual order of verbs. Other verbs follow by name.
var verbOrder = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}

// PolicyRules returns the RBAC rules that the tree needs. There is one rule for each resource and subresource, sorted
// by group and resource.
//
// A SyncReconciler needs what its Uses field lists. The scheme gives the group of Go types. The mapper gives the name
// of the resource for a kind. If the mapper is nil, or does not know the kind, the name is the English plural of the
// kind, as Kubernetes itself guesses it.
//
// If a type is not in the scheme and its object has no kind, PolicyRules returns an error with the path of the node.
func (d Description) PolicyRules(scheme *runtime.Scheme, mapper meta.RESTMapper) ([]rbacv1.PolicyRule, error) {
	verbs := map[schema.GroupResource]sets.Set[string]{}
	var failed error
	d.Walk(func(path string, node Description) {
		for _, access := range node.Uses {
			gr, err := access.groupResource(d.Resource, scheme, mapper)
			if err != nil {
				failed = cmp.Or(failed, fmt.Errorf("%s: %w", path, err))
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

// groupResource returns the resource or subresource of the access. root is the resource that the tree reconciles.
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

// RBACMarkers returns rules as comments for controller-gen, which generates a Role from them. Each rule is one line.
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
