package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Prepare checks objects and prepares them, in their order; lists are unfolded. It changes none of them, and keeps nothing that
// belongs to them. The error, if any, names all objects that are at fault, in their order, and nothing is prepared. It wraps a
// [meta.NoKindMatchError] where neither the cluster nor any of the objects defines the kind of one: that may pass. cache may
// be nil.
func Prepare(objects []client.Object, options Options, cache *Cache) ([]Object, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	if cache == nil {
		cache = &Cache{}
	}
	entries, same := cache.recall(objects, &options)
	items := itemsOf(objects, entries, &options, cache.classes)

	p := &preparation{options: &options, sources: sourcesOf(objects, entries, items, &options)}
	for _, i := range items {
		if i.fault != nil {
			p.report(i, i.fault)
		}
	}
	err := p.run(items, same && cache.sound)
	cache.keep(entries, same, err == nil)
	if err != nil {
		return nil, err
	}
	result := make([]Object, len(items))
	for n, i := range items {
		s := &p.sources[n]
		s.namespace = i.within()
		result[n] = i.prepared(s)
	}
	return result, nil
}

// itemsOf fills in the items of entries that have none yet, and returns all of them.
func itemsOf(objects []client.Object, entries []entry, options *Options, known classes) []*item {
	items := make([]*item, 0, len(entries))
	for index := range entries {
		e := &entries[index]
		if e.items == nil {
			content, err := contentOf(objects[index], options.Scheme)
			if err != nil {
				e.items = []*item{faulty("", err)}
			} else {
				e.items = newItems(content, options, known)
			}
		}
		for _, i := range e.items {
			i.index, i.ordinal = index, len(items)
			items = append(items, i)
		}
	}
	return items
}

// sourcesOf returns the source of each of items, in their order. They are for one request.
func sourcesOf(objects []client.Object, entries []entry, items []*item, options *Options) []source {
	sources, shared := make([]source, len(items)), &request{options: options}
	for n, i := range items {
		s, e := &sources[n], &entries[i.index]
		s.generated, s.print, s.hasPrint = objects[i.index], e.print, e.hasPrint
		s.content, s.request = i.content, shared
	}
	return sources
}

// preparation is one request.
type preparation struct {
	options *Options
	// sources are those of the items, by their ordinals.
	sources []source
	faults  []fault
}

type fault struct {
	item *item
	err  error
}

func (p *preparation) report(i *item, err error) {
	p.faults = append(p.faults, fault{item: i, err: err})
}

// run completes items and, unless they are known to go together, checks that they do.
func (p *preparation) run(items []*item, known bool) error {
	t := typesOf(items)
	complete, same, err := p.complete(items, t)
	if err != nil {
		return err
	}
	if !known || !same {
		checkDuplicates(complete, p.report)
		checkDefinitions(t, p.report)
		checkOrders(complete, t, p.report)
	}
	return p.err()
}

// complete returns the items that are without fault, and whether all were complete already. An error is one of looking up a
// scope.
func (p *preparation) complete(items []*item, t *types) (complete []*item, same bool, err error) {
	s := &scopes{types: t, lookup: p.options.Namespaced, known: map[schema.GroupVersionKind]verdict{}}
	complete, same = make([]*item, 0, len(items)), true
	for _, i := range items {
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

// err names the objects at fault in their order.
func (p *preparation) err() error {
	slices.SortStableFunc(p.faults, func(a, b fault) int { return cmp.Compare(a.item.ordinal, b.item.ordinal) })
	errs := make([]error, 0, len(p.faults))
	for _, f := range p.faults {
		for _, err := range split(f.err) {
			errs = append(errs, fmt.Errorf("%s: %w", f.item.describe(), err))
		}
	}
	return errors.Join(errs...)
}

// split returns the errors that err was joined from, so that each of them can be given its object.
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
