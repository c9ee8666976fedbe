package observe

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/component/readiness"
	"github.com/espalier-dev/espalier/internal/component/served"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// readParallel is how many requests are under way at the same time.
	readParallel = 16
	// readTogether is the number of objects of one type and namespace above which they are listed.
	readTogether = 8
	// readPage is how many are listed with one request.
	readPage = 500
	// readTimeout is for one request: an API that does not answer must not hold up the caller.
	readTimeout = 15 * time.Second
)

// reader carries out the reading of objects for one Observe.
type reader struct {
	*Watching
	component Component
	// lock guards broken.
	lock sync.Mutex
	// broken are types of which nothing can be read now.
	broken map[*kind]trouble
	// versions are those in which types are served that are not served in the version that was asked for first.
	versions map[*kind]string
}

// batch are objects of one type in one namespace.
type batch struct {
	kind      *kind
	namespace string
	version   string
	tasks     []task
}

// read reads the objects of tasks. What it finds, and what it cannot read, is noted in the entries. The error is that of ctx.
func (w *Watching) read(ctx context.Context, c Component, tasks []task) error {
	r := &reader{Watching: w, component: c, broken: map[*kind]trouble{}, versions: map[*kind]string{}}
	batches, single := w.divide(tasks)
	var missed []task
	var lock sync.Mutex
	group := errgroup.Group{}
	group.SetLimit(readParallel)
	for _, b := range batches {
		group.Go(func() error {
			rest := r.list(ctx, b)
			lock.Lock()
			defer lock.Unlock()
			missed = append(missed, rest...)
			return nil
		})
	}
	for _, t := range single {
		group.Go(func() error {
			r.get(ctx, t)
			return nil
		})
	}
	_ = group.Wait()
	slices.SortFunc(missed, func(a, b task) int { return cmp.Compare(a.in.Key.String(), b.in.Key.String()) })
	group = errgroup.Group{}
	group.SetLimit(readParallel)
	for _, t := range missed {
		group.Go(func() error {
			r.get(ctx, t)
			return nil
		})
	}
	_ = group.Wait()
	return ctx.Err()
}

// divide tells what is listed from what is read one by one.
func (w *Watching) divide(tasks []task) (batches []batch, single []task) {
	type place struct {
		kind               *kind
		namespace, version string
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	index := map[place]int{}
	for _, t := range tasks {
		e := t.entry
		// What has lost its label is in no list.
		if t.purpose == toFind || e.kind.unlistable[e.name.Namespace] {
			single = append(single, t)
			continue
		}
		p := place{kind: e.kind, namespace: e.name.Namespace, version: t.in.Version}
		at, ok := index[p]
		if !ok {
			at = len(batches)
			index[p] = at
			batches = append(batches, batch{kind: e.kind, namespace: p.namespace, version: p.version})
		}
		batches[at].tasks = append(batches[at].tasks, t)
	}
	return slices.DeleteFunc(batches, func(b batch) bool {
		if len(b.tasks) > readTogether {
			return false
		}
		single = append(single, b.tasks...)
		return true
	}), single
}

// list reads the objects of a batch, and returns those that were not in the list.
func (r *reader) list(ctx context.Context, b batch) []task {
	broken := r.brokenKind(b.kind)
	wanted := make(map[string]task, len(b.tasks))
	for _, t := range b.tasks {
		wanted[t.entry.name.Name] = t
		if broken != none {
			r.failed(t, broken)
		}
	}
	if broken != none {
		return nil
	}
	token := ""
	for {
		list, err := r.page(ctx, b, token)
		if ctx.Err() != nil {
			return nil
		}
		if diagnose(err) == forbidden {
			r.locked(func(*bell) {
				if b.kind.unlistable == nil {
					b.kind.unlistable = map[string]bool{}
				}
				b.kind.unlistable[b.namespace] = true
			})
			return remaining(wanted)
		}
		if err != nil {
			found := r.broke(b.kind, err)
			for _, t := range wanted {
				r.failed(t, found)
			}
			return nil
		}
		for i := range list.Items {
			item := &list.Items[i]
			t, ok := wanted[item.GetName()]
			if !ok {
				continue
			}
			delete(wanted, item.GetName())
			r.found(t, item)
		}
		if token = list.GetContinue(); token == "" {
			return remaining(wanted)
		}
	}
}

func remaining(wanted map[string]task) []task {
	rest := make([]task, 0, len(wanted))
	for _, t := range wanted {
		rest = append(rest, t)
	}
	return rest
}

func (r *reader) page(ctx context.Context, b batch, token string) (*unstructured.UnstructuredList, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var list *unstructured.UnstructuredList
	err := r.inVersion(ctx, b.kind, b.version, func(gvk schema.GroupVersionKind) error {
		list = &unstructured.UnstructuredList{}
		gvk.Kind += "List"
		list.SetGroupVersionKind(gvk)
		return r.options.Client.List(ctx, list, client.InNamespace(b.namespace),
			client.MatchingLabels{r.lens.label: r.component.OwnerID}, client.Limit(readPage), client.Continue(token))
	})
	return list, err
}

// inVersion makes a request in a version, or, if the type is not served in that, in one in which it is.
func (r *reader) inVersion(ctx context.Context, k *kind, version string, request func(gvk schema.GroupVersionKind) error) error {
	r.mu.Lock()
	watched := k.resource.Version
	r.mu.Unlock()
	r.lock.Lock()
	known := r.versions[k]
	r.lock.Unlock()
	version = cmp.Or(known, version, watched)
	err := request(k.WithVersion(version))
	if !served.IsNotServed(err) {
		return err
	}
	if watched != "" && watched != version {
		version, err = watched, request(k.WithVersion(watched))
	}
	if served.IsNotServed(err) {
		now, ok, found := served.Version(ctx, r.options.Mapper, k.GroupKind)
		if found != nil || !ok {
			return err
		}
		version, err = now, request(k.WithVersion(now))
	}
	if !served.IsNotServed(err) {
		r.lock.Lock()
		r.versions[k] = version
		r.lock.Unlock()
	}
	return err
}

// get reads one object.
func (r *reader) get(ctx context.Context, t task) {
	if broken := r.brokenKind(t.entry.kind); broken != none {
		r.failed(t, broken)
		return
	}
	limited, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	key := t.in.Key
	var object *unstructured.Unstructured
	err := r.inVersion(limited, t.entry.kind, t.in.Version, func(gvk schema.GroupVersionKind) error {
		object = &unstructured.Unstructured{}
		object.SetGroupVersionKind(gvk)
		return r.options.Client.Get(limited, types.NamespacedName{Namespace: key.Namespace, Name: key.Name}, object)
	})
	switch {
	case err == nil:
		r.found(t, object)
	case served.IsNotFound(err):
		r.gone(t)
	case ctx.Err() == nil:
		r.failed(t, r.broke(t.entry.kind, err))
	}
}

// broke returns what an error means, and spares the other objects of the type if it would be the same for them.
func (r *reader) broke(k *kind, err error) trouble {
	found := diagnose(err)
	if found.persistent() {
		r.lock.Lock()
		defer r.lock.Unlock()
		r.broken[k] = found
	}
	return found
}

func (r *reader) brokenKind(k *kind) trouble {
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.broken[k]
}

// found takes in an object that was read.
func (r *reader) found(t task, object *unstructured.Unstructured) {
	e := t.entry
	shown := r.lens.object(object, confidential(t.in.Key))
	var result readiness.Result
	judged := t.in.Readiness && r.options.Evaluate != nil && !shown.terminating
	if judged {
		result = r.options.Evaluate(object, t.in.Settings)
	}
	r.locked(func(*bell) {
		if e.cell == nil {
			return
		}
		e.failure, e.again = nil, false
		if seen := e.cell.sight; seen == nil || e.kind.phase != live || older(seen.version, shown.version) {
			e.answer = &answer{sight: shown, at: r.component.Now}
		}
		if judged && !e.static {
			e.verdict = &verdict{uid: shown.uid, version: shown.version, result: result}
		}
	})
}

// gone takes in that an object does not exist.
func (r *reader) gone(t task) {
	e := t.entry
	r.locked(func(*bell) {
		if e.cell == nil {
			return
		}
		uid := e.uid
		if believed, _ := e.believe(r.component.Now); believed != nil {
			uid = believed.uid
		}
		e.failure, e.again, e.going = nil, false, nil
		e.answer = &answer{gone: uid, at: r.component.Now}
	})
}

// failed takes in that an object could not be read. What was known of it stays.
func (r *reader) failed(t task, found trouble) {
	r.locked(func(*bell) {
		if t.entry.cell == nil {
			return
		}
		t.entry.failure = &failure{trouble: found, at: r.component.Now}
	})
}
