package engine

import (
	"context"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/component/execute"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/managedfields"
)

// maxIdentified is how many objects are read in one request to find out who changes them. The message names fewer.
const maxIdentified = 5

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
	ignore := map[string]string{prefix + "/" + generator.AnnotationIgnoreFields: strings.Join(writers.Pointers, ",")}
	if _, err := generator.ReadSettings(prefix, ignore); err != nil {
		writers.Pointers = nil
	}
	return writers
}
