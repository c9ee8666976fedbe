package execute

import (
	"context"

	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/managedfields"
	"github.com/espalier-dev/espalier/internal/write"
)

// Losses reads the object of a write that is desired, and returns the fields that other clients have taken from the
// component since it wrote the object. It makes one request.
func (e *Executor) Losses(ctx context.Context, op plan.Operation) ([]managedfields.Loss, error) {
	object, content, err := e.desired(op.Key)
	if err != nil {
		return nil, err
	}
	live := e.target(op)
	if err := e.readCurrent(ctx, op, live); err != nil {
		return nil, err
	}
	body := e.body(object, write.WithFields(content, live.Object, object.Settings.IgnoreFields, false))
	owner := managedfields.Owner{Name: string(e.fieldManager())}
	return managedfields.Losses(body.Object, live.Object, live.GetManagedFields(), owner), nil
}
