package stash_test

import (
	"context"
	"fmt"

	"github.com/espalier-dev/espalier/stash"
)

var replicasStasher = stash.New[int]("example.com/replicas")

// One node of a tree leaves a value for the nodes after it.
func Example() {
	// A root reconciler does this once for each request.
	ctx := stash.WithContext(context.Background())

	_, err := replicasStasher.RetrieveOrError(ctx)
	fmt.Println(err)

	replicasStasher.Store(ctx, 3)
	fmt.Println(replicasStasher.RetrieveOrDie(ctx))
	// Output:
	// value not found in stash: example.com/replicas
	// 3
}
