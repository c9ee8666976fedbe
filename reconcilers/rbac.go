package reconcilers

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/internal/definitions"
	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/informer"
	"github.com/espalier-dev/espalier/internal/kinds"

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
// A SyncReconciler needs what its Uses field lists. The scheme gives the group of Go types. The name of the resource
// for a kind comes from the mapper, which may be nil, and from CustomResourceDefinitions among the objects that the
// tree uses, such as the Dependents of a component. If neither knows the kind, the name is the English plural of the
// kind, as Kubernetes itself guesses it; [Description.GuessedResources] returns these.
//
// If the cluster may not serve a type of the tree, see [Access], the rules have list and watch of
// customresourcedefinitions and apiservices. Without these rules, the tree works too: see [WatchOptional].
//
// If a type is not in the scheme and its object has no kind, PolicyRules returns an error with the path of the node.
func (d Description) PolicyRules(scheme *runtime.Scheme, mapper meta.RESTMapper) ([]rbacv1.PolicyRule, error) {
	rights, err := d.rights(scheme, mapper)
	if err != nil {
		return nil, err
	}
	rules := make([]rbacv1.PolicyRule, 0, len(rights))
	for _, r := range rights {
		rules = append(rules, r.rule())
	}
	return rules, nil
}

// GuessedResources returns the resources whose names [Description.PolicyRules] guesses, with their kinds. Names of
// types that Kubernetes has itself are not guessed.
func (d Description) GuessedResources(
	scheme *runtime.Scheme, mapper meta.RESTMapper,
) (map[schema.GroupResource]schema.GroupKind, error) {
	rights, err := d.rights(scheme, mapper)
	if err != nil {
		return nil, err
	}
	guessed := map[schema.GroupResource]schema.GroupKind{}
	for _, r := range rights {
		if !r.guessedFrom.Empty() {
			guessed[r.resource] = r.guessedFrom
		}
	}
	return guessed, nil
}

// RBACMarkers returns the rules of [Description.PolicyRules] as comments for controller-gen, see [RBACMarkers]. A
// comment before the marker says if the name of its resource is guessed.
func (d Description) RBACMarkers(scheme *runtime.Scheme, mapper meta.RESTMapper) ([]string, error) {
	rights, err := d.rights(scheme, mapper)
	if err != nil {
		return nil, err
	}
	var markers []string
	for _, r := range rights {
		if !r.guessedFrom.Empty() {
			markers = append(markers, fmt.Sprintf("// The resource %s is guessed from the kind %s.",
				r.resource, r.guessedFrom.Kind))
		}
		markers = append(markers, rbacMarker(r.rule()))
	}
	return markers, nil
}

// right is what a tree does with a resource or subresource.
type right struct {
	resource schema.GroupResource
	// guessedFrom is the kind that the name of the resource is guessed from; empty if the name is known.
	guessedFrom schema.GroupKind
	verbs       sets.Set[string]
}

func (r right) rule() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{r.resource.Group}, Resources: []string{r.resource.Resource}, Verbs: sortVerbs(r.verbs),
	}
}

// rights returns what the tree does, sorted by group and resource.
func (d Description) rights(scheme *runtime.Scheme, mapper meta.RESTMapper) ([]right, error) {
	mappers := meta.FirstHitRESTMapper{MultiRESTMapper: meta.MultiRESTMapper{definitions.Mapper(d.objects()...)}}
	if mapper != nil {
		mappers.MultiRESTMapper = append(meta.MultiRESTMapper{mapper}, mappers.MultiRESTMapper...)
	}
	byResource := map[schema.GroupResource]right{}
	var failed error
	optional := false
	d.Walk(func(path string, node Description) {
		for _, access := range node.Uses {
			if !access.counts(d.Resource, scheme, mappers) {
				continue
			}
			r, err := access.right(d.Resource, scheme, mappers)
			if err != nil {
				failed = cmp.Or(failed, fmt.Errorf("%s: %w", path, err))
				return
			}
			if known, ok := byResource[r.resource]; ok {
				r = known
			}
			r.verbs.Insert(access.Verbs...)
			byResource[r.resource] = r
			optional = optional || access.isOptional(d.Resource, scheme)
		}
	})
	if optional {
		for _, watched := range informer.Definitions {
			definitions := watched.GroupResource()
			r, ok := byResource[definitions]
			if !ok {
				r = right{resource: definitions, verbs: sets.New[string]()}
			}
			r.verbs.Insert("list", "watch")
			byResource[definitions] = r
		}
	}
	return slices.SortedFunc(maps.Values(byResource), func(a, b right) int {
		return cmp.Or(strings.Compare(a.resource.Group, b.resource.Group),
			strings.Compare(a.resource.Resource, b.resource.Resource))
	}), failed
}

// objects returns the objects of the uses of all nodes.
func (d Description) objects() []runtime.Object {
	var objects []runtime.Object
	d.Walk(func(_ string, node Description) {
		for _, access := range node.Uses {
			if !gotype.IsNil(access.Object) {
				objects = append(objects, access.Object)
			}
		}
	})
	return objects
}

// isOptional reports whether the cluster may not serve the type of the access.
func (a Access) isOptional(root client.Object, scheme *runtime.Scheme) bool {
	if !a.Optional {
		return false
	}
	obj := a.Object
	if gotype.IsNil(obj) {
		obj = root
	}
	gvk, err := apiutil.GVKForObject(obj, scheme)
	return err == nil && !isCertain(gvk)
}

// counts reports whether the use counts in the tree of a resource, see IfClusterScoped. A type that is not known counts
// as namespaced.
func (a Access) counts(root client.Object, scheme *runtime.Scheme, mapper meta.RESTMapper) bool {
	return gotype.IsNil(a.IfClusterScoped) ||
		isClusterScoped(a.IfClusterScoped, scheme, mapper) && !isClusterScoped(root, scheme, mapper)
}

func isClusterScoped(obj client.Object, scheme *runtime.Scheme, mapper meta.RESTMapper) bool {
	if gotype.IsNil(obj) {
		return false
	}
	gvk := obj.GetObjectKind().GroupVersionKind()
	if gvk.Empty() {
		gvk, _ = apiutil.GVKForObject(obj, scheme) // the access to the type itself reports the error
	}
	if mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version); err == nil && mapping != nil {
		return mapping.Scope.Name() == meta.RESTScopeNameRoot
	}
	return kinds.IsClusterScoped(gvk.GroupKind())
}

// right returns the right for the resource or subresource of the access, without verbs. root is the resource that the
// tree reconciles.
func (a Access) right(root client.Object, scheme *runtime.Scheme, mapper meta.RESTMapper) (r right, err error) {
	obj := a.Object
	if gotype.IsNil(obj) {
		obj = root
	}
	if gotype.IsNil(obj) {
		return r, errors.New("the resource that the tree reconciles is not known: describe the root")
	}
	gvk := obj.GetObjectKind().GroupVersionKind()
	if gvk.Empty() {
		if gvk, err = apiutil.GVKForObject(obj, scheme); err != nil {
			return r, fmt.Errorf("unable to tell the kind of %T: %w", obj, err)
		}
	}
	r.verbs = sets.New[string]()
	// An empty list of mappers returns neither a mapping nor an error.
	if gvk.Kind == "*" {
		r.resource = schema.GroupResource{Group: gvk.Group, Resource: "*"}
	} else if mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version); err == nil && mapping != nil {
		r.resource = mapping.Resource.GroupResource()
	} else {
		plural, _ := meta.UnsafeGuessKindToResource(gvk)
		r.resource = plural.GroupResource()
		if !isBuiltIn(gvk.Group) {
			r.guessedFrom = gvk.GroupKind()
		}
	}
	if a.Subresource != "" {
		r.resource.Resource += "/" + a.Subresource
	}
	return r, nil
}

// builtIn are the groups with a domain whose types Kubernetes has itself.
var builtIn = sets.New(
	"admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "authentication.k8s.io",
	"authorization.k8s.io", "certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io",
	"flowcontrol.apiserver.k8s.io", "networking.k8s.io", "node.k8s.io", "rbac.authorization.k8s.io",
	"resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "storagemigration.k8s.io",
)

// isBuiltIn reports whether the group is of Kubernetes itself. The names of its resources are regular plurals. A group
// without a domain cannot be defined by others.
func isBuiltIn(group string) bool {
	return !strings.Contains(group, ".") || builtIn.Has(group)
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
