package observe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
	"unique"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/informer"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options are the options of a [Watching].
type Options struct {
	// Config is the configuration of the watches. Its rate limit does not count. Required.
	Config *rest.Config
	// HTTPClient makes all requests that are not made by Client. Its timeout is left out, as it would end watches.
	// Default: one made from Config.
	HTTPClient *http.Client
	// Mapper finds where a type is served. If it can be reset, it is reset when it turns out to be wrong. Required.
	Mapper meta.RESTMapper
	// Client reads objects by name, past any cache. Required.
	Client client.Client
	// Prefix is the prefix of the keys on the objects. Required.
	Prefix string
	// FieldManager is the field manager that writes the objects. Required.
	FieldManager string
	// Evaluate returns how ready an object is. Default: this is not known.
	Evaluate Evaluate
	// Wake is called when there is news for a component; low is true if the news is not urgent. It must not block. It
	// is called from any goroutine, also during a call of the observer. Optional.
	Wake func(watcher types.NamespacedName, low bool)
	// Poll is how long, by Component.Now, an object is not read again whose type cannot be watched. Default: 30
	// seconds.
	Poll time.Duration
	// Log reports types that cannot be watched, and why. Default: nothing is logged.
	Log logr.Logger
}

const (
	defaultPoll = 30 * time.Second
	// maxReads is how often an Observe reads what has changed while it was reading.
	maxReads = 3
	// maxDigests is how many digests of fields are kept.
	maxDigests = 4096
)

var errStopped = errors.New("the observer is stopped")

// Watching is an [Observer] that watches the metadata of objects, with one watch for each type that a component is
// interested in. It serves all components that are deployed to one cluster with one identity.
//
// It drives the reflectors of client-go itself. A metadata cache of controller-runtime would need less code, but it
// does not say whether a watch is open now ([Observer].Managed), it does not separate news from the component's own
// writes, it does not poll types that cannot be watched, and it keeps the whole metadata of an object rather than a
// snapshot of about 300 bytes.
type Watching struct {
	options   Options
	extractor extractor
	metadata  metadata.Interface
	core      corev1client.CoreV1Interface
	discovery rest.Interface
	// kinds follow the types that are missing.
	kinds *informer.Kinds

	// root is the context of all goroutines, which are counted in running.
	root    context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
	// watchType watches a type until the context is done. It is run, except in tests.
	watchType func(ctx context.Context, t *watchedType)
	// watchName watches an object by its name until the context is done. It is runName, except in tests.
	watchName func(ctx context.Context, n *nameWatch, at schema.GroupVersionResource, name types.NamespacedName)

	mu      sync.Mutex
	stopped bool
	types   map[schema.GroupKind]*watchedType
	states  map[componentKey]*componentState
	// names is how many objects are watched by name.
	names int
	// defines are the types that objects define, by the entries of these objects. definers are the entries by type.
	defines  map[*entry][]apis.ManagedType
	definers map[schema.GroupKind][]*entry
	// digests are the digests of the fields of objects that were made alike. They save most of the time of a cold
	// start.
	digests *lru.Cache
}

type digestKey struct {
	fields unique.Handle[string]
	ignore string
}

var _ Observer = (*Watching)(nil)

// NewWatching returns an observer without any interest. Stop ends the goroutines that it starts.
func NewWatching(options Options) (*Watching, error) {
	if options.Config == nil || options.Mapper == nil || options.Client == nil ||
		options.Prefix == "" || options.FieldManager == "" {
		return nil, errors.New("an observer needs a config, a REST mapper, a client, a prefix and a field manager")
	}
	if options.Poll <= 0 {
		options.Poll = defaultPoll
	}
	config := rest.CopyConfig(options.Config)
	// A watch is one request, and the number of reads is limited. The API server protects itself.
	config.QPS, config.Burst, config.RateLimiter = -1, -1, nil
	// A timeout, of the config or of the client, would end watches.
	config.Timeout = 0
	if options.HTTPClient == nil {
		made, err := rest.HTTPClientFor(config)
		if err != nil {
			return nil, fmt.Errorf("cannot watch: %w", err)
		}
		options.HTTPClient = made
	}
	withoutTimeout := *options.HTTPClient
	withoutTimeout.Timeout = 0
	options.HTTPClient = &withoutTimeout
	w := &Watching{
		options:   options,
		extractor: newExtractor(options.Prefix, options.FieldManager),
		types:     map[schema.GroupKind]*watchedType{},
		states:    map[componentKey]*componentState{},
		defines:   map[*entry][]apis.ManagedType{},
		definers:  map[schema.GroupKind][]*entry{},
		digests:   lru.New(maxDigests),
	}
	var metadataErr, coreErr error
	w.metadata, metadataErr = metadata.NewForConfigAndClient(config, options.HTTPClient)
	w.core, coreErr = corev1client.NewForConfigAndClient(config, options.HTTPClient)
	discoverer, err := discovery.NewDiscoveryClientForConfigAndClient(config, options.HTTPClient)
	if err := cmp.Or(metadataErr, coreErr, err); err != nil {
		return nil, fmt.Errorf("cannot watch: %w", err)
	}
	w.discovery = discoverer.RESTClient()
	w.root, w.cancel = context.WithCancel(context.Background())
	w.watchType, w.watchName = w.run, w.runName
	w.kinds = informer.NewKinds(w.metadata, w.ask, options.Log)
	w.running.Go(func() { _ = w.kinds.Start(w.root) })
	return w, nil
}

// Stop ends all watches, and returns when no goroutine runs any more. The observer cannot be used afterwards.
func (w *Watching) Stop() {
	w.mu.Lock()
	w.stopped = true
	w.mu.Unlock()
	w.cancel()
	w.running.Wait()
}

// Size returns how many types are watched, and how many of their objects are kept. It costs a little for each type, and
// nothing for objects. Running is false once the observer was stopped.
func (w *Watching) Size() (types, objects int, running bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.types {
		objects += len(t.slots)
	}
	return len(w.types), objects, !w.stopped
}

// Kinds returns of how many objects of each watched type the metadata is kept.
func (w *Watching) Kinds() map[schema.GroupKind]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	kinds := make(map[schema.GroupKind]int, len(w.types))
	for _, t := range w.types {
		kinds[t.GroupKind] = len(t.slots)
	}
	return kinds
}

// Observe implements [Observer].
func (w *Watching) Observe(ctx context.Context, c Component, interests []Interest) (*Observation, error) {
	s, unlocated, err := w.begin(ctx, &c, interests)
	if err != nil {
		return nil, err
	}
	defer func() { <-s.sem }()
	for _, t := range unlocated {
		if err := w.resolve(ctx, t); err != nil {
			return nil, err
		}
	}
	for reads := 0; ; reads++ {
		observation, tasks := w.observation(s, &c, interests)
		if len(tasks) == 0 {
			return observation, nil
		}
		if reads == maxReads {
			// Objects change faster than they can be read. If no other event follows, only this wakes the component.
			if slices.ContainsFunc(tasks, func(t task) bool { return t.purpose == forStatus }) {
				w.locked(func(wake *wakeups) {
					wake.low = true
					s.notify(nil, wake)
				})
			}
			return observation, nil
		}
		if err := w.read(ctx, &c, tasks); err != nil {
			return nil, err
		}
	}
}

// begin waits until no other Observe is under way for the component, and stores the interests. It returns the types to
// be resolved. The caller has to release the semaphore of the state.
func (w *Watching) begin(
	ctx context.Context, c *Component, interests []Interest,
) (*componentState, []*watchedType, error) {
	for {
		w.mu.Lock()
		if w.stopped {
			w.mu.Unlock()
			return nil, nil, errStopped
		}
		s := w.stateOf(c)
		w.mu.Unlock()
		select {
		case s.sem <- struct{}{}:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
		w.mu.Lock()
		// The component may have been released meanwhile.
		if !w.stopped && w.states[c.key()] == s {
			w.setInterests(s, interests)
			unlocated := w.toResolve(s)
			w.mu.Unlock()
			return s, unlocated, nil
		}
		w.mu.Unlock()
		<-s.sem
	}
}

// toResolve returns the types of a component of which it is not known whether the API server serves them.
func (w *Watching) toResolve(s *componentState) []*watchedType {
	var found []*watchedType
	for _, t := range w.types {
		if t.users[s] > 0 && t.phase == unresolved {
			found = append(found, t)
		}
	}
	slices.SortFunc(found, func(a, b *watchedType) int { return compareKinds(a.GroupKind, b.GroupKind) })
	return found
}

func compareKinds(a, b schema.GroupKind) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
}

// task is an object to be read.
type task struct {
	entry   *entry
	purpose purpose
	in      *Interest
	// believed is the UID of the object that is believed to exist, or was once. An answer that there is none says
	// nothing of an object that the watch shows meanwhile.
	believed types.UID
}

// observation returns what is known of the objects, and the objects that have to be read to know more.
func (w *Watching) observation(s *componentState, c *Component, interests []Interest) (*Observation, []task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	result := &Observation{Objects: make(map[plan.Key]plan.Observed, len(interests))}
	var tasks []task
	for i, e := range s.entries[:min(len(s.entries), len(interests))] {
		in := &interests[i]
		believed, presence := e.latest(c.Now)
		why := e.purpose(believed, c.Now, w.options.Poll)
		if e.evaluation != nil {
			e.evaluation.counts = why == readLater
		}
		switch why {
		case noRead:
		case readLater:
			result.recheck(e.evaluation.due)
		default:
			uid := e.uid
			if believed != nil {
				uid = believed.uid
			}
			tasks = append(tasks, task{entry: e, purpose: why, in: in, believed: uid})
		}
		if believed == nil {
			seen := e.withoutObject(presence, c)
			seen.Refused = seen.Presence == plan.PresenceUnknown && e.failure != nil && e.failure.class.refused()
			result.Objects[in.Key] = seen
		} else {
			result.Objects[in.Key] = w.observed(e, believed, c, in)
		}
		if e.failure != nil {
			result.poll(e.typ.GroupKind, e.failure.class.readReason())
		}
	}
	for gk, t := range w.types {
		switch {
		case t.users[s] == 0:
		case t.phase == unresolved, t.phase == starting:
			result.Syncing = append(result.Syncing, gk)
		case t.phase == polled:
			result.poll(gk, t.reason)
		}
	}
	slices.SortFunc(result.Syncing, compareKinds)
	// An empty map would keep the memory of what it had.
	s.pending = map[*entry]struct{}{}
	s.pendingLow = false
	return result, tasks
}

func (o *Observation) recheck(at time.Time) {
	if o.Recheck.IsZero() || at.Before(o.Recheck) {
		o.Recheck = at
	}
}

func (o *Observation) poll(gk schema.GroupKind, reason string) {
	if o.Polled == nil {
		o.Polled = map[schema.GroupKind]string{}
	}
	o.Polled[gk] = reason
}

// observed returns what a version of an object means to the component.
func (w *Watching) observed(e *entry, s *snapshot, c *Component, in *Interest) plan.Observed {
	o := s.observed(c)
	o.Terminating = e.terminating(s, c.Now)
	if e.fieldsOf != s {
		e.fields, e.fieldsOf = w.fieldsDigest(s, in.Settings.IgnoreFields), s
	}
	o.Fields = e.fields
	if in.Confidential {
		o.Content = compareContent(in.Data, in.Settings.IgnoreFields, s.data)
	}
	e.setStatus(&o, s)
	return o
}

// fieldsDigest is [managedfields.Digest] of a snapshot. It computes the digest of objects that were made alike once.
func (w *Watching) fieldsDigest(s *snapshot, ignore []string) string {
	if len(s.entries) != 1 {
		return s.fieldsDigest(ignore)
	}
	key := digestKey{fields: s.entries[0].fields, ignore: strings.Join(ignore, "\n")}
	if digest, ok := w.digests.Get(key); ok {
		return digest.(string)
	}
	digest := s.fieldsDigest(ignore)
	w.digests.Add(key, digest)
	return digest
}

// evaluate returns how ready an object is, nil if that does not matter, or if it is known without the status.
func (w *Watching) evaluate(object *unstructured.Unstructured, s *snapshot, in *Interest) *evaluation {
	if !in.Readiness || in.Static || s.terminating || w.options.Evaluate == nil {
		return nil
	}
	result := in.result(object, w.options.Evaluate)
	return &evaluation{uid: s.uid, version: s.version, generation: s.generation, result: result}
}

// Wrote implements [Observer].
func (w *Watching) Wrote(c Component, interest Interest, object *unstructured.Unstructured) plan.Observed {
	if object == nil {
		return plan.Observed{}
	}
	said := w.extractor.snapshot(object)
	result := w.evaluate(object, said, &interest)
	definition := w.learn(object)
	var observed plan.Observed
	w.locked(func(wake *wakeups) {
		s := w.stateOf(&c)
		s.settled = false
		e := w.find(s, interest.Key)
		if e == nil {
			e = w.addEntry(s, interest.Key)
			s.entries = append(s.entries, e)
		}
		w.set(e, &interest)
		e.accept(said, result, c.Now)
		w.define(e, definition, wake)
		if shown := e.slot.shown; shown == nil || !older(said.version, shown.version) {
			delete(s.pending, e)
		}
		observed = w.observed(e, said, &c, &interest)
	})
	return observed
}

// Deleted implements [Observer].
func (w *Watching) Deleted(c Component, key plan.Key, uid types.UID, gone bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.lookUp(&c)
	e := w.find(s, key)
	if e == nil {
		return
	}
	s.settled = false
	believed, _ := e.latest(c.Now)
	if uid == "" && believed != nil {
		uid = believed.uid
	}
	shown := e.slot.shown
	if shown != nil && shown.uid == uid || gone && shown == nil {
		delete(s.pending, e)
	}
	switch {
	case gone:
		if believed == nil || believed.uid == uid {
			e.response, e.deletion, e.evaluation = &response{gone: uid, at: c.Now}, nil, nil
		}
		return
	case believed != nil && believed.uid == uid:
		e.deletion = &deletion{uid: uid, at: c.Now}
	case believed == nil && e.response == nil && e.typ.phase == live:
		// The watch was faster than the answer.
		e.response = &response{gone: uid, at: c.Now}
	}
	e.readAgain = true
}

// Managed implements [Observer].
func (w *Watching) Managed(c Component, key plan.Key) []metav1.ManagedFieldsEntry {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.find(w.lookUp(&c), key)
	if e == nil {
		return nil
	}
	if believed, _ := e.latest(c.Now); e.current(c.Now) {
		return believed.managedFields(w.options.FieldManager)
	}
	return nil
}
