package controllers

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reaction is the time from a change to the look at it. It is virtual in a bubble: all that watches say about changes
// of the same moment is known when it has passed, so that the order of looks does not depend on that of goroutines.
const reaction = 5 * time.Millisecond

// retries are the shortest and the longest time after which something that failed is tried again.
const shortestRetry, longestRetry = time.Second, 15 * time.Minute

// item is an object that a controller looks at.
type item struct {
	controller *controller
	key        key
}

// runner keeps a view up to date and carries out what controllers decide. It is one goroutine; each watch is another.
type runner struct {
	watcher
	controllers []*controller
	view        *view
	resources   map[schema.GroupKind]resource
	inbox       *inbox
	failed      func(error)

	// queue are the items to look at, in the order in which they were found.
	queue  []item
	queued map[item]bool
	// due are the items to look at at a time.
	due map[item]time.Time
	// delays are those after the last failures of items.
	delays map[item]time.Duration

	watches sync.WaitGroup
	// present is that of the options.
	present func(kind schema.GroupKind) bool
	// stops end the watches of kinds.
	stops map[schema.GroupKind]context.CancelFunc
	// defined are the resources of definitions.
	defined map[key]resource
	again   chan struct{}
}

func newRunner(c client.WithWatch, m metadata.Interface, controllers []*controller, failed func(error)) *runner {
	return &runner{
		watcher: watcher{c, m}, controllers: controllers, failed: failed,
		view: newView(), resources: map[schema.GroupKind]resource{}, inbox: newInbox(),
		queued: map[item]bool{}, due: map[item]time.Time{}, delays: map[item]time.Duration{},
		stops: map[schema.GroupKind]context.CancelFunc{}, defined: map[key]resource{}, again: make(chan struct{}, 1),
	}
}

// know takes a resource into the view, and watches it if there are objects.
func (r *runner) know(ctx context.Context, res resource) {
	kind := res.groupKind()
	r.resources[kind] = res
	r.view.tables[kind] = &table{
		resource: res.GroupResource(), namespaced: res.namespaced, objects: map[string]map[string]client.Object{},
		synced: true,
	}
	if r.present == nil || r.present(kind) {
		r.watch(ctx, kind)
	}
}

// watch starts to watch a resource in the view, if it is not watched.
func (r *runner) watch(ctx context.Context, kind schema.GroupKind) {
	res, known := r.resources[kind]
	if !known || r.stops[kind] != nil {
		return
	}
	r.view.tables[kind].synced = false
	ctx, r.stops[kind] = context.WithCancel(ctx)
	r.watches.Go(func() { r.follow(ctx, res, r.inbox, r.failed) })
}

// unwatch forgets a kind.
func (r *runner) unwatch(kind schema.GroupKind) {
	if stop := r.stops[kind]; stop != nil {
		stop()
	}
	delete(r.stops, kind)
	delete(r.resources, kind)
	r.view.forget(kind)
}

// sync waits until the view has all objects. What it watches from then on ends with running.
func (r *runner) sync(ctx, running context.Context) error {
	for {
		r.receive(running)
		if !slices.ContainsFunc(slices.Collect(maps.Values(r.view.tables)), func(t *table) bool { return !t.synced }) {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-r.inbox.signal:
		}
	}
}

// run works until the context ends.
func (r *runner) run(ctx context.Context) {
	for ctx.Err() == nil {
		r.look(ctx)
		r.wait(ctx)
	}
	r.watches.Wait()
}

// wait returns when there is something to look at.
func (r *runner) wait(ctx context.Context) {
	var timer <-chan time.Time
	if len(r.queue) > 0 {
		timer = time.After(reaction)
	} else if len(r.due) > 0 {
		timer = time.After(time.Until(slices.MinFunc(slices.Collect(maps.Values(r.due)), time.Time.Compare)))
	}
	select {
	case <-ctx.Done():
	case <-timer:
	case <-r.again:
		r.enqueueAll()
	case <-r.inbox.signal:
		if len(r.queue) == 0 {
			time.Sleep(reaction)
		}
	}
	r.receive(ctx)
	r.enqueueDue(time.Now())
}

// look has the controllers decide about what is queued, and does what they say. What that changes is for the next look.
func (r *runner) look(ctx context.Context) {
	queue := r.queue
	r.queue, r.queued = nil, map[item]bool{}
	for _, i := range queue {
		delete(r.due, i)
		obj := r.view.find(i.key)
		if obj == nil {
			delete(r.delays, i)
			continue
		}
		d := i.controller.decide(r.view, i.key, obj, time.Now())
		if err := r.carryOut(ctx, i, d); err != nil {
			r.retry(ctx, i, err)
			continue
		}
		delete(r.delays, i)
		if !d.next.IsZero() {
			r.due[i] = d.next
		}
	}
}

func (r *runner) carryOut(ctx context.Context, i item, d decision) error {
	for _, w := range d.writes {
		if err := r.do(ctx, i.controller.name, w); err != nil {
			return err
		}
	}
	return nil
}

// retry has a look that failed done again later. What is refused because its namespace ends is not tried again.
func (r *runner) retry(ctx context.Context, i item, err error) {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || ctx.Err() != nil {
		return
	}
	// The reason of these is a change that is not in the view yet.
	if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
		r.failed(err)
	}
	r.delays[i] = min(max(2*r.delays[i], shortestRetry), longestRetry)
	r.due[i] = time.Now().Add(r.delays[i])
}

// retryNow has all looks that failed at a kind done again, because the server answers again.
func (r *runner) retryNow(kind schema.GroupKind) {
	for i := range r.delays {
		if i.key.GroupKind == kind {
			r.due[i], r.delays[i] = time.Now(), 0
		}
	}
}

// receive takes what the watches said into the view.
func (r *runner) receive(ctx context.Context) {
	notices := r.inbox.take()
	slices.SortStableFunc(notices, func(a, b notice) int { return compareRevisions(a.at(), b.at()) })
	for _, n := range notices {
		t := r.view.tables[n.kind]
		switch {
		case n.appeared:
			r.watch(ctx, n.kind)
		case t == nil:
		case n.object == nil:
			r.replace(n)
			if !t.synced {
				// Others may have owners of this kind.
				t.synced = true
				r.enqueueAll()
			}
			r.retryNow(n.kind)
		case n.deleted:
			k := key{n.kind, n.object.GetNamespace(), n.object.GetName()}
			if old, ok := r.view.remove(k, n.object.GetUID()); ok {
				r.enqueueFor(k, old)
			}
		default:
			r.changed(key{n.kind, n.object.GetNamespace(), n.object.GetName()}, n.object)
		}
	}
	if slices.ContainsFunc(notices, func(n notice) bool { return n.kind == definitionKind }) {
		r.watchDefined(ctx)
	}
}

// replace takes all objects of a kind into the view, in the order of their keys, and forgets the others.
func (r *runner) replace(n notice) {
	there := map[key]client.Object{}
	for _, obj := range n.all {
		there[key{n.kind, obj.GetNamespace(), obj.GetName()}] = obj
	}
	for _, k := range r.view.keys(n.kind, "") {
		old := r.view.find(k)
		if there[k] == nil && compareRevisions(old.GetResourceVersion(), n.revision) <= 0 {
			r.view.remove(k, old.GetUID())
			r.enqueueFor(k, old)
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(there), compareKeys) {
		r.changed(k, there[k])
	}
}

// changed takes an object into the view and has all looked at that it concerns.
func (r *runner) changed(k key, obj client.Object) {
	old, ok := r.view.put(k, obj)
	if !ok {
		return
	}
	if old != nil {
		r.enqueueFor(k, old)
	}
	r.enqueueFor(k, obj)
}

// enqueueFor queues all that an object concerns.
func (r *runner) enqueueFor(k key, obj client.Object) {
	concerned := append([]key{k}, r.owners(k, obj)...)
	for _, c := range r.controllers {
		all := concerned
		if c.concerns != nil {
			all = append(slices.Clone(concerned), c.concerns(r.view, k, obj)...)
		}
		for _, k := range all {
			if c.handles(k.GroupKind) {
				r.enqueue(item{c, k})
			}
		}
	}
}

// owners returns the controller of an object, and the one of that.
func (r *runner) owners(k key, obj client.Object) []key {
	var all []key
	for range 2 {
		reference := metav1.GetControllerOf(obj)
		if reference == nil {
			break
		}
		kind := schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind).GroupKind()
		owner := key{kind, k.namespace, reference.Name}
		all = append(all, owner)
		if obj = r.view.find(owner); obj == nil {
			break
		}
	}
	return all
}

func (r *runner) enqueue(i item) {
	if !r.queued[i] {
		r.queued[i] = true
		r.queue = append(r.queue, i)
	}
}

func (r *runner) enqueueDue(now time.Time) {
	var due []item
	for i, at := range r.due {
		if !at.After(now) {
			due = append(due, i)
		}
	}
	slices.SortFunc(due, func(a, b item) int {
		return cmp.Or(r.due[a].Compare(r.due[b]), compareKeys(a.key, b.key),
			slices.Index(r.controllers, a.controller)-slices.Index(r.controllers, b.controller))
	})
	for _, i := range due {
		r.enqueue(i)
	}
}

func (r *runner) enqueueAll() {
	for _, kind := range r.view.kinds() {
		for _, k := range r.view.keys(kind, "") {
			for _, c := range r.controllers {
				if c.handles(kind) {
					r.enqueue(item{c, k})
				}
			}
		}
	}
}

// watchDefined watches the resources of all definitions, and no others that were defined.
func (r *runner) watchDefined(ctx context.Context) {
	now := map[key]resource{}
	for _, d := range list[*apiextensionsv1.CustomResourceDefinition](r.view, definitionKind, "") {
		if res, ok := defined(d); ok {
			now[keyOf(d)] = res
		}
	}
	for k, res := range r.defined {
		if now[k] != res {
			r.unwatch(res.groupKind())
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(now), compareKeys) {
		if kind := now[k].groupKind(); r.resources[kind] != now[k] {
			r.unwatch(kind)
			r.know(ctx, now[k])
		}
	}
	r.defined = now
}
