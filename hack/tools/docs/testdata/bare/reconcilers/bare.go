// Package reconcilers leaves out what there should be.
package reconcilers

import "context"

type Undocumented struct {
	Alone     string
	Both, Two string
	// Fine is documented.
	Fine int
	context.Context
	secret string
}

func (*Undocumented) Reconcile(ctx context.Context, resource any) error { return nil }

// Complete is complete.
type Complete struct{}

func (Complete) Reconcile(ctx context.Context, resource any) error { return nil }

// Unchecked has an example without output.
type Unchecked []int

func (Unchecked) Manage(ctx context.Context, resource any) error { return nil }
