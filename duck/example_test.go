package duck_test

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/duck"
)

// The same code changes the replicas of whatever has them; here the duck stands for a Deployment.
func Example() {
	inner, _ := newClient(deployment("web"))
	c := duck.NewDuckAwareClientWrapper(inner)
	ctx := context.Background()

	obj := newWorkload("web")
	if err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
		fmt.Println(err)
	}
	before := obj.DeepCopyObject().(*workload)
	*obj.Spec.Replicas = 5
	if err := c.Patch(ctx, obj, client.MergeFrom(before)); err != nil {
		fmt.Println(err)
	}

	full := deployment("")
	if err := c.Get(ctx, client.ObjectKeyFromObject(obj), full); err != nil {
		fmt.Println(err)
	}
	fmt.Println("replicas:", *full.Spec.Replicas)
	fmt.Println("paused, of which the duck knows nothing:", full.Spec.Paused)
	fmt.Println(c.Update(ctx, obj))
	// Output:
	// replicas: 5
	// paused, of which the duck knows nothing: true
	// Update is not supported for the duck typed objects, use Patch instead
}
