// Package component has nodes too, which run those of another package.
package component

import (
	"context"

	"example.test/reconcilers"

	known "github.com/espalier-dev/espalier/reconcilers"
)

// Deployment is a leaf beside [known.Task]. It runs [Deployment.Nested].
type Deployment[Type known.Resource] struct {
	// Nested is a leaf of another module, so that Deployment is no combinator.
	Nested reconcilers.Leaf
}

// Reconcile deploys.
func (Deployment[Type]) Reconcile(context.Context, Type) error { return nil }

// All runs nodes of another package.
type All[Type known.Resource] []known.SubReconciler[Type]

// Reconcile runs them.
func (All[Type]) Reconcile(context.Context, Type) error { return nil }
