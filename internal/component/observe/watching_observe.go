package observe

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/espalier-dev/espalier/internal/component/plan"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// askAfter is how long a type that is not served is not asked for again, unless what defines types has changed.
const askAfter = time.Second

var errStopped = errors.New("the observer is stopped")

// Observe implements [Observer].
func (w *Watching) Observe(ctx context.Context, c Component, interests []Interest) (*Observation, error) {
	s, open, err := w.begin(ctx, c, interests)
	if err != nil {
		return nil, err
	}
	defer func() { <-s.turn }()
	for _, k := range open {
		if err := w.resolve(ctx, k); err != nil {
			return nil, err
		}
	}
	observation, tasks := w.tell(s, c, interests)
	for range maxReads {
		if len(tasks) == 0 {
			return observation, nil
		}
		if err := w.read(ctx, c, tasks); err != nil {
			return nil, err
		}
		observation, tasks = w.tell(s, c, interests)
	}
	w.locked(func(b *bell) {
		// Objects change faster than they can be read. What is told may be all that there is to tell, so nobody else would wake.
		if slices.ContainsFunc(tasks, func(t task) bool { return t.purpose == toJudge }) {
			s.hint(b)
		}
	})
	return observation, nil
}

// begin waits until no other Observe is under way for the component, and takes over what it is interested in. It returns the types
// of which is to be asked whether they are served. The caller has to give back the turn.
func (w *Watching) begin(ctx context.Context, c Component, interests []Interest) (*state, []*kind, error) {
	for {
		w.mu.Lock()
		stopped, s := w.stopped, (*state)(nil)
		if !stopped {
			s = w.stateFor(c)
		}
		w.mu.Unlock()
		if stopped {
			return nil, nil, errStopped
		}
		select {
		case s.turn <- struct{}{}:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
		w.mu.Lock()
		// Somebody may have ended all interest meanwhile.
		if !w.stopped && w.states[c.Watcher] == s {
			w.enter(s, interests)
			open := w.unknownKinds(s, c.Now)
			w.mu.Unlock()
			return s, open, nil
		}
		w.mu.Unlock()
		<-s.turn
	}
}

// maxReads is how often an Observe reads what has changed while it was reading.
const maxReads = 3

// unknownKinds returns the types of which is to be asked now whether they are served.
func (w *Watching) unknownKinds(s *state, now time.Time) []*kind {
	var open []*kind
	for _, k := range w.kinds {
		if k.users[s] == 0 {
			continue
		}
		late := k.phase == missing && (k.epoch != w.epoch || now.Sub(k.asked) >= askAfter)
		if k.phase == unresolved || late {
			k.asked, k.epoch = now, w.epoch
			open = append(open, k)
		}
	}
	slices.SortFunc(open, func(a, b *kind) int { return compareKinds(a.GroupKind, b.GroupKind) })
	return open
}

func compareKinds(a, b schema.GroupKind) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
}

// task is an object to be read.
type task struct {
	entry   *entry
	purpose purpose
	in      *Interest
}

// tell returns what is known of the objects, and which have to be read for more to be known.
func (w *Watching) tell(s *state, c Component, interests []Interest) (*Observation, []task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	observation := &Observation{Objects: make(map[plan.Key]plan.Observed, len(interests))}
	var tasks []task
	for i, e := range s.order[:min(len(s.order), len(interests))] {
		in := &interests[i]
		shown, presence := e.believe(c.Now)
		if why := e.reading(shown, c.Now, w.options.Poll); why != nothing {
			tasks = append(tasks, task{entry: e, purpose: why, in: in})
		}
		if shown == nil {
			observation.Objects[in.Key] = plan.Observed{Presence: presence, TypeMissing: e.kind.phase == missing}
		} else {
			observation.Objects[in.Key] = w.describe(e, shown, c, in)
		}
		if e.failure != nil {
			if observation.Polled == nil {
				observation.Polled = map[schema.GroupKind]string{}
			}
			observation.Polled[e.kind.GroupKind] = e.failure.trouble.reading()
		}
	}
	w.tellKinds(s, observation)
	s.told()
	return observation, tasks
}

// tellKinds fills in which types are not watched.
func (w *Watching) tellKinds(s *state, observation *Observation) {
	for gk, k := range w.kinds {
		if k.users[s] == 0 {
			continue
		}
		switch k.phase {
		case unresolved, starting:
			observation.Syncing = append(observation.Syncing, gk)
		case polled:
			if observation.Polled == nil {
				observation.Polled = map[schema.GroupKind]string{}
			}
			observation.Polled[gk] = k.reason
		}
	}
	slices.SortFunc(observation.Syncing, compareKinds)
}

// describe returns what a version of an object means to the component.
func (w *Watching) describe(e *entry, shown *sight, c Component, in *Interest) plan.Observed {
	o := shown.observed(c.OwnerID, c.Owner)
	o.Terminating = e.terminating(shown, c.Now)
	if e.fieldsOf != shown {
		e.fields, e.fieldsOf = w.fieldsOf(shown, e.ignore()), shown
	}
	o.Fields = e.fields
	if in.Confidential {
		o.Content = compareContent(in.Data, e.ignore(), shown.data)
	}
	e.judge(&o, shown)
	return o
}
