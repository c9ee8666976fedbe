package manifest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/espalier-dev/espalier/apis"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Prepare checks objects and prepares them, in their order; lists are expanded. It changes none of them, and keeps
// nothing that belongs to them. The error names all faulty objects, in their order, and nothing is prepared then. It
// wraps a [meta.NoKindMatchError] if neither the cluster nor any of the objects defines the kind of one: that may pass.
// cache may be nil.
func Prepare(objects []client.Object, options Options, cache *Cache) ([]Object, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	if cache == nil {
		cache = &Cache{}
	}
	entries, same := cache.lookup(objects, &options)
	items := itemsOf(objects, entries, &options, cache.common)
	shared := &request{options: &options, generated: objects}
	p := &preparation{options: &options, items: items, sources: sourcesOf(entries, items, shared)}
	return p.prepare(cache, entries, same)
}

// PrepareAgain prepares what [Prepare] prepared last with the cache. It needs no objects for that. If manifests are
// asked for, generate is called once, and has to return the same objects again; else manifests are an error. ok is
// false if the cache does not have all that is needed, and the objects are needed.
func PrepareAgain(
	generate func() ([]client.Object, error), options Options, cache *Cache,
) (objects []Object, ok bool, err error) {
	if err := options.check(); err != nil || !cache.consistent || !cache.whole || cache.key != cacheKeyOf(&options) {
		return nil, false, err
	}
	items := itemsOf(nil, cache.entries, &options, cache.common)
	shared := &request{options: &options, generate: generate}
	p := &preparation{options: &options, items: items, sources: sourcesOf(cache.entries, items, shared)}
	objects, err = p.prepare(cache, cache.entries, true)
	return objects, err == nil, err
}

// prepare prepares the items of entries, which it puts into the cache. same reports whether the cache had them.
func (p *preparation) prepare(cache *Cache, entries []entry, same bool) ([]Object, error) {
	for _, i := range p.items {
		if i.fault != nil {
			p.report(i, i.fault)
		}
	}
	err := p.run(same && cache.consistent)
	cache.keep(entries, same, err == nil)
	if err != nil {
		return nil, err
	}
	result := make([]Object, len(p.items))
	for n, i := range p.items {
		s := &p.sources[n]
		s.namespace = i.within()
		result[n] = i.prepared(s)
	}
	return result, nil
}

// itemsOf makes the items of entries without them, and returns all items.
func itemsOf(objects []client.Object, entries []entry, options *Options, known commonByHash) []*item {
	items := make([]*item, 0, len(entries))
	for index := range entries {
		e := &entries[index]
		if e.items == nil {
			content, err := contentOf(objects[index], options)
			if err != nil {
				e.items = []*item{faulty("", err)}
			} else {
				e.items = newItems(content, options, known)
			}
			// The rest cannot be made again.
			if len(e.items) == 1 && e.items[0].place == "" && e.items[0].fault == nil && e.hash != 0 {
				e.items[0].release()
			}
		}
		for _, i := range e.items {
			i.index, i.ordinal = index, len(items)
			items = append(items, i)
		}
	}
	return items
}

// sourcesOf returns the source of each item, for one request.
func sourcesOf(entries []entry, items []*item, shared *request) []source {
	sources := make([]source, len(items))
	for n, i := range items {
		s, e := &sources[n], &entries[i.index]
		s.index, s.hash = i.index, e.hash
		s.content, s.request = i.content, shared
	}
	return sources
}

// preparation is one request.
type preparation struct {
	options *Options
	items   []*item
	// sources are in the order of the items.
	sources []source
	// faults has the faults of the items. It is nil if there are none.
	faults []error
}

func (p *preparation) report(i *item, err error) {
	if p.faults == nil {
		p.faults = make([]error, len(p.items))
	}
	p.faults[i.ordinal] = errors.Join(p.faults[i.ordinal], err)
}

// run completes items and checks that they go together, unless that is known.
func (p *preparation) run(consistent bool) error {
	t := typesOf(p.items, p.report)
	complete, same, err := p.complete(t)
	if err != nil {
		return err
	}
	if !consistent || !same {
		checkDuplicates(complete, p.report)
		checkOrders(complete, t, p.report)
	}
	return p.err()
}

// complete returns the items without a fault, and whether all were complete already. An error is one of looking up a
// scope.
func (p *preparation) complete(t *types) (complete []*item, same bool, err error) {
	s := &scopes{types: t, lookup: p.options.Namespaced, known: map[schema.GroupVersionKind]scopeResult{}}
	complete, same = make([]*item, 0, len(p.items)), true
	for _, i := range p.items {
		if i.fault != nil {
			continue
		}
		v := s.of(i.kind)
		if v.err != nil {
			i.scope = 0
			switch {
			case !v.unserved:
				return nil, false, fmt.Errorf("%s: %w", i.describe(), v.err)
			case !t.partial:
				p.report(i, v.err)
			}
			continue
		}
		changed, err := i.complete(v.scope, &p.sources[i.ordinal], p.options.ComponentDigest)
		same = same && !changed
		if err != nil {
			p.report(i, err)
			continue
		}
		complete = append(complete, i)
	}
	return complete, same, nil
}

// err names the faulty objects in their order.
func (p *preparation) err() error {
	var errs []error
	for n, fault := range p.faults {
		if fault == nil {
			continue
		}
		for _, err := range split(fault) {
			errs = append(errs, fmt.Errorf("%s: %w", p.items[n].describe(), err))
		}
	}
	return errors.Join(errs...)
}

// split returns the errors that err was joined from, so that each of them can name its object.
func split(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	parts := joined.Unwrap()
	if again := errors.Join(parts...); again == nil || again.Error() != err.Error() {
		return []error{err}
	}
	var all []error
	for _, part := range parts {
		all = append(all, split(part)...)
	}
	return all
}

// check refuses options that are wrong for all objects.
func (o *Options) check() error {
	errs := []error{
		oneOf("adoption policy", o.AdoptionPolicy, apis.AdoptNever, apis.AdoptIfUnowned, apis.AdoptAlways),
		oneOf("reconcile policy", o.ReconcilePolicy,
			apis.ReconcileOnObjectChange, apis.ReconcileOnObjectOrComponentChange, apis.ReconcileOnce),
		oneOf("update policy", o.UpdatePolicy,
			apis.UpdateApply, apis.UpdateApplyOverride, apis.UpdateReplace, apis.UpdateRecreate),
		oneOf("delete policy", o.DeletePolicy,
			apis.DeleteDelete, apis.DeleteOrphan, apis.DeleteOrphanOnApply, apis.DeleteOrphanOnDelete),
		oneOf("prune policy", o.PrunePolicy, apis.PruneBefore, apis.PruneWith, apis.PruneAfter),
	}
	if o.Namespaced == nil {
		errs = append(errs, errors.New("the scope of kinds cannot be told"))
	}
	return errors.Join(errs...)
}

func oneOf[P ~string](what string, policy P, allowed ...P) error {
	if policy == "" || slices.Contains(allowed, policy) {
		return nil
	}
	return fmt.Errorf("%s %q of the component is none of %q", what, policy, allowed)
}
