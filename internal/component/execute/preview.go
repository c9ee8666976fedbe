package execute

import (
	"context"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/managedfields"
	"github.com/espalier-dev/espalier/internal/panics"
	"github.com/espalier-dev/espalier/internal/write"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Preview is what the write of an object would change.
type Preview struct {
	Key plan.Key
	// Fields says which fields would be changed, and why, as [managedfields.Changes] does. It does not have the marks
	// of the component. Of a Secret it has only the fields that contain those.
	Fields []string
	// Before is the object as it was, nil if it is to be created. After is what the write would make of it, nil after
	// an error. Both have the values of a Secret.
	Before, After *unstructured.Unstructured
	// Err is why the object could not be written.
	Err error
}

// Preview carries out the writes of a stage, and returns what each has changed. Of a created object it has no fields.
// The client of the executor makes dry runs only, and there is no Seen. It makes one request more for each than the
// write, but for a create.
func (e *Executor) Preview(ctx context.Context, stage plan.Stage) []Preview {
	previews := make([]Preview, len(stage.Operations))
	e.parallelize(ctx, len(previews), func(i int) { previews[i] = e.preview(ctx, stage.Operations[i]) })
	return previews
}

// preview is called by goroutines of its own, a panic of which would end the program.
func (e *Executor) preview(ctx context.Context, op plan.Operation) (p Preview) {
	p.Key = op.Key
	defer func() {
		if value := recover(); value != nil {
			p.Err = e.failure(op, panics.Recovered(ctx, value))
		}
	}()
	object, content, err := e.desired(op.Key)
	live := e.target(op)
	if err == nil && op.Action != plan.ActionCreate {
		err = e.readCurrent(ctx, op, live)
	}
	if err != nil {
		p.Err = e.failure(op, err)
		return p
	}
	if op.Action != plan.ActionCreate {
		p.Before = live.DeepCopy()
	}
	result := Result{Operation: op}
	if e.execute(ctx, &result); result.Err != nil {
		p.Err = result.Err
		return p
	}
	if p.After = result.Object; p.Before == nil {
		return p
	}
	wanted := e.body(object, write.WithFields(content, live.Object, object.Settings.IgnoreFields, false))
	owner := managedfields.Owner{Name: string(e.fieldManager())}
	p.Fields = managedfields.Changes(
		managedfields.Configuration(wanted.Object), live.Object, result.Object.Object, live.GetManagedFields(), owner)
	p.Fields = slices.DeleteFunc(p.Fields, e.isAboutMark)
	if object.Confidential {
		for i := range p.Fields {
			p.Fields[i] = withoutMembers(p.Fields[i])
		}
		p.Fields = slices.Compact(p.Fields)
	}
	return p
}

// isAboutMark reports whether a change is one of a label or an annotation that the component has for itself.
func (e *Executor) isAboutMark(change string) bool {
	return strings.HasPrefix(change, ".metadata.annotations."+e.Mark.Prefix+"/") ||
		strings.HasPrefix(change, ".metadata.labels."+e.Mark.Prefix+"/")
}

// withoutMembers returns a change with the first field of its path alone, as ".data differs".
func withoutMembers(change string) string {
	path, _, _ := strings.Cut(change, " ")
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "."), ".")
	return "." + first + " differs"
}
