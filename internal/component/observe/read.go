package observe

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/served"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// readParallel is how many requests are under way at the same time.
	readParallel = 16
	// readTogether is the number of objects of one type and namespace above which they are listed.
	readTogether = 8
	// readTimeout limits one request: an API that does not answer must not hold up the caller.
	readTimeout = 15 * time.Second
)

// reader reads objects for one Observe.
type reader struct {
	*Watching
	component *Component
	// lock guards the maps.
	lock sync.Mutex
	// broken are types whose requests all fail now.
	broken map[*watchedType]error
	// versions are the versions of types that are not served in the version that was asked for first.
	versions map[*watchedType]string
}

// batch are objects of one type in one namespace.
type batch struct {
	typ                *watchedType
	namespace, version string
}

func batchOf(t task) batch {
	return batch{typ: t.entry.typ, namespace: t.entry.name.Namespace, version: t.in.Version}
}

// read reads the objects of tasks. It lists first what can be listed. It records in the entries what it finds, and what
// it cannot read. It fails only if ctx is done.
func (w *Watching) read(ctx context.Context, c *Component, tasks []task) error {
	r := &reader{Watching: w, component: c, broken: map[*watchedType]error{}, versions: map[*watchedType]string{}}
	byBatch := map[batch][]task{}
	var single []task
	w.mu.Lock()
	for _, t := range tasks {
		e := t.entry
		// An object that has lost its label is in no list.
		if t.purpose == forPresence || e.typ.unlistable[e.name.Namespace] {
			single = append(single, t)
			continue
		}
		b := batchOf(t)
		byBatch[b] = append(byBatch[b], t)
	}
	w.mu.Unlock()
	var batches [][]task
	for _, members := range byBatch {
		if len(members) > readTogether {
			batches = append(batches, members)
		} else {
			single = append(single, members...)
		}
	}
	missed := make([][]task, len(batches))
	workqueue.ParallelizeUntil(ctx, readParallel, len(batches), func(i int) { missed[i] = r.list(ctx, batches[i]) })
	single = append(single, slices.Concat(missed...)...)
	workqueue.ParallelizeUntil(ctx, readParallel, len(single), func(i int) { r.get(ctx, single[i]) })
	return ctx.Err()
}

// list reads the objects of a batch, and returns the tasks whose objects have to be read one by one.
func (r *reader) list(ctx context.Context, tasks []task) (missed []task) {
	b := batchOf(tasks[0])
	wanted := make(map[string]task, len(tasks))
	for _, t := range tasks {
		wanted[t.entry.name.Name] = t
	}
	for token := ""; ; {
		var list *unstructured.UnstructuredList
		err := r.request(ctx, b.typ, b.version, func(ctx context.Context, gvk schema.GroupVersionKind) (err error) {
			list, err = listPage(ctx, r.options.Client, gvk, b.namespace,
				client.MatchingLabels{r.extractor.label: r.component.OwnerID}, client.Continue(token))
			return err
		})
		switch {
		case ctx.Err() != nil:
			return nil
		case classify(err) == forbidden:
			r.locked(func(*wakeups) {
				if b.typ.unlistable == nil {
					b.typ.unlistable = map[string]bool{}
				}
				b.typ.unlistable[b.namespace] = true
			})
		case err != nil:
			for _, t := range wanted {
				r.failed(t, err)
			}
			return nil
		default:
			for i := range list.Items {
				name := list.Items[i].GetName()
				if t, ok := wanted[name]; ok {
					delete(wanted, name)
					r.found(t, &list.Items[i])
				}
			}
			if token = list.GetContinue(); token != "" {
				continue
			}
		}
		return slices.DeleteFunc(tasks, func(t task) bool { _, left := wanted[t.entry.name.Name]; return !left })
	}
}

// get reads one object.
func (r *reader) get(ctx context.Context, t task) {
	e := t.entry
	var object *unstructured.Unstructured
	err := r.request(ctx, e.typ, t.in.Version, func(ctx context.Context, gvk schema.GroupVersionKind) (err error) {
		object, err = getObject(ctx, r.options.Client, gvk, e.name)
		return err
	})
	switch {
	case err == nil:
		r.found(t, object)
	case served.IsNotFound(err):
		r.notFound(t)
	case ctx.Err() == nil:
		r.failed(t, err)
	}
}

// request makes a request about a type, in the version asked for or in one that is served. It makes none if the
// requests of the type all fail.
func (r *reader) request(ctx context.Context, t *watchedType, version string, do request) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	r.mu.Lock()
	watched := t.resource.Version
	r.mu.Unlock()
	r.lock.Lock()
	known, broken := r.versions[t], r.broken[t]
	r.lock.Unlock()
	if broken != nil {
		return broken
	}
	versions := []string{cmp.Or(known, version, watched)}
	if watched != "" {
		versions = append(versions, watched)
	}
	version, err, _ := inServedVersion(ctx, r.options.Mapper, t.GroupKind, versions, do)
	r.lock.Lock()
	defer r.lock.Unlock()
	if version != versions[0] {
		r.versions[t] = version
	}
	if classify(err).affectsType() && !served.IsNotFound(err) {
		r.broken[t] = err
	}
	return err
}

// update changes the entry of a task, unless the interest has ended.
func (r *reader) update(t task, change func(e *entry)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.entry.slot != nil {
		change(t.entry)
	}
}

// found records an object that was read.
func (r *reader) found(t task, object *unstructured.Unstructured) {
	s := r.extractor.snapshot(object)
	result := r.evaluate(object, s, t.in)
	definition := r.learn(object)
	r.locked(func(wake *wakeups) {
		if e := t.entry; e.slot != nil {
			e.accept(s, result, r.component.Now)
			r.define(e, definition, wake)
		}
	})
}

// notFound records that an object does not exist.
func (r *reader) notFound(t task) {
	r.update(t, func(e *entry) {
		e.failure, e.readAgain, e.deletion = nil, false, nil
		e.response = &response{gone: t.believed, at: r.component.Now}
	})
}

// failed records that an object could not be read. What was known of it stays.
func (r *reader) failed(t task, err error) {
	r.update(t, func(e *entry) { e.failure = &readFailure{class: classify(err), at: r.component.Now} })
}
