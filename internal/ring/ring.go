// Package ring says which types of objects the processes of a ring share, by the trees of an operator.
package ring

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/reconcilers"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Resource is a type of resources that a ring shares.
type Resource struct {
	// Object is an object of the type.
	Object client.Object
	// Controlled are objects of the types that the resource controls, sorted by kind.
	Controlled []client.Object
}

// Types are what the roots of an operator do with types. [Of] makes them.
type Types struct {
	scheme *runtime.Scheme

	main  map[schema.GroupKind]use
	owned map[schema.GroupKind]use
	// read are those that are read otherwise.
	read map[schema.GroupKind]use
	// elsewhere are those below a node that replaces the config. Their cluster is not known.
	elsewhere map[schema.GroupKind]use
}

// use is how a type is used first.
type use struct {
	object client.Object
	kind   schema.GroupVersionKind
	// by names who uses it.
	by string
	// owners are the kinds of the main resources for which it is used.
	owners []schema.GroupKind
}

// Of returns what roots with these descriptions do with types, or an error that names what cannot be sharded, and why.
func Of(scheme *runtime.Scheme, roots ...reconcilers.Description) (Types, error) {
	found := Types{
		scheme: scheme, main: map[schema.GroupKind]use{}, owned: map[schema.GroupKind]use{},
		read: map[schema.GroupKind]use{}, elsewhere: map[schema.GroupKind]use{},
	}
	if len(roots) == 0 {
		return found, errors.New("there is no root whose resources a ring could share")
	}
	var errs []error
	for _, root := range roots {
		errs = append(errs, found.addRoot(root))
	}
	return found, errors.Join(append(errs, found.conflicts()...)...)
}

// Resources returns the types of resources that a ring shares, sorted by kind.
func (t Types) Resources() []Resource {
	var resources []Resource
	for _, kind := range sortedKinds(t.main) {
		r := Resource{Object: t.main[kind].object}
		for _, owned := range sortedKinds(t.owned) {
			if slices.Contains(t.owned[owned].owners, kind) {
				r.Controlled = append(r.Controlled, t.owned[owned].object)
			}
		}
		resources = append(resources, r)
	}
	return resources
}

// Filtered returns the kinds of which a shard has to see its own objects alone. The value is the root that reconciles
// the kind, and empty for a kind that is owned. A type that is owned and read stays as it is.
func (t Types) Filtered() map[schema.GroupVersionKind]string {
	filtered := map[schema.GroupVersionKind]string{}
	for _, main := range t.main {
		filtered[main.kind] = main.by
	}
	for kind, owned := range t.owned {
		_, isRead := t.read[kind]
		_, isElsewhere := t.elsewhere[kind]
		if !isRead && !isElsewhere {
			filtered[owned.kind] = ""
		}
	}
	return filtered
}

// Compare returns an error unless a root with that description does with types what it did when t was made.
func (t Types) Compare(root reconcilers.Description) error {
	now, err := Of(t.scheme, root)
	if err != nil {
		return err
	}
	var errs []error
	for _, as := range []struct {
		does      string
		now, then map[schema.GroupKind]use
	}{
		{"owns", now.owned, t.owned},
		{"reads", now.read, t.read},
		{"reads, with a config of its own,", now.elsewhere, t.elsewhere},
	} {
		for main := range now.main {
			if found, ok := difference(main, as.now, as.then); ok {
				errs = append(errs, fmt.Errorf("%s %s %s now", found.by, as.does, found.kind.Kind))
			}
			if found, ok := difference(main, as.then, as.now); ok {
				errs = append(errs, fmt.Errorf("no node %s %s any more", as.does, found.kind.Kind))
			}
		}
	}
	return errors.Join(errs...)
}

// difference returns the first of some types that are used for a main resource, if it is not among others.
func difference(main schema.GroupKind, some, others map[schema.GroupKind]use) (use, bool) {
	for _, kind := range sortedKinds(some) {
		if slices.Contains(some[kind].owners, main) && !slices.Contains(others[kind].owners, main) {
			return some[kind], true
		}
	}
	return use{}, false
}

// addRoot adds what a root does.
func (t Types) addRoot(root reconcilers.Description) error {
	name := fmt.Sprintf("%s %q", root.Kind, root.Name)
	switch {
	case root.Kind == "AdmissionWebhookAdapter":
		// It reads past the cache.
		return nil
	case root.Kind == "AggregateReconciler":
		return fmt.Errorf("%s cannot be sharded: each shard would write the one object", name)
	case root.Kind == "Embedded":
		return fmt.Errorf("%s cannot be sharded: the hand-written reconciler would not give resources back", name)
	case gotype.IsNil(root.Resource):
		return fmt.Errorf("%s cannot be sharded: it is no root", name)
	}
	main, err := apiutil.GVKForObject(root.Resource, t.scheme)
	if err != nil {
		return fmt.Errorf("%s cannot be sharded: unable to tell the kind of its resource: %w", name, err)
	}
	if other, ok := t.main[main.GroupKind()]; ok {
		return fmt.Errorf("%s and %s cannot be sharded: both reconcile %s, and one would give a resource back while "+
			"the other still works for it", other.by, name, main.Kind)
	}
	t.main[main.GroupKind()] = use{object: root.Resource, kind: main, by: name}
	var errs []error
	for _, node := range root.Nodes {
		errs = append(errs, t.addNode(main.GroupKind(), name, node, false))
	}
	return errors.Join(errs...)
}

// addNode adds what a node of a root does, and those below it. Elsewhere is true if its cluster may be another.
func (t Types) addNode(main schema.GroupKind, root string, node reconcilers.Description, elsewhere bool) error {
	by := fmt.Sprintf("%s %q of %s", node.Kind, node.Name, root)
	var errs []error
	for _, access := range node.Uses {
		if gotype.IsNil(access.Object) || access.Subresource != "" {
			continue
		}
		kind, err := apiutil.GVKForObject(access.Object, t.scheme)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: unable to tell the kind of %T: %w", by, access.Object, err))
			continue
		}
		u := use{object: access.Object, kind: kind, by: by, owners: []schema.GroupKind{main}}
		switch {
		case !reads(access.Verbs):
		case elsewhere:
			note(t.elsewhere, u)
		case access.Owned:
			note(t.owned, u)
		default:
			note(t.read, u)
		}
	}
	for _, nested := range node.Nodes {
		errs = append(errs, t.addNode(main, root, nested, elsewhere || node.ReplacesConfig))
	}
	return errors.Join(errs...)
}

// note adds a use to those of its kind.
func note(uses map[schema.GroupKind]use, u use) {
	kind := u.kind.GroupKind()
	known, ok := uses[kind]
	switch {
	case !ok:
		uses[kind] = u
	case !slices.Contains(known.owners, u.owners[0]):
		known.owners = append(slices.Clone(known.owners), u.owners...)
		uses[kind] = known
	}
}

// reads reports whether there is a verb that reads.
func reads(verbs []string) bool {
	return slices.ContainsFunc(verbs, func(verb string) bool {
		return slices.Contains([]string{"get", "list", "watch"}, verb)
	})
}

// conflicts returns an error for each main resource that is used otherwise too.
func (t Types) conflicts() []error {
	var errs []error
	for _, kind := range sortedKinds(t.main) {
		main := t.main[kind]
		if owned, ok := t.owned[kind]; ok {
			errs = append(errs, fmt.Errorf("%s and %s cannot be sharded: the first reconciles %s, and the second "+
				"owns objects of the type, so the ring would place each object twice", main.by, owned.by, kind.Kind))
		}
		if read, ok := t.read[kind]; ok {
			errs = append(errs, fmt.Errorf("%s and %s cannot be sharded: the first reconciles %s, and the second "+
				"reads the type, of which each shard has only its own objects", main.by, read.by, kind.Kind))
		}
	}
	return errs
}

func sortedKinds(kinds map[schema.GroupKind]use) []schema.GroupKind {
	return slices.SortedFunc(maps.Keys(kinds), func(a, b schema.GroupKind) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Kind, b.Kind))
	})
}
