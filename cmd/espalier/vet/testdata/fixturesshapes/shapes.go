// Package fixturesshapes has shapes that fixtures was not written from: they are in its tests.
package fixturesshapes

import (
	"context"

	"github.com/espalier-dev/espalier"
	v1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
	"github.com/espalier-dev/espalier/reconcilers"
)

// Node returns a node.
func Node() reconcilers.SubReconciler[*v1.Shop] {
	return espalier.Runs("Node", func(context.Context, *v1.Shop) error { return nil })
}
