package observe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
	"unique"

	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/component/readiness"

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
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options are what a [Watching] is made from.
type Options struct {
	// Config is what to watch with. Its rate limit does not count. Required.
	Config *rest.Config
	// HTTPClient is used for all requests that are not made by Client. A time-out of it is left out, as it would end watches.
	// Default: one made from Config.
	HTTPClient *http.Client
	// Mapper finds where a type is served. It is reset, if it can be, when it turns out to be wrong. Required.
	Mapper meta.RESTMapper
	// Client reads objects by name, past any cache. Required.
	Client client.Client
	// Prefix is that of the keys on the objects. Required.
	Prefix string
	// FieldManager is the one that objects are written as. Required.
	FieldManager string
	// Evaluate tells how ready an object is. Default: nobody can tell.
	Evaluate Evaluate
	// Wake is called when there is news for a component, with low if nobody is in a hurry for it. It must not block, and may be
	// called at any time, from any goroutine, also during a call of the observer. Optional.
	Wake func(watcher types.NamespacedName, low bool)
	// Poll is how old what is known of an object may be whose type cannot be watched, in terms of Component.Now. Default:
	// 30 seconds.
	Poll time.Duration
	// Log is told which types cannot be watched, and why. Default: nothing is logged.
	Log logr.Logger
}

const defaultPoll = 30 * time.Second

// Watching is an [Observer] that watches, for each type that a component is interested in, the metadata of the objects of all
// components of its prefix. It serves all components that are deployed to one cluster with one identity.
//
// It keeps nothing of an object but what it takes to tell whether somebody changed it: for Secrets this includes a keyed hash
// of each value, and never the value.
type Watching struct {
	options   Options
	lens      lens
	metadata  metadata.Interface
	core      corev1client.CoreV1Interface
	discovery rest.Interface

	// root is the context of all goroutines, which are counted in running.
	root    context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
	// launch starts the goroutine that watches a type.
	launch func(ctx context.Context, k *kind)

	mu      sync.Mutex
	stopped bool
	kinds   map[schema.GroupKind]*kind
	states  map[types.NamespacedName]*state
	// epoch counts changes to the objects that define types.
	epoch int
	memo  map[memoKey]string
}

var _ Observer = (*Watching)(nil)

// NewWatching returns an observer without any interest. Stop ends what it starts.
func NewWatching(options Options) (*Watching, error) {
	if options.Config == nil || options.Mapper == nil || options.Client == nil || options.Prefix == "" || options.FieldManager == "" {
		return nil, errors.New("an observer needs a config, a REST mapper, a client, a prefix and a field manager")
	}
	if options.Poll <= 0 {
		options.Poll = defaultPoll
	}
	config := rest.CopyConfig(options.Config)
	// A watch is one request, and what is read is bounded; the API server knows best how much it can bear.
	config.QPS, config.Burst, config.RateLimiter = -1, -1, nil
	// It would end watches.
	config.Timeout = 0
	if options.HTTPClient == nil {
		made, err := rest.HTTPClientFor(config)
		if err != nil {
			return nil, fmt.Errorf("cannot watch: %w", err)
		}
		options.HTTPClient = made
	} else if options.HTTPClient.Timeout != 0 {
		lasting := *options.HTTPClient
		lasting.Timeout = 0
		options.HTTPClient = &lasting
	}
	w := &Watching{
		options: options,
		lens:    newLens(options.Prefix, options.FieldManager),
		kinds:   map[schema.GroupKind]*kind{},
		states:  map[types.NamespacedName]*state{},
		memo:    map[memoKey]string{},
	}
	var err error
	if w.metadata, err = metadata.NewForConfigAndClient(config, options.HTTPClient); err != nil {
		return nil, fmt.Errorf("cannot watch: %w", err)
	}
	if w.core, err = corev1client.NewForConfigAndClient(config, options.HTTPClient); err != nil {
		return nil, fmt.Errorf("cannot watch: %w", err)
	}
	found, err := discovery.NewDiscoveryClientForConfigAndClient(config, options.HTTPClient)
	if err != nil {
		return nil, fmt.Errorf("cannot watch: %w", err)
	}
	w.discovery = found.RESTClient()
	w.root, w.cancel = context.WithCancel(context.Background())
	w.launch = w.run
	return w, nil
}

// Stop ends all watches, and returns when nothing runs any more. The observer cannot be used afterwards.
func (w *Watching) Stop() {
	w.mu.Lock()
	w.stopped = true
	w.mu.Unlock()
	w.cancel()
	w.running.Wait()
}

// locked runs f under the lock, and wakes whom f says after it.
func (w *Watching) locked(f func(b *bell)) {
	var b bell
	func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		f(&b)
	}()
	b.ring(w.options.Wake)
}

// stateOf returns the state of a component, nil if it has none. One of another UID is dropped.
func (w *Watching) stateOf(c Component) *state {
	s := w.states[c.Watcher]
	if s != nil && s.uid != c.UID {
		w.drop(s)
		return nil
	}
	return s
}

// stateFor returns the state of a component, which is made if need be.
func (w *Watching) stateFor(c Component) *state {
	s := w.stateOf(c)
	if s == nil {
		s = &state{watcher: c.Watcher, uid: c.UID, unseen: map[*entry]struct{}{}, turn: make(chan struct{}, 1)}
		w.states[c.Watcher] = s
	}
	return s
}

// Wrote implements [Observer].
func (w *Watching) Wrote(c Component, interest Interest, object *unstructured.Unstructured) plan.Observed {
	if object == nil {
		return plan.Observed{}
	}
	shown := w.lens.object(object, confidential(interest.Key))
	var result readiness.Result
	judged := interest.Readiness && !shown.terminating && w.options.Evaluate != nil
	if judged {
		result = w.options.Evaluate(object, interest.Settings)
	}
	var o plan.Observed
	w.locked(func(b *bell) {
		s := w.stateFor(c)
		e := w.find(s, interest.Key)
		first := e == nil
		if first {
			e = w.newEntry(s, interest.Key)
			s.extra = append(s.extra, e)
		}
		e.set(&interest, first)
		e.failure, e.again = nil, false
		if e.going != nil && e.going.uid != shown.uid {
			e.going = nil
		}
		if judged && !e.static {
			e.verdict = &verdict{uid: shown.uid, version: shown.version, result: result}
		}
		w.note(e, shown, c.Now)
		w.bringing(e.kind)
		o = w.describe(e, shown, c, &interest)
	})
	return o
}

// note takes in the answer to a request that shows an object.
func (w *Watching) note(e *entry, shown *sight, now time.Time) {
	seen := e.cell.sight
	if seen == nil || e.kind.phase != live || older(seen.version, shown.version) {
		e.answer = &answer{sight: shown, at: now}
	} else {
		e.answer = nil
	}
	if seen == nil || !older(shown.version, seen.version) {
		delete(e.state.unseen, e)
	}
}

// Deleted implements [Observer].
func (w *Watching) Deleted(c Component, key plan.Key, uid types.UID, gone bool) {
	w.locked(func(b *bell) {
		s := w.stateOf(c)
		if s == nil {
			return
		}
		e := w.find(s, key)
		if e == nil {
			return
		}
		w.bringing(e.kind)
		believed, _ := e.believe(c.Now)
		if uid == "" && believed != nil {
			uid = believed.uid
		}
		seen := e.cell.sight
		if gone {
			if believed == nil || believed.uid == uid {
				e.answer, e.going, e.verdict = &answer{gone: uid, at: c.Now}, nil, nil
			}
			if seen == nil || seen.uid == uid {
				delete(s.unseen, e)
			}
			return
		}
		e.again = true
		switch {
		case believed != nil && believed.uid == uid:
			e.going = &going{uid: uid, at: c.Now}
		case believed == nil && e.answer == nil && e.kind.phase == live:
			// The watch was faster than the answer.
			e.answer = &answer{gone: uid, at: c.Now}
		}
		if seen != nil && seen.uid == uid {
			delete(s.unseen, e)
		}
	})
}

// Managed implements [Observer].
func (w *Watching) Managed(c Component, key plan.Key) []metav1.ManagedFieldsEntry {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.stateOf(c)
	if s == nil {
		return nil
	}
	e := w.find(s, key)
	if e == nil {
		return nil
	}
	shown, _ := e.believe(c.Now)
	if !e.current(c.Now) {
		return nil
	}
	return shown.entries(w.options.FieldManager)
}

// Pause implements [Observer].
func (w *Watching) Pause(c Component) (resume func()) {
	var s *state
	w.locked(func(*bell) {
		s = w.stateFor(c)
		s.paused++
	})
	return sync.OnceFunc(func() {
		w.locked(func(b *bell) {
			if w.states[c.Watcher] != s {
				return
			}
			s.resume(b)
		})
	})
}

// Release implements [Observer].
func (w *Watching) Release(c Component) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.states[c.Watcher]; s != nil && (c.UID == "" || s.uid == c.UID) {
		w.drop(s)
	}
}

// bringing takes in that an object may have changed which types there are. Those who wait for one look again.
func (w *Watching) bringing(k *kind) {
	if !k.brings() {
		return
	}
	w.epoch++
	for _, other := range w.kinds {
		if other.phase == missing {
			other.poke()
		}
	}
}

// memoKey are the sets of fields that a digest was made of, of up to two entries.
type memoKey struct {
	first, second unique.Handle[string]
	count         int
	ignore        string
}

const maxMemo = 4096

// fieldsOf is [Fields] of a sight. Objects that were made alike are worked out once.
func (w *Watching) fieldsOf(s *sight, ignore []string) string {
	if !s.tracked || len(s.shares) > 2 {
		return s.fieldsDigest(ignore)
	}
	key := memoKey{count: len(s.shares), ignore: strings.Join(ignore, "\n")}
	if len(s.shares) > 0 {
		key.first = s.shares[0].fields
	}
	if len(s.shares) > 1 {
		key.second = s.shares[1].fields
	}
	text, ok := w.memo[key]
	if !ok {
		text = s.fieldsDigest(ignore)
		if len(w.memo) >= maxMemo {
			clear(w.memo)
		}
		w.memo[key] = text
	}
	return text
}

// confidential tells whether an object is a Secret.
func confidential(key plan.Key) bool {
	return key.Group == "" && key.Kind == "Secret"
}
