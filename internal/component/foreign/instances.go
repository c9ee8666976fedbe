package foreign

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/espalier-dev/espalier/internal/component/plan"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// parallel is how many types are listed at the same time.
const parallel = 8

// served is a type that can be listed.
type served struct {
	schema.GroupVersionKind
	// resource is the plural that the kind is meant to stand for.
	resource string
}

func compareServed(a, b served) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Version, b.Version), cmp.Compare(a.resource, b.resource))
}

// found is what the list of one type has of others.
type found struct {
	names []string
	// rest is how many there are besides, -1 if there are, and nobody counted.
	rest int
	err  error
}

// instances are what others have of the type. Of a type of which no version is served, instances may be stored that nobody can list.
// That status.storedVersions is empty would tell that there are none, but the API server always has the storage version in it.
func (g *Guard) instances(ctx context.Context, d *definition) (plan.Use, error) {
	if !d.established() {
		return plan.Use{State: plan.ForeignNone}, nil
	}
	version := d.version()
	if version == nil {
		return plan.Use{}, &unknownError{reason: fmt.Sprintf("no version of %s is served, so that its instances cannot be listed", d.kind())}
	}
	gvk := schema.GroupVersionKind{Group: d.Spec.Group, Version: version.Name, Kind: d.kind()}
	return g.scan(ctx, []served{{gvk, d.Spec.Names.Plural}}, g.limit()+1)
}

// scan lists types, in their order, until more than the limit of foreign instances are found, of each type at most so many. Found
// is found: that others could not be listed matters only if there is nothing.
func (g *Guard) scan(ctx context.Context, all []served, each int) (plan.Use, error) {
	s := &scan{results: make([]*found, len(all)), limit: g.limit()}
	var workers sync.WaitGroup
	for range min(parallel, len(all)) {
		workers.Go(func() {
			for {
				i, more := s.next()
				if !more {
					return
				}
				s.done(i, g.list(ctx, all[i], each))
			}
		})
	}
	workers.Wait()
	if err := ctx.Err(); err != nil {
		return plan.Use{}, err
	}
	return s.use()
}

// scan hands out types to list and keeps what was found. It decides by the results without a gap at the beginning only, so that its
// outcome does not depend on which list is answered first.
type scan struct {
	limit int

	mu      sync.Mutex
	started int
	results []*found
	// The first ready results are without a gap, and have so many names together. Those are enough if they are more than the limit.
	ready, names int
}

func (s *scan) next() (int, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started == len(s.results) || s.names > s.limit {
		return 0, false
	}
	s.started++
	return s.started - 1, true
}

func (s *scan) done(i int, f *found) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.results[i] = f
	for s.ready < len(s.results) && s.results[s.ready] != nil && s.names <= s.limit {
		s.names += len(s.results[s.ready].names)
		s.ready++
	}
}

func (s *scan) use() (plan.Use, error) {
	cut := s.ready < len(s.results)
	var names []string
	var failure error
	more := 0
	for _, f := range s.results[:s.ready] {
		names = append(names, f.names...)
		if f.rest < 0 {
			cut = true
		}
		more += max(f.rest, 0)
		failure = worse(failure, f.err)
	}
	if len(names) == 0 {
		return plan.Use{State: plan.ForeignNone}, failure
	}
	use := plan.Use{State: plan.ForeignBlocking, More: more + max(0, len(names)-s.limit)}
	if cut {
		use.More = -1
	}
	use.Instances = names[:min(len(names), s.limit)]
	slices.Sort(use.Instances)
	return use, nil
}

// worse returns the error that decides: one that may be gone the next time leaves more open than one that says why something is
// unknown.
func worse(a, b error) error {
	if rank(b) > rank(a) {
		return b
	}
	return a
}

func rank(err error) int {
	if err == nil {
		return 0
	}
	if _, unknown := errors.AsType[*unknownError](err); unknown {
		return 1
	}
	return 2
}

// list lists what others have of one type.
func (g *Guard) list(ctx context.Context, t served, limit int) *found {
	what := fmt.Sprintf("instances of %s could not be listed", t.Kind)
	if mapping, err := g.Client.RESTMapper().RESTMapping(t.GroupKind(), t.Version); err != nil {
		return &found{err: explain(err, what)}
	} else if mapping.Resource.Resource != t.resource {
		return &found{err: &unknownError{reason: fmt.Sprintf("%s: %s and %s are of the same kind", what, t.resource, mapping.Resource.Resource)}}
	}
	others, err := labels.NewRequirement(g.OwnerLabel, selection.NotEquals, []string{g.OwnerID})
	if err != nil {
		return &found{err: fmt.Errorf("the owner label is unfit: %w", err)}
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(t.GroupVersion().WithKind(t.Kind + "List"))
	err = g.Client.List(ctx, list, client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*others)}, client.Limit(int64(limit)))
	if err != nil {
		return &found{err: explain(err, what)}
	}
	f := &found{}
	for _, item := range list.Items {
		key := plan.Key{Kind: t.Kind, Namespace: item.Namespace, Name: item.Name}
		f.names = append(f.names, key.String())
	}
	switch {
	case list.RemainingItemCount != nil:
		f.rest = int(*list.RemainingItemCount)
	case list.Continue != "":
		f.rest = -1
	}
	return f
}
