package component_test

import (
	"context"
	"testing"

	"github.com/espalier-dev/espalier/generator"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A generator finds the clients for both clusters in its context.
func TestClientsOfAGenerator(t *testing.T) {
	house, walls, _ := newHouse()
	calls := 0
	node := assembling()
	node.Generator = generator.GeneratorFunc(func(
		ctx context.Context, _, _ string, _ generator.Unstructurable,
	) ([]client.Object, error) {
		calls++
		if _, err := generator.ClientFromContext(ctx); err != nil {
			t.Error(err)
		}
		if _, err := generator.LocalClientFromContext(ctx); err != nil {
			t.Error(err)
		}
		if _, err := generator.DiscoveryFromContext(ctx); err != nil {
			t.Error(err)
		}
		return []client.Object{walls.DeepCopy()}, nil
	})
	newOperated(t, node, house, nil).untilIdle(t)
	if calls == 0 {
		t.Errorf("the generator was called %d times, want at least once", calls)
	}
}
