package sharding

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

// Resources returns the types of resources that a ring shares, by the descriptions of the roots of an operator. They
// are sorted by kind. It returns an error that names what cannot be sharded, and why.
func Resources(scheme *runtime.Scheme, roots ...reconcilers.Description) ([]Resource, error) {
	found, err := typesOf(scheme, roots)
	if err != nil {
		return nil, err
	}
	var resources []Resource
	for _, kind := range sortedKinds(found.main) {
		r := Resource{Object: found.main[kind].object}
		for _, owned := range sortedKinds(found.owned) {
			if slices.Contains(found.owned[owned].owners, kind) {
				r.Controlled = append(r.Controlled, found.owned[owned].object)
			}
		}
		resources = append(resources, r)
	}
	return resources, nil
}

// types are what the roots of an operator do with types.
type types struct {
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

// typesOf returns what the roots do with types, or an error that names what cannot be sharded.
func typesOf(scheme *runtime.Scheme, roots []reconcilers.Description) (types, error) {
	found := types{
		main: map[schema.GroupKind]use{}, owned: map[schema.GroupKind]use{},
		read: map[schema.GroupKind]use{}, elsewhere: map[schema.GroupKind]use{},
	}
	if len(roots) == 0 {
		return found, errors.New("there is no root whose resources a ring could share")
	}
	var errs []error
	for _, root := range roots {
		errs = append(errs, found.addRoot(scheme, root))
	}
	return found, errors.Join(append(errs, found.conflicts()...)...)
}

// addRoot adds what a root does.
func (t types) addRoot(scheme *runtime.Scheme, root reconcilers.Description) error {
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
	main, err := apiutil.GVKForObject(root.Resource, scheme)
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
		errs = append(errs, t.addNode(scheme, main.GroupKind(), name, node, false))
	}
	return errors.Join(errs...)
}

// addNode adds what a node of a root does, and those below it. Elsewhere is true if its cluster may be another.
func (t types) addNode(
	scheme *runtime.Scheme, main schema.GroupKind, root string, node reconcilers.Description, elsewhere bool,
) error {
	by := fmt.Sprintf("%s %q of %s", node.Kind, node.Name, root)
	var errs []error
	for _, access := range node.Uses {
		if gotype.IsNil(access.Object) || access.Subresource != "" {
			continue
		}
		kind, err := apiutil.GVKForObject(access.Object, scheme)
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
		errs = append(errs, t.addNode(scheme, main, root, nested, elsewhere || node.ReplacesConfig))
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
func (t types) conflicts() []error {
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

// filtered returns the kinds of which a shard has to see its own objects alone; true for a main resource. A type that
// is owned and read stays as it is.
func (t types) filtered() map[schema.GroupVersionKind]bool {
	filtered := map[schema.GroupVersionKind]bool{}
	for _, main := range t.main {
		filtered[main.kind] = true
	}
	for kind, owned := range t.owned {
		_, isRead := t.read[kind]
		_, isElsewhere := t.elsewhere[kind]
		if !isRead && !isElsewhere {
			filtered[owned.kind] = false
		}
	}
	return filtered
}

func sortedKinds(kinds map[schema.GroupKind]use) []schema.GroupKind {
	return slices.SortedFunc(maps.Keys(kinds), func(a, b schema.GroupKind) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Kind, b.Kind))
	})
}
