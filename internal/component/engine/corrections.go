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

// contested reports whether somebody keeps changing a desired object. It is then not asked how ready it is, since each
// change would cost a request.
func (m *Memory) contested(desired *plan.Desired, now time.Time) bool {
	c, known := m.corrections[desired.Key]
	return known && c.Digest == desired.Digest && c.Contested && !c.Forgotten(now)
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
			c.Rivals = r.rivals[o.Key]
			r.Memory.setCorrections(o.Key, c)
		}
	}
	r.in.Corrections = r.Memory.corrections
}

// identifyRivals finds out who made corrections necessary, for objects that are contested with these corrections. It
// does so before they are made, while the objects show it.
func (r *run) identifyRivals(ctx context.Context, executor *execute.Executor, stage plan.Stage) {
	identified := 0
	for i := range stage.Operations {
		o := &stage.Operations[i]
		object := r.objects[o.Key]
		if o.Undoes == "" || object == nil {
			continue
		}
		known := r.Memory.corrections[o.Key]
		c := known.After(*o, object.Desired.Digest, r.task.Now)
		if r.rivals == nil {
			r.rivals = map[plan.Key]plan.Rivals{}
		}
		r.rivals[o.Key] = c.Rivals
		if c.Contested && !known.Contested && identified < maxIdentified && o.Action != plan.ActionCreate {
			identified++
			r.rivals[o.Key] = r.rivalsOf(ctx, executor, *o)
		}
	}
}

// rivalsOf reads the object of an operation. It returns none if that is not possible: the correction does not depend on
// it.
func (r *run) rivalsOf(ctx context.Context, executor *execute.Executor, o plan.Operation) plan.Rivals {
	losses, err := executor.Losses(ctx, o)
	if err != nil {
		return plan.Rivals{}
	}
	return rivalsFrom(losses, r.Mark.Prefix)
}

func rivalsFrom(losses []managedfields.Loss, prefix string) plan.Rivals {
	var rivals plan.Rivals
	for _, loss := range losses {
		rivals.Managers = append(rivals.Managers, loss.Managers...)
		rivals.Fields = append(rivals.Fields, loss.Path)
		rivals.Pointers = append(rivals.Pointers, loss.Pointer)
	}
	slices.Sort(rivals.Managers)
	rivals.Managers = slices.Compact(rivals.Managers)
	// Some fields cannot be ignored, such as the marks of the component.
	ignore := map[string]string{prefix + "/" + component.AnnotationIgnoreFields: strings.Join(rivals.Pointers, ",")}
	if _, err := component.ReadSettings(prefix, ignore); err != nil {
		rivals.Pointers = nil
	}
	return rivals
}
