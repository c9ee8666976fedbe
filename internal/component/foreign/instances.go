package foreign

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/espalier-dev/espalier/internal/component/plan"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// parallel is how many types are listed at the same time.
const parallel = 8

// served is a type that can be listed.
type served struct {
	schema.GroupVersionKind
	// resource is the plural name of the type, which the kind has to be mapped to.
	resource string
}

func compareServed(a, b served) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Version, b.Version),
		cmp.Compare(a.resource, b.resource))
}

// found is what others have of one type.
type found struct {
	names []string
	// named are the objects with these names, if they are in one namespace.
	named []metav1.OwnerReference
	// more is how many instances there are besides, -1 if they are not counted.
	more int
	err  error
}

// instances finds out what others have of the type of a definition. If no version is served, instances may be stored
// that cannot be listed. An empty status.storedVersions would show that there are none, but the API server always adds
// the storage version.
func (g *Guard) instances(ctx context.Context, d *definition) (plan.Use, error) {
	if !d.established() {
		return plan.Use{State: plan.ForeignNone}, nil
	}
	version := d.version()
	if version == nil {
		const format = "no version of %s is served, so that its instances cannot be listed"
		return plan.Use{}, &unknownError{reason: fmt.Sprintf(format, d.kind())}
	}
	gvk := schema.GroupVersionKind{Group: d.Spec.Group, Version: version.Name, Kind: d.kind()}
	return g.scan(ctx, []served{{gvk, d.Spec.Names.Plural}}, g.limit()+1)
}

// scan lists types, at most each instances of a type, until more foreign instances than the limit are found. Several
// types are listed at the same time; only their order decides which results count, not which answer comes first. That
// types could not be listed matters only if no foreign instance is found.
func (g *Guard) scan(ctx context.Context, all []served, each int) (plan.Use, error) {
	use := plan.Use{State: plan.ForeignNone}
	var results []found
	var failure error
	uncounted := false
	for i := range all {
		if len(use.Instances) > g.limit() {
			uncounted = true
			break
		}
		if i%parallel == 0 {
			batch := all[i:min(i+parallel, len(all))]
			results = make([]found, len(batch))
			workqueue.ParallelizeUntil(ctx, parallel, len(batch), func(i int) {
				results[i] = g.list(ctx, batch[i], each)
			})
		}
		f := results[i%parallel]
		use.Instances = append(use.Instances, f.names...)
		use.More += max(f.more, 0)
		uncounted = uncounted || f.more < 0
		if rank(f.err) > rank(failure) {
			failure = f.err
		}
	}
	if err := ctx.Err(); err != nil {
		return plan.Use{}, err
	}
	if len(use.Instances) == 0 {
		return use, failure
	}
	use.State = plan.ForeignBlocking
	use.More += max(0, len(use.Instances)-g.limit())
	if uncounted {
		use.More = -1
	}
	use.Instances = use.Instances[:min(len(use.Instances), g.limit())]
	slices.Sort(use.Instances)
	return use, nil
}

// rank orders errors. An error that may be gone the next time decides before one that explains why something is
// unknown.
func rank(err error) int {
	if err == nil {
		return 0
	}
	if _, unknown := errors.AsType[*unknownError](err); unknown {
		return 1
	}
	return 2
}

// others selects the objects that are not the component's own.
func (g *Guard) others() (labels.Selector, error) {
	operator, own := selection.NotEquals, []string{g.OwnerID}
	if g.FormerOwnerID != "" {
		operator, own = selection.NotIn, append(own, g.FormerOwnerID)
	}
	others, err := labels.NewRequirement(g.OwnerLabel, operator, own)
	if err != nil {
		return nil, fmt.Errorf("the owner label is not valid: %w", err)
	}
	return labels.NewSelector().Add(*others), nil
}

// owns reports whether an object is the component's own.
func (g *Guard) owns(object client.Object) bool {
	id := object.GetLabels()[g.OwnerLabel]
	return id == g.OwnerID || id != "" && id == g.FormerOwnerID
}

// list lists what others have of one type.
func (g *Guard) list(ctx context.Context, t served, limit int) found {
	what := fmt.Sprintf("instances of %s could not be listed", t.Kind)
	mapping, err := g.Client.RESTMapper().RESTMapping(t.GroupKind(), t.Version)
	if err != nil {
		return found{err: explain(err, what)}
	}
	if name := mapping.Resource.Resource; name != t.resource {
		what = fmt.Sprintf("%s: %s and %s are of the same kind", what, t.resource, name)
		return found{err: &unknownError{reason: what}}
	}
	others, err := g.others()
	if err != nil {
		return found{err: err}
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(t.GroupVersion().WithKind(t.Kind + "List"))
	selector := client.MatchingLabelsSelector{Selector: others}
	if err := g.Client.List(ctx, list, selector, client.Limit(int64(limit))); err != nil {
		return found{err: explain(err, what)}
	}
	f := found{}
	for _, item := range list.Items {
		f.names = append(f.names, plan.Key{Kind: t.Kind, Namespace: item.Namespace, Name: item.Name}.String())
	}
	switch {
	case list.RemainingItemCount != nil:
		f.more = int(*list.RemainingItemCount)
	case list.Continue != "":
		f.more = -1
	}
	return f
}
