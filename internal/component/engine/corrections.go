package engine

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/component/execute"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/managedfields"
)

// maxIdentified is how many objects are read in one request to find out who changes them. The message names fewer.
const maxIdentified = 5

// contested reports whether another client keeps changing a desired object. It is then not asked how ready it is, since
// each change would cost a request.
func (m *Memory) contested(desired *plan.Desired, now time.Time) bool {
	c, known := m.corrections[desired.Key]
	return known && c.Digest == desired.Digest && c.Persistent && !c.Forgotten(now)
}

// forget drops what is known of corrections that do not count any more.
func (m *Memory) forget(now time.Time) {
	maps.DeleteFunc(m.corrections, func(_ plan.Key, c plan.Corrections) bool { return c.Forgotten(now) })
}

// set stores what is known of the corrections of an object.
func (m *Memory) setCorrections(key plan.Key, c plan.Corrections) {
	if m.corrections == nil {
		m.corrections = map[plan.Key]plan.Corrections{}
	}
	m.corrections[key] = c
}

// countCorrections counts the corrections among results.
func (r *run) countCorrections(results []execute.Result) {
	for i := range results {
		o := &results[i].Operation
		if object := r.objects[o.Key]; o.Undoes != "" && results[i].Err == nil && object != nil {
			c := r.Memory.corrections[o.Key].After(*o, object.Desired.Digest, r.task.Now)
			c.Writers = r.writers[o.Key]
			r.Memory.setCorrections(o.Key, c)
		}
	}
	r.in.Corrections = r.Memory.corrections
}

// identifyWriters finds out who made corrections necessary, for objects that are contested with these corrections. It
// does so before they are made, while the objects show it.
func (r *run) identifyWriters(ctx context.Context, executor *execute.Executor, stage plan.Stage) {
	identified := 0
	for i := range stage.Operations {
		o := &stage.Operations[i]
		object := r.objects[o.Key]
		if o.Undoes == "" || object == nil {
			continue
		}
		known := r.Memory.corrections[o.Key]
		c := known.After(*o, object.Desired.Digest, r.task.Now)
		if r.writers == nil {
			r.writers = map[plan.Key]plan.Writers{}
		}
		r.writers[o.Key] = c.Writers
		if c.Persistent && !known.Persistent && identified < maxIdentified && o.Action != plan.ActionCreate {
			identified++
			r.writers[o.Key] = r.writersOf(ctx, executor, *o)
		}
	}
}

// writersOf reads the object of an operation. It returns none if that is not possible: the correction does not depend
// on it.
func (r *run) writersOf(ctx context.Context, executor *execute.Executor, o plan.Operation) plan.Writers {
	losses, err := executor.Losses(ctx, o)
	if err != nil {
		return plan.Writers{}
	}
	return writersFrom(losses, r.Mark.Prefix)
}

func writersFrom(losses []managedfields.Loss, prefix string) plan.Writers {
	var writers plan.Writers
	for _, loss := range losses {
		writers.Managers = append(writers.Managers, loss.Managers...)
		writers.Fields = append(writers.Fields, loss.Path)
		writers.Pointers = append(writers.Pointers, loss.Pointer)
	}
	slices.Sort(writers.Managers)
	writers.Managers = slices.Compact(writers.Managers)
	// Some fields cannot be ignored, such as the marks of the component.
	ignore := map[string]string{prefix + "/" + component.AnnotationIgnoreFields: strings.Join(writers.Pointers, ",")}
	if _, err := component.ReadSettings(prefix, ignore); err != nil {
		writers.Pointers = nil
	}
	return writers
}

// giveUpRepeated gives up the operations of the next stage that were carried out before in this run. What is written is
// then changed by admission, for instance, so it would be written for ever. A desired object is contested from then on.
// repeated reports whether there are such operations, stuck whether the plan has them although they were given up.
func (r *run) giveUpRepeated(ctx context.Context, p plan.Plan) (repeated, stuck bool) {
	for i := range p.Next.Operations {
		o := &p.Next.Operations[i]
		if !r.succeeded[keyOf(o)] {
			continue
		}
		repeated = true
		r.planner.Changed(o.Key)
		if c := r.Memory.corrections[o.Key]; o.Undoes != "" && !c.Persistent && r.objects[o.Key] != nil {
			c = c.After(*o, r.objects[o.Key].Desired.Digest, r.task.Now).Futile()
			c.Writers = r.writersOf(ctx, r.executor(p), *o)
			r.Memory.setCorrections(o.Key, c)
			r.in.Corrections = r.Memory.corrections
			continue
		}
		if _, known := r.in.Failed[o.Key]; known {
			stuck = true
		}
		r.in.Failed[o.Key] = messageFutile
		r.report.Waits, r.report.Futile = true, true
	}
	return repeated, stuck
}

const messageFutile = "it is not as desired after it was written; a webhook or another controller keeps changing it"
