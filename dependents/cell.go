package dependents

import (
	"context"
	"maps"

	"github.com/espalier-dev/espalier/internal/gotype"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Cell names a value of type V that one dependent yields and others need. The value itself is in the context of a
// request, so that one cell serves many resources at once. A cell is identified by its pointer.
type Cell[V any] struct {
	name string
}

// NewCell returns a cell. The name is for messages, and has to be unique in a [Set].
func NewCell[V any](name string) *Cell[V] {
	return &Cell[V]{name: name}
}

// AnyCell is a [Cell] of any type.
type AnyCell interface {
	cellName() string
}

func (c *Cell[V]) cellName() string { return c.name }

// isNilCell reports whether there is no cell.
func isNilCell(c AnyCell) bool { return gotype.IsNil(c) }

type valuesKey struct{}

// values are the values of a request.
type values map[AnyCell]any

func valuesOf(ctx context.Context) values {
	known, _ := ctx.Value(valuesKey{}).(values)
	return known
}

// withValues returns a context with its own copy of the values of ctx.
func withValues(ctx context.Context) context.Context {
	own := maps.Clone(valuesOf(ctx))
	if own == nil {
		own = values{}
	}
	return context.WithValue(ctx, valuesKey{}, own)
}

// WithValue returns a context with a value in the cell, as the functions of a dependent get it. It is for tests of
// these functions, and for values that a node before the [Set] knows.
func WithValue[V any](ctx context.Context, cell *Cell[V], value V) context.Context {
	ctx = withValues(ctx)
	valuesOf(ctx)[cell] = value
	return ctx
}

// Value returns the value of the cell in this request, and whether it is set. It is set for a dependent that Needs it,
// unless the supervision is [reconcilers.Suspend].
func Value[V any](ctx context.Context, cell *Cell[V]) (V, bool) {
	value, ok := valuesOf(ctx)[cell].(V)
	return value, ok
}

// Yield has the dependent fill the cell after its object was read or applied. The function gets the object as it is in
// the cluster, and must not change it. It is not called while the object is missing or terminating. If it returns
// [espalier.NotReady], the cell stays empty, and who needs it waits. After another error, too, and the error is that of
// the dependent. If several dependents yield one cell, the last that ran counts. Yield returns the dependent.
func Yield[T, CT client.Object, V any](
	d *Dependent[T, CT], cell *Cell[V], value func(live CT) (V, error),
) *Dependent[T, CT] {
	d.set(yieldsData)
	d.yields = append(d.yields, cell)
	if value == nil {
		d.missing = append(d.missing, yieldsData)
		return d
	}
	d.fill = append(d.fill, func(ctx context.Context, live CT) error {
		v, err := value(live)
		if err == nil {
			valuesOf(ctx)[cell] = v
		}
		return err
	})
	return d
}
